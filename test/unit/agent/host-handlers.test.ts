import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import { answer, requests, TestFamily } from "../../support/agent-family.ts";

test("every request of the contract has a handler, and there is no other", () => {
  const { handlers } = new TestFamily([]).root;
  expect(Object.keys(handlers).sort()).toEqual([...contract.host_requests].sort());
});

describe("rlm.find_models", () => {
  test("searches with the default limit, and within 1 to 20", async () => {
    const { handlers } = new TestFamily([]).root;
    const found = await answer(handlers, "rlm.find_models", { query: "opus" });
    expect(found).toEqual({
      models: [{ provider: "p", id: "opus", name: "n", selector: "p/opus" }],
    });
    for (const limit of [0, 21, 1.5, "8", true]) {
      const { error } = await answer(handlers, "rlm.find_models", { query: "x", limit });
      expect(error).toContain("limit must be a whole number from 1 to 20");
    }
  });
});

describe("compact", () => {
  test("happens before the next request when it was asked for, once", async () => {
    const family = new TestFamily([
      {
        when: "go",
        ...requests(
          ["compact.status"],
          ["compact.run", { instructions: "Keep the names." }],
          ["compact.run"],
          ["compact.status"],
        ),
      },
      { text: "done" },
    ]);
    await family.run("go");
    const [before, asked, again, after] = answersIn(family);
    expect(before).toEqual({
      tokens: expect.any(Number),
      context_window: 200_000,
      percent: expect.any(Number),
      scheduled: false,
    });
    expect(asked).toEqual({ scheduled: true });
    expect(again).toEqual({ scheduled: false, reason: expect.stringContaining("already") });
    expect(after.scheduled).toBe(true);
    expect(family.lastContext()[0]).toContain("<summary>\na summary");
    expect(family.events.filter(({ type }) => type === "compaction")).toMatchObject([
      { reason: "manual" },
    ]);
    expect(await answer(family.root.handlers, "compact.status", {})).toMatchObject({
      scheduled: false,
    });
  });

  test("that fails is told to the model, which may rely on it", async () => {
    const family = new TestFamily(
      [{ when: "go", ...requests(["compact.run"]) }, { text: "done" }],
      {
        summarize() {
          throw new Error("the model is gone");
        },
      },
    );
    expect((await family.run("go")).subtype).toBe("success");
    expect(family.lastContext().at(-1)).toContain("did not happen: the model is gone.");
    expect(family.events).toContainEqual({ type: "warning", message: "the model is gone" });
  });

  test.each([
    ["a number", 5, "instructions must be a string, not 5."],
    ["a book", "x".repeat(20_000), "instructions has 20000 characters"],
  ])("refuses %s as instructions", async (_, instructions, says) => {
    const payload = { instructions };
    const { error } = await answer(new TestFamily([]).root.handlers, "compact.run", payload);
    expect(error).toContain(says);
  });
});

describe("a payload", () => {
  test("with half a character is mended", async () => {
    const { handlers } = new TestFamily([]).root;
    const { goal } = await answer(handlers, "goal.create", { objective: "half \ud83d" });
    expect(goal.objective).toBe("half \ufffd");
  });

  test.each<{ type: string; payload: Record<string, unknown>; says: string }>([
    {
      type: "rlm.run",
      payload: {},
      says: "rlm.run: prompt must be a text that is not empty, not absent.",
    },
    { type: "rlm.run", payload: { prompt: ["x"] }, says: 'prompt must be a string, not ["x"].' },
    {
      type: "rlm.run",
      payload: { prompt: "x".repeat(300_000) },
      says: "write it to a file and send the path",
    },
    {
      type: "rlm.run",
      payload: { prompt: "p", kwargs: "x" },
      says: 'kwargs must be an object, not "x".',
    },
    { type: "rlm.delete_subagent", payload: { target: null }, says: "target must be a text" },
    { type: "rlm.delete_subagent", payload: { target: { a: "x".repeat(200) } }, says: "…." },
    { type: "rlm.delete_subagent", payload: Object.create({ target: "x" }), says: "not absent." },
  ])("of $type that is wrong is refused: $says", async ({ type, payload, says }) => {
    const { error } = await answer(new TestFamily([]).root.handlers, type, payload);
    expect(error).toContain(says);
    expect(error.length).toBeLessThan(250);
  });
});

/** What the root's cell was answered with; it is in the session, whatever became of the context. */
function answersIn(family: TestFamily): any[] {
  for (const entry of family.session.entries) {
    if (entry.type !== "message" || entry.message.role !== "toolResult") continue;
    const [block] = entry.message.content;
    if (block?.type === "text") return JSON.parse(block.text.slice("answers: ".length));
  }
  return [];
}
