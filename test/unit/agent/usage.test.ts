import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { readConversation } from "../../../src/agent/session-store.ts";
import { sessionUsage, UsageLedger } from "../../../src/agent/usage.ts";
import { emptyUsage, type Usage } from "../../../src/message.ts";
import { assistant } from "../../support/transcript.ts";

const tokens = (input: number, dollars = 0): Usage => ({
  ...emptyUsage(),
  input,
  totalTokens: input,
  cost: { ...emptyUsage().cost, total: dollars },
});

describe("UsageLedger", () => {
  test("counts replies by model and children in the total only", () => {
    const ledger = new UsageLedger();
    ledger.addReply({ ...assistant("x"), usage: tokens(10, 1) });
    ledger.addReply({ ...assistant("x"), usage: tokens(5) });
    ledger.addReply({ ...assistant("x"), model: "other", usage: tokens(1) });
    ledger.addChild(tokens(100, 2));
    expect(ledger.totals()).toEqual({
      total: tokens(116, 3),
      children: tokens(100, 2),
      models: [
        { model: "test/test-1", usage: tokens(15, 1), replies: 2 },
        { model: "test/other", usage: tokens(1), replies: 1 },
      ],
    });
  });

  test("totals that were taken don't change any more", () => {
    const ledger = new UsageLedger();
    const before = ledger.totals();
    ledger.addChild(tokens(1));
    expect(before.total.input).toBe(0);
  });
});

describe("sessionUsage", () => {
  test("adds up a file of another program, where records may lack parts", () => {
    const path = join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl");
    const { entries } = readConversation(path);
    const { total, children, models } = sessionUsage(entries);
    expect([total.totalTokens, total.cost.total, children.totalTokens]).toEqual([157, 0.4, 7]);
    expect(models.map((model) => [model.model, model.replies])).toEqual([
      ["anthropic/claude-sonnet-4-5", 1],
    ]);
  });

  test("a reply without a usage record costs nothing", () => {
    const reply = { ...assistant("x"), usage: undefined as unknown as Usage };
    const entry = {
      type: "message" as const,
      id: "a",
      parentId: null,
      timestamp: "",
      message: reply,
    };
    expect(sessionUsage([entry]).total).toEqual(emptyUsage());
  });
});
