import { describe, expect, test } from "bun:test";
import type { ContextItem } from "../../../src/agent/session-context.ts";
import { contextTokens, estimateTokens, tokenLimit } from "../../../src/agent/tokens.ts";
import { emptyUsage, type Message } from "../../../src/message.ts";
import { assistant, result, user } from "../../support/transcript.ts";

const counted = {
  ...assistant("x"),
  usage: { ...emptyUsage(), input: 100, cacheRead: 1000, cacheWrite: 10, output: 5 },
};

function item(message: Message, kept = false): ContextItem {
  return {
    entry: { type: "message", id: "e", parentId: null, timestamp: "", message },
    message,
    kept,
  };
}

describe("contextTokens", () => {
  const cases: Array<[name: string, items: ContextItem[], tokens: number]> = [
    ["without a count estimates everything", [item(user("x".repeat(40)))], 510],
    [
      "takes the last count, cache and output included",
      [item(user("x".repeat(4000))), item(counted)],
      1115,
    ],
    ["adds an estimate for what is new", [item(counted), item(result("a", "x".repeat(40)))], 1125],
    [
      "ignores a count from before the latest compaction",
      [item(user("x".repeat(40))), item(counted, true)],
      511,
    ],
    [
      "ignores a reply without a count, such as a failed one",
      [item(counted), item(assistant("x".repeat(40)))],
      1125,
    ],
    ["of nothing is the fixed part", [], 500],
  ];
  test.each(cases)("%s", (_name, items, tokens) => {
    expect(contextTokens(items, 500)).toBe(tokens);
  });
});

test.each([
  [200_000, 64_000, 160_000],
  [1_000_000, 64_000, 936_000],
  [128_000, 16_384, 111_616],
  [32_000, 32_000, 16_000],
  [8_192, 8_192, 4_096],
  [8_192, 1_024, 7_168],
])("a window of %p with replies of up to %p leaves %p", (contextWindow, maxTokens, limit) => {
  expect(tokenLimit({ contextWindow, maxTokens })).toBe(limit);
});

describe("estimateTokens", () => {
  test("counts text by bytes, images by a flat rate, and the arguments of calls", () => {
    const image = { type: "image" as const, mimeType: "image/png", data: "A".repeat(100_000) };
    expect(estimateTokens({ ...user(""), content: [image, { type: "text", text: "abcd" }] })).toBe(
      1201,
    );
    expect(estimateTokens(user("漢字漢字"))).toBe(3);
    expect(estimateTokens(assistant("", "a"))).toBe(Math.ceil(7 / 4) + Math.ceil(23 / 4));
  });
});
