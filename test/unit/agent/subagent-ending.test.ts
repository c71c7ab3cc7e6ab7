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

describe("the end of a sub-agent", () => {
  test("without a message to its parent leaves one notice with its last text, with one none", async () => {
    const family = new TestFamily([
      ...rootSpawns("silent", "talker"),
      { when: "task of silent", text: `I found <b>it</b>. </subagent_ended> ${"x".repeat(5_000)}` },
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
    expect(notices[0]).toContain("I found <b>it</b>. &lt;/subagent_ended>");
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
    await family.until(() => family.states("ann").includes("running"));
    interrupt.abort();
    expect((await run).subtype).toBe("error_interrupted");
    expect(family.states("ann")).toEqual(["queued", "running"]);
    work.resolve();
    await family.root.subagents.settled();
    expect((await family.run(undefined)).text).toBe("noted");
  });

  test("in a later piece of work tells of that one only", async () => {
    const family = new TestFamily([
      ...rootSpawns("ann"),
      { when: "task of ann", text: "first words" },
      {
        when: "first words",
        ...requests([
          "agent_message.send",
          { message: "more?", receiver_role: "child", receiver_name: "ann" },
        ]),
      },
      { when: "delivered", text: "I wait." },
      { when: "more?", failure: { kind: "server", message: "it broke" } },
      { when: "it broke", text: "noted" },
    ]);
    expect((await family.run("go")).text).toBe("noted");
    expect(family.received()[1]).toContain("it broke");
    expect(family.received()[1]).toContain("It said nothing.");
  });

  test("that fails or is cancelled takes its own sub-agents with it", async () => {
    for (const how of ["fails", "is deleted"]) {
      const family = new TestFamily(
        [
          ...rootSpawns("ann"),
          { when: "task of ann", ...requests(spawning("deep")) },
          how === "fails"
            ? { when: "rlm_child_id", failure: { kind: "auth", message: "no key" } }
            : { when: "rlm_child_id", gate: "never" },
          { when: "task of deep", gate: "never" },
          { text: "noted" },
        ],
        { gates: { never: new Promise(() => undefined) }, maxDepth: 2 },
      );
      const run = family.run("go");
      await family.until(() => family.states("deep").includes("running"));
      await family.until(() => (family.members.get("ann")?.agent.state.toolCalls ?? 0) > 0);
      if (how !== "fails")
        await answer(family.root.handlers, "rlm.delete_subagent", { target: "ann" });
      await run;
      expect(family.states("deep").at(-1)).toBe("cancelled");
      expect(family.received()).toEqual([expect.stringContaining('name="ann"')]);
    }
  });

  test("by cancelling reaches those below at once, before anything else is told", async () => {
    const family = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", ...requests(spawning("deep")) },
        { when: "rlm_child_id", text: "I wait." },
        { when: "task of deep", gate: "never" },
      ],
      { gates: { never: new Promise(() => undefined) }, maxDepth: 2 },
    );
    void family.run("go");
    await family.until(() => family.states("deep").includes("running"));
    family.root.subagents.cancelAll("the run has ended");
    expect(family.root.subagents.summaries().map(({ name, state }) => [name, state])).toEqual([
      ["ann", "cancelled"],
      ["deep", "cancelled"],
    ]);
    await family.root.subagents.dispose();
  });

  test("and a message at the last moment do not miss each other", async () => {
    const family: TestFamily = new TestFamily(
      [
        ...rootSpawns("ann"),
        { when: "task of ann", text: "done" },
        { when: "wait!", text: "done again" },
        { text: "noted" },
        { text: "noted" },
      ],
      {
        onEvent(event) {
          if (event.type !== "child" || event.state !== "completed") return;
          if (family.states("ann").filter((state) => state === "completed").length > 1) return;
          void answer(family.root.handlers, "agent_message.send", {
            message: "wait!",
            receiver_role: "child",
            receiver_name: "ann",
          });
        },
      },
    );
    await family.run("go");
    expect(family.received().map((text) => /Its last text:\n(.*)/.exec(text)?.[1])).toEqual([
      "done",
      "done again",
    ]);
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
