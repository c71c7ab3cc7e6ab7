import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import type { ScriptedReply } from "../../../src/providers/scripted.ts";
import { answer, requests, spawning, telling, TestFamily } from "../../support/agent-family.ts";

/** The root spawns `names` in one cell and says what it knows at each later turn. */
function rootSpawns(...names: string[]): ScriptedReply[] {
  return [
    { when: "go", ...requests(...names.map((name) => spawning(name))) },
    { when: "rlm_child_id", text: "I wait." },
  ];
}

describe("spawning", () => {
  test("is answered at admission: the sub-agent has its task from its parent and works on its own", async () => {
    const work = defer<void>();
    const family = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", gate: "work", text: "found nothing" },
        { text: "noted" },
      ],
      { gates: { work: work.promise } },
    );
    const run = family.run("go");
    const [admitted] = await untilAnswered(family, 1);
    expect(admitted).toEqual({
      rlm_child_id: expect.stringMatching(/^[0-9a-f]{8}$/),
      name: "ann",
      session_dir: "",
      model: "scripted/script",
    });
    expect(await answer(family.root.handlers, "rlm.list_subagents", {})).toMatchObject({
      subagents: [{ rlm_child_id: admitted.rlm_child_id, session_name: "ann", status: "running" }],
    });
    work.resolve();
    expect(await run).toMatchObject({ subtype: "success", text: "noted" });
    const ann = family.members.get("ann");
    expect(ann?.agent.session.messages()[0]).toMatchObject({
      role: "user",
      content: expect.stringMatching(
        /^<agent_message from="parent" name="main" id="\w{8}">\ntask of ann\n<\/agent_message>$/,
      ),
    });
    expect(ann?.agent.session.depth).toBe(1);
    expect(family.states("ann")).toEqual(["queued", "running", "completed"]);
  });

  test("gives a readable name to one that was not named", async () => {
    const family = new TestFamily([
      { when: "go", ...requests(["rlm.run", { prompt: "Read the tests, please!" }]) },
      { when: "rlm_child_id", text: "I wait." },
      { when: "Read the tests", text: "ok" },
      { text: "noted" },
    ]);
    await family.run("go");
    const [child] = family.root.subagents.members;
    expect(child?.name).toBe(`read-the-tests-please-${child?.id.slice(0, 4)}`);
  });

  test.each([
    { kwargs: { nme: "x" }, says: "rlm.run: unknown option nme; there are name, model, thinking." },
    { kwargs: { name: 5 }, says: "rlm.run: name must be a string, not 5." },
    { kwargs: { name: "  " }, says: 'The name "" is empty.' },
    {
      kwargs: { name: "ALL" },
      says: 'The name "ALL" means everybody in messages; choose another.',
    },
    { kwargs: { name: "ANN" }, says: 'The name "ANN" is taken by another sub-agent' },
    { kwargs: { thinking: "very" }, says: "thinking is one of off, minimal, low" },
    { kwargs: { model: "unknown" }, says: "there is no such model. Try another." },
    { kwargs: [], says: "rlm.run: kwargs must be an object, not []." },
  ])("with $kwargs is refused: $says", async ({ kwargs, says }) => {
    const family = new TestFamily([...rootSpawns("ann"), { text: "ok" }, { text: "ok" }]);
    await family.run("go");
    const reply = await answer(family.root.handlers, "rlm.run", { prompt: "p", kwargs });
    expect(reply.error).toStartWith(says);
    expect(family.root.subagents.members).toHaveLength(1);
  });

  test("takes the parent's model and effort unless others are named", async () => {
    const family = new TestFamily([
      {
        when: "go",
        ...requests(
          ["rlm.run", { prompt: "task a", kwargs: { name: "a" } }],
          ["rlm.run", { prompt: "task b", kwargs: { name: "b", model: "fast", thinking: "HIGH" } }],
        ),
      },
      { when: "rlm_child_id", text: "I wait." },
      { when: "task a", text: "ok" },
      { when: "task b", text: "ok" },
      { text: "noted" },
      { text: "noted" },
    ]);
    await family.run("go");
    const models = family.provider.requests.map(({ model, effort }) => [model.id, effort]);
    expect(models).toContainEqual(["fast", "high"]);
    expect(family.root.subagents.list().map(({ model }) => model)).toEqual([
      "scripted/script",
      "scripted/fast",
    ]);
  });

  test("ends at the depth limit, which the host decides", async () => {
    const family = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", ...requests(spawning("deep")) },
        { when: "No sub-agent can be started here", text: "I do it myself." },
        { text: "noted" },
      ],
      { maxDepth: 1 },
    );
    await family.run("go");
    expect(family.received()[0]).toContain("I do it myself.");
    const none = new TestFamily([], { maxDepth: 0 });
    const reply = await answer(none.root.handlers, "rlm.run", { prompt: "p" });
    expect(reply.error).toContain("agents may nest 0 deep (RLM_MAX_DEPTH)");
  });

  test("deeper ones are waited for, and what they use counts all the way up", async () => {
    const family = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", usage: { input: 10, output: 1 }, ...requests(spawning("deep")) },
        { when: "rlm_child_id", usage: { input: 10, output: 1 }, text: "I wait too." },
        { when: "task of deep", usage: { input: 1000, output: 100 }, text: "42" },
        { when: 'name="deep"', usage: { input: 10, output: 1 }, text: "it is 42" },
        { when: 'name="ann"', text: "noted" },
      ],
      { maxDepth: 2 },
    );
    const before = family.root.agent.state.usage;
    expect((await family.run("go")).text).toBe("noted");
    const [ann, deep] = family.root.subagents.summaries();
    expect([ann?.usage.totalTokens, deep?.usage.totalTokens]).toEqual([1133, 1100]);
    expect(deep).toMatchObject({ name: "deep", parentId: ann?.id, state: "completed", turns: 1 });
    const own = family.session.entries.flatMap((entry) =>
      entry.type === "message" && entry.message.role === "assistant"
        ? [entry.message.usage.totalTokens]
        : [],
    );
    expect(before.totalTokens).toBe(own.reduce((sum, tokens) => sum + tokens, 0) + 1133);
    const charges = family.session.entries.filter(({ type }) => type === "child_usage_attributed");
    const spawner = family.session.entries.find(
      (entry) => entry.type === "message" && entry.message.role === "assistant",
    );
    expect(charges).toMatchObject([{ targetId: spawner?.id, childUsage: { totalTokens: 1133 } }]);
  });

  test("more than there are places for: the others are queued until one is free", async () => {
    const first = defer<void>();
    const family = new TestFamily(
      [
        ...rootSpawns("a", "b"),
        { when: "task of a", gate: "first", ...requests(telling("a is done")) },
        { when: "task of b", ...requests(telling("b is done")) },
        { when: "deliveryStatus", text: "sent" },
        { when: "deliveryStatus", text: "sent" },
        { when: "is done", text: "noted" },
        { when: "is done", text: "noted" },
      ],
      { gates: { first: first.promise }, maxWorking: 1 },
    );
    const run = family.run("go");
    await untilAnswered(family, 2);
    expect([family.states("a"), family.states("b")]).toEqual([["queued", "running"], ["queued"]]);
    first.resolve();
    await run;
    expect(family.states("b")).toEqual(["queued", "running", "completed"]);
  });
});

describe("the end of a sub-agent", () => {
  test("without a message to its parent leaves one notice with its last text, with one none", async () => {
    const family = new TestFamily([
      ...rootSpawns("silent", "talker"),
      { when: "task of silent", text: `I found <b>it</b>. ${"x".repeat(5_000)}` },
      { when: "task of talker", ...requests(telling("here you are")) },
      { when: "deliveryStatus", text: "sent" },
      { when: "agent_message", text: "noted" },
      { when: "subagent_ended", text: "noted" },
    ]);
    await family.run("go");
    const notices = family.received().filter((text) => text.includes("subagent_ended"));
    expect(notices).toHaveLength(1);
    expect(notices[0]).toStartWith('<subagent_ended name="silent" id="');
    expect(notices[0]).toContain('outcome="completed"');
    expect(notices[0]).toContain("I found <b>it</b>.");
    expect(notices[0]).toContain("characters left out");
    expect(notices[0]?.length).toBeLessThan(2_500);
    expect(family.received().filter((text) => text.includes("here you are"))).toHaveLength(1);
  });

  test.each([
    {
      name: "failed",
      reply: { failure: { kind: "auth" as const, message: "the key is wrong" } },
      says: ['outcome="error"', "the key is wrong"],
      state: "error",
    },
    {
      name: "unstartable",
      reply: {},
      says: ["could not be started", "the disk is full"],
      state: "error",
    },
    {
      name: "bereft",
      reply: requests(["goal.get"]),
      says: ['outcome="completed"', "Its kernel died meanwhile: killed by SIGKILL", "I gave up."],
      state: "completed",
    },
  ])("$name leaves one notice that says why", async ({ name, reply, says, state }) => {
    const family = new TestFamily(
      [
        ...rootSpawns(name),
        { when: `task of ${name}`, ...reply },
        { when: "answers", text: "I gave up." },
        { when: "subagent_ended", text: "noted" },
      ],
      { losesKernel: ["bereft"] },
    );
    expect((await family.run("go")).text).toBe("noted");
    const notices = family.received();
    expect(notices).toHaveLength(1);
    for (const part of says) expect(notices[0]).toContain(part);
    expect(family.states(name).at(-1)).toBe(state);
  });

  test("of the parent's turn is not its own: an interrupted parent gets the message later", async () => {
    const work = defer<void>();
    const family = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", gate: "work", ...requests(telling("late news")) },
        { when: "deliveryStatus", text: "sent" },
        { when: "late news", text: "noted" },
      ],
      { gates: { work: work.promise } },
    );
    const interrupt = new AbortController();
    const run = family.run("go", interrupt.signal);
    await untilAnswered(family, 1);
    interrupt.abort();
    expect((await run).subtype).toBe("error_interrupted");
    expect(family.states("ann")).toEqual(["queued", "running"]);
    work.resolve();
    await family.root.subagents.settled();
    expect((await family.run(undefined)).text).toBe("noted");
  });

  test("comes for all when the run's budget is used up, and the run says so", async () => {
    const forever = new Promise<void>(() => undefined);
    const family = new TestFamily(
      [
        ...rootSpawns("spender", "sleeper"),
        { when: "task of sleeper", gate: "never" },
        { when: "task of spender", usage: { input: 5_000, output: 1 }, text: "that was a lot" },
      ],
      { gates: { never: forever }, limits: { maxTokens: 5_000 } },
    );
    expect((await family.run("go")).subtype).toBe("error_max_tokens");
    expect(family.states("sleeper").at(-1)).toBe("cancelled");
  });
});

/** What the requests of the root's first cell were answered with, once there are `count` sub-agents. */
async function untilAnswered(family: TestFamily, count: number): Promise<any[]> {
  const answers = () => family.lastContext().findLast((message) => message.startsWith("answers: "));
  await family.until(
    () => family.root.subagents.members.length >= count && answers() !== undefined,
  );
  return JSON.parse(answers()?.slice("answers: ".length) ?? "[]");
}
