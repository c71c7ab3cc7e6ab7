import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import type { ScriptedReply } from "../../../src/providers/scripted.ts";
import { answer, requests, spawning, telling, TestFamily } from "../../support/agent-family.ts";

const forever = new Promise<void>(() => undefined);

/** A family whose root has spawned `names` and whose sub-agents do as `replies` say. */
function spawned(
  names: string[],
  replies: ScriptedReply[],
  gates: Record<string, PromiseLike<unknown>> = {},
  maxWorking = 8,
) {
  const script: ScriptedReply[] = [
    { when: "go", ...requests(...names.map((name) => spawning(name))) },
    { when: "rlm_child_id", text: "I wait." },
    ...replies,
    ...Array.from({ length: 9 }, () => ({ text: "noted" })),
  ];
  const family = new TestFamily(script, { gates: { never: forever, ...gates }, maxWorking });
  return { family, run: family.run("go") };
}

function remove(family: TestFamily, target: string) {
  return answer(family.root.handlers, "rlm.delete_subagent", { target });
}

async function untilState(family: TestFamily, name: string, state: string): Promise<void> {
  await family.until(() => family.states(name).at(-1) === state);
}

describe("deleting", () => {
  test("a running one returns at once, ends its cell, and leaves one notice when it is cleaned up", async () => {
    const { family, run } = spawned(
      ["ann"],
      [{ when: "task of ann", text: "I begin.", ...requests(["gate", "never"]) }],
    );
    await untilState(family, "ann", "running");
    await family.inCell("ann");
    expect(await remove(family, "ANN")).toMatchObject({
      subagent: { session_name: "ann", status: "error" },
      outcome: "cancelled",
    });
    expect(family.received()).toEqual([]);
    expect(await answer(family.root.handlers, "rlm.list_subagents", {})).toEqual({ subagents: [] });
    await run;
    expect(family.members.get("ann")?.disposed).toBe(1);
    expect(family.states("ann")).toEqual(["queued", "running", "cancelled"]);
    expect(family.received()).toEqual([
      expect.stringMatching(/name="ann" .*outcome="cancelled">[^]*it was deleted[^]*I begin\./),
    ]);
    expect(family.root.subagents.summaries()).toMatchObject([{ name: "ann", state: "cancelled" }]);
  });

  test("a queued one is never started, and its place goes to the next", async () => {
    const work = defer<void>();
    const { family, run } = spawned(
      ["a", "b", "c"],
      [
        { when: "task of a", gate: "work", text: "A" },
        { when: "task of c", text: "C" },
      ],
      { work: work.promise },
      1,
    );
    await untilState(family, "c", "queued");
    await remove(family, "b");
    work.resolve();
    await run;
    expect([family.members.has("b"), family.states("b")]).toEqual([false, ["queued", "cancelled"]]);
    expect(family.states("c").at(-1)).toBe("completed");
    expect(family.received().filter((text) => text.includes('name="b"'))).toHaveLength(1);
  });

  test("a finished one leaves no second notice, and its name is free again", async () => {
    const { family, run } = spawned(["ann"], [{ when: "task of ann", text: "done" }]);
    await run;
    expect(await remove(family, "ann")).toMatchObject({ outcome: "completed" });
    await family.root.subagents.settled();
    expect([family.received().length, family.root.agent.inbox.size]).toEqual([1, 0]);
    const again = await answer(family.root.handlers, "rlm.run", {
      prompt: "again",
      kwargs: { name: "ann" },
    });
    expect(again.name).toBe("ann");
    await family.root.subagents.settled();
  });

  test("keeps the name until all is cleaned up, and says nothing when the parent ends meanwhile", async () => {
    const { family } = spawned(["ann"], [{ when: "task of ann", ...requests(["gate", "never"]) }]);
    await family.inCell("ann");
    await remove(family, "ann");
    const again = { prompt: "again", kwargs: { name: "ann" } };
    const taken = await answer(family.root.handlers, "rlm.run", again);
    expect(taken.error).toContain('The name "ann" is taken');
    await family.root.subagents.dispose();
    expect([family.received(), family.root.agent.inbox.size]).toEqual([[], 0]);
  });

  test("one that has sent its message leaves no notice", async () => {
    const { family, run } = spawned(
      ["ann"],
      [
        { when: "task of ann", ...requests(telling("half of it"), ["gate", "never"]) },
        { when: "half of it", text: "enough" },
      ],
    );
    await family.until(() => family.received().some((text) => text.includes("half of it")));
    await remove(family, "ann");
    await run;
    expect(family.received()).toHaveLength(1);
  });

  test.each(["id", "session", "prefix"])("takes a handle's %s as well", async (kind) => {
    const { family, run } = spawned(["ann", "ben"], []);
    await run;
    const [, ben] = family.root.subagents.members;
    const targets: Record<string, string> = {
      id: ben?.id ?? "",
      session: ben?.sessionId ?? "",
      prefix: ben?.id.slice(0, 6) ?? "",
    };
    expect((await remove(family, targets[kind] ?? "")).subagent.session_name).toBe("ben");
  });

  test("refuses what is unknown or means more than one, and names who exists", async () => {
    const { family, run } = spawned(["ann"], []);
    await run;
    const [ann] = family.root.subagents.members;
    expect((await remove(family, "bob")).error).toBe(
      `There is no sub-agent "bob"; there are: ann (${ann?.id}, completed).`,
    );
    const id = ann?.id ?? "";
    await answer(family.root.handlers, "rlm.run", { prompt: "p", kwargs: { name: id } });
    expect((await remove(family, id)).error).toStartWith(`"${id}" means more than one sub-agent`);
    await family.root.subagents.settled();
  });
});

describe("the end of the parent", () => {
  test("cancels all that work, cleans up each once, and leaves no notices", async () => {
    const { family } = spawned(
      ["a", "b"],
      [
        { when: "task of a", ...requests(["gate", "never"]) },
        { when: "task of b", gate: "never" },
      ],
    );
    await untilState(family, "b", "running");
    await family.root.subagents.dispose();
    expect(["a", "b"].map((name) => family.states(name).at(-1))).toEqual([
      "cancelled",
      "cancelled",
    ]);
    expect([...family.members.values()].map(({ disposed }) => disposed)).toEqual([1, 1]);
    expect(family.received()).toEqual([]);
    const late = await answer(family.root.handlers, "rlm.run", { prompt: "p" });
    expect(late.error).toContain("The program is ending");
  });

  test("nothing more is heard of a cancelled one, whatever it still does", async () => {
    const { family } = spawned(["a"], [{ when: "task of a", ...requests(["gate", "never"]) }]);
    await untilState(family, "a", "running");
    await family.inCell("a");
    family.root.subagents.cancelAll("the run has ended");
    await family.root.subagents.settled();
    const after = family.events.findIndex(
      (event) => event.type === "child" && event.state === "cancelled",
    );
    expect(family.events.slice(after + 1).filter(({ agent }) => agent?.name === "a")).toEqual([]);
  });

  test("is not waited for by a spawn whose cell was interrupted", async () => {
    const family = new TestFamily([]);
    const interrupted = AbortSignal.abort();
    const reply = await answer(family.root.handlers, "rlm.run", { prompt: "p" }, interrupted);
    expect([reply.error, family.root.subagents.members]).toEqual(["aborted", []]);
  });
});
