/** The last line: its parts agree for every outcome. */

import { describe, expect, test } from "bun:test";
import { RunState } from "../../../src/agent/run-state.ts";
import type { RunOutcome, RunSubtype } from "../../../src/agent/events.ts";
import { EXIT_CODES } from "../../../src/cli/report-error.ts";
import { resultFields, type RunParts } from "../../../src/cli/result.ts";
import { assistant } from "../../support/transcript.ts";

const SUBTYPES = Object.keys(EXIT_CODES) as RunSubtype[];

function fieldsOf(outcome: RunOutcome, app?: RunParts): Record<string, any> {
  const exitCode = EXIT_CODES[outcome.subtype];
  return resultFields(outcome, { exitCode, durationMs: 5, warnings: ["w"], app });
}

function parts(state = new RunState(), path: string | undefined = "/s/id.jsonl"): RunParts {
  return { agent: { state }, session: { id: "id", path }, startupMs: 12.6, agents: () => [] };
}

describe("resultFields", () => {
  test.each(SUBTYPES)("is_error, subtype and exit code of %s agree", (subtype) => {
    const fields = fieldsOf({ subtype, text: "" });
    expect(fields["is_error"]).toBe(subtype !== "success");
    expect(fields["exit_code"] === 0).toBe(subtype === "success");
    expect(fields["subtype"]).toBe(subtype);
  });

  test("holds what the run used, and how to go on with it", () => {
    const state = new RunState();
    const usage = { ...assistant("").usage, input: 10, output: 5, totalTokens: 15 };
    usage.cost = { ...usage.cost, total: 0.25 };
    state.addReply({ ...assistant("done"), usage }, true);
    state.toolCalls = 2;
    state.ttftMs = 1.4;
    expect(
      fieldsOf({ subtype: "success", text: "done", stopReason: "stop" }, parts(state)),
    ).toMatchObject({
      result: "done",
      error: null,
      num_turns: 1,
      num_tool_calls: 2,
      stop_reason: "end_turn",
      ttft_ms: 1,
      startup_ms: 13,
      total_cost_usd: 0.25,
      usage: { input_tokens: 10, output_tokens: 5, total_tokens: 15 },
      modelUsage: { "test/test-1": { input_tokens: 10, cost_usd: 0.25 } },
      warnings: ["w"],
      session_file: "/s/id.jsonl",
      resume: "prime-agent -r id",
    });
  });

  test("has no cost when a price is unknown, and no session when none is saved", () => {
    const state = new RunState();
    state.addReply(assistant("done"), false);
    const unsaved = { ...parts(state), session: { id: "id", path: undefined } };
    expect(fieldsOf({ subtype: "success", text: "" }, unsaved)).toMatchObject({
      total_cost_usd: null,
      modelUsage: { "test/test-1": { cost_usd: null } },
      session_file: null,
      resume: null,
    });
  });

  test("is complete without an app, and with an error that lacks parts", () => {
    const error = { code: "usage", message: "no", retryable: false };
    expect(fieldsOf({ subtype: "error_usage", text: "", error })).toMatchObject({
      num_turns: 0,
      startup_ms: null,
      ttft_ms: null,
      total_cost_usd: null,
      modelUsage: {},
      agents: [],
      error: { code: "usage", message: "no", http_status: null, provider: null, retryable: false },
    });
  });
});
