import { describe, expect, test } from "bun:test";
import { symlinkSync } from "node:fs";
import { Session } from "../../../src/agent/session.ts";
import { defer } from "../../../src/async.ts";
import type { ScriptedReply } from "../../../src/providers/scripted.ts";
import { answer, requests, spawning, telling, TestFamily } from "../../support/agent-family.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { user } from "../../support/transcript.ts";

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
          [
            "rlm.run",
            { prompt: "task b", kwargs: { name: "b", model: "unpriced", thinking: "HIGH" } },
          ],
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
    expect(models).toContainEqual(["unpriced", "high"]);
    expect(family.root.subagents.list().map(({ model }) => model)).toEqual([
      "scripted/script",
      "scripted/unpriced",
    ]);
    expect(family.root.subagents.summaries().map(({ costKnown }) => costKnown)).toEqual([
      true,
      false,
    ]);
    expect(family.root.agent.state.costKnown).toBe(false);
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

  test("ends at a hundred that can be reached", async () => {
    const family = new TestFamily([], { maxWorking: 1 });
    const spawn = () => answer(family.root.handlers, "rlm.run", { prompt: "p" });
    for (let index = 0; index < 100; index += 1) await spawn();
    expect((await spawn()).error).toStartWith("There are 100 sub-agents already");
    await family.root.subagents.dispose();
  });

  test("below a session that can't be saved is told of as not saved", async () => {
    using dir = new TempDir();
    using session = Session.create({ home: dir.path, cwd: "/work" });
    session.appendMessage(user("hello"));
    symlinkSync("/proc", `${session.artifactsDir}/sessions`);
    const family = new TestFamily([...rootSpawns("ann"), { text: "ok" }, { text: "ok" }], {
      session,
    });
    await family.run("go");
    expect(family.events).toContainEqual({
      type: "warning",
      message: expect.stringContaining("this session is not saved"),
      agent: expect.objectContaining({ name: "ann" }),
    });
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

/** What the requests of the root's first cell were answered with, once there are `count` sub-agents. */
async function untilAnswered(family: TestFamily, count: number): Promise<any[]> {
  const answers = () => family.lastContext().findLast((message) => message.startsWith("answers: "));
  await family.until(
    () => family.root.subagents.members.length >= count && answers() !== undefined,
  );
  return JSON.parse(answers()?.slice("answers: ".length) ?? "[]");
}
