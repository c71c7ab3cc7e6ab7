import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { EntryDraft, SessionEntry } from "../../../src/agent/session-entry.ts";
import { readConversation } from "../../../src/agent/session-store.ts";
import { sessionUsage } from "../../../src/agent/usage.ts";
import { emptyUsage, type Usage } from "../../../src/message.ts";
import { assistant, user } from "../../support/transcript.ts";

const tokens = (input: number, dollars = 0): Usage => ({
  ...emptyUsage(),
  input,
  totalTokens: input,
  cost: { ...emptyUsage().cost, total: dollars },
});

const reply = (model: string, usage: Usage): EntryDraft => ({
  type: "message",
  message: { ...assistant("x"), model, usage },
});

function entries(...drafts: EntryDraft[]): SessionEntry[] {
  return drafts.map((draft, index) => ({
    ...draft,
    id: `${index}`,
    parentId: null,
    timestamp: "",
  }));
}

describe("sessionUsage", () => {
  test("counts replies by model, and children in the total only", () => {
    const child: EntryDraft = {
      type: "child_usage_attributed",
      targetId: "0",
      childUsage: tokens(100, 2),
      aggregateUsage: tokens(110, 3),
    };
    const session = entries(
      { type: "message", message: user("x") },
      reply("one", tokens(10, 1)),
      child,
      reply("two", tokens(1)),
      reply("one", tokens(5)),
    );
    expect(sessionUsage(session)).toEqual({
      total: tokens(116, 3),
      children: tokens(100, 2),
      models: [
        { model: "test/one", usage: tokens(15, 1), replies: 2 },
        { model: "test/two", usage: tokens(1), replies: 1 },
      ],
    });
  });

  test("adds up a file of another program", () => {
    const path = join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl");
    const { total, children, models } = sessionUsage(readConversation(path).entries);
    expect([total.totalTokens, total.cost.total, children.totalTokens]).toEqual([157, 0.4, 7]);
    expect(models).toMatchObject([{ model: "anthropic/claude-sonnet-4-5", replies: 1 }]);
  });

  test("a reply without a usage record, or with half of one, costs what it says", () => {
    const none = undefined as unknown as Usage;
    const half = { input: 3, totalTokens: 3 } as Usage;
    expect(sessionUsage(entries(reply("a", none), reply("a", half))).total).toEqual(tokens(3));
  });
});
