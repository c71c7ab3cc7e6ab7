/** The fields of the last line of a run, the same for `json` and `stream-json`. */

import type { RunOutcome } from "../agent/events.ts";
import type { SubagentSummary } from "../agent/subagent.ts";
import type { RunState } from "../agent/run-state.ts";
import { emptyUsage } from "../message.ts";
import { wireStopReason, wireUsage } from "./stream-json.ts";

/** The part of an app that tells what a run used. */
export interface RunParts {
  agent: { readonly state: RunState };
  session: { readonly id: string; readonly path: string | undefined };
  startupMs: number;
  agents(): readonly SubagentSummary[];
}

/** What the fields are made of beside the outcome. */
export interface ResultFacts {
  exitCode: number;
  durationMs: number;
  warnings: readonly string[];
  /** Absent when the run failed before there was one. */
  app: RunParts | undefined;
}

/** `result` without its type and envelope. `is_error` ⇔ `subtype` is not success ⇔ the exit code is not 0. */
export function resultFields(outcome: RunOutcome, facts: ResultFacts): object {
  const state = facts.app?.agent.state;
  const session = facts.app?.session;
  return {
    subtype: outcome.subtype,
    is_error: outcome.subtype !== "success",
    exit_code: facts.exitCode,
    result: outcome.text,
    error: outcome.error ? errorFields(outcome.error) : null,
    num_turns: state?.turns ?? 0,
    num_tool_calls: state?.toolCalls ?? 0,
    stop_reason: wireStopReason(outcome.stopReason),
    duration_ms: facts.durationMs,
    duration_api_ms: Math.round(state?.apiMs ?? 0),
    duration_tool_ms: Math.round(state?.toolMs ?? 0),
    ttft_ms: state?.ttftMs === undefined ? null : Math.round(state.ttftMs),
    startup_ms: facts.app ? Math.round(facts.app.startupMs) : null,
    total_cost_usd: state?.costKnown ? state.usage.cost.total : null,
    usage: wireUsage(state?.usage ?? emptyUsage()),
    modelUsage: Object.fromEntries(
      [...(state?.modelUsage ?? [])].map(([model, usage]) => [
        model,
        { ...wireUsage(usage), cost_usd: state?.costKnown ? usage.cost.total : null },
      ]),
    ),
    agents: (facts.app?.agents() ?? []).map(agentFields),
    warnings: facts.warnings,
    session_file: session?.path ?? null,
    resume: session?.path ? `prime-agent -r ${session.id}` : null,
  };
}

function agentFields(agent: SubagentSummary): object {
  return {
    id: agent.id,
    name: agent.name,
    parent: agent.parentId,
    state: agent.state,
    model: agent.model,
    num_turns: agent.turns,
    num_tool_calls: agent.toolCalls,
    total_cost_usd: agent.costKnown ? agent.usage.cost.total : null,
    usage: wireUsage(agent.usage),
    session_file: agent.sessionFile,
    error: agent.error,
  };
}

function errorFields(error: NonNullable<RunOutcome["error"]>): object {
  return {
    code: error.code,
    message: error.message,
    http_status: error.httpStatus ?? null,
    provider: error.provider ?? null,
    retryable: error.retryable,
  };
}
