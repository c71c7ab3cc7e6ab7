/** Counters of a run, and the limits on them. */

import { describe, expect, test } from "bun:test";
import { RunState } from "../../../src/agent/run-state.ts";
import { emptyUsage, type Usage } from "../../../src/message.ts";
import { assistant } from "../../support/transcript.ts";

function usage(input: number, output: number, total: number): Usage {
  const cost = { ...emptyUsage().cost, total };
  return { ...emptyUsage(), input, output, totalTokens: input + output, cost };
}

describe("RunState", () => {
  test("adds up turns and usage, by model too", () => {
    const state = new RunState();
    state.addReply({ ...assistant("a"), usage: usage(10, 5, 0.25) }, true);
    state.addReply({ ...assistant("b"), model: "other", usage: usage(1, 1, 0.5) }, true);
    state.addUsage("test/test-1", usage(100, 0, 0), true);
    expect(state.turns).toBe(2);
    expect(state.usage).toMatchObject({ input: 111, output: 6, totalTokens: 117 });
    expect(state.usage.cost.total).toBe(0.75);
    expect([...state.modelUsage].map(([name, { input }]) => [name, input])).toEqual([
      ["test/test-1", 110],
      ["test/other", 1],
    ]);
    expect(state.costKnown).toBe(true);
  });

  test("knows no cost once a single price was unknown", () => {
    const state = new RunState();
    state.addReply({ ...assistant("a"), usage: usage(1, 1, 0) }, false);
    state.addReply({ ...assistant("a"), usage: usage(1, 1, 1) }, true);
    expect(state.costKnown).toBe(false);
  });

  test.each([
    [{}, undefined],
    [{ maxTurns: 3 }, undefined],
    [{ maxTurns: 2 }, "error_max_turns"],
    [{ maxTokens: 31 }, undefined],
    [{ maxTokens: 30 }, "error_max_tokens"],
    [{ maxBudgetUsd: 0.6 }, undefined],
    [{ maxBudgetUsd: 0.5 }, "error_max_budget_usd"],
    [{ maxTurns: 1, maxTokens: 1, maxBudgetUsd: 0 }, "error_max_turns"],
  ] as const)("with the limits %j two turns of 15 tokens and 0.25 $ mean %s", (limits, subtype) => {
    const state = new RunState();
    for (let turn = 0; turn < 2; turn += 1)
      state.addReply({ ...assistant(""), usage: usage(10, 5, 0.25) }, true);
    const outcome = state.exceeded(limits, "so far");
    expect(outcome?.subtype).toBe(subtype as never);
    if (outcome) expect(outcome).toMatchObject({ text: "so far", error: { retryable: false } });
  });
});
