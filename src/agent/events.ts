/**
 * What a run tells those who watch it. Events come in the order in which
 * things happen; a sink must not throw and is never waited for.
 */

import type { AssistantMessage, ToolCallBlock, ToolResultMessage, Usage } from "../message.ts";
import type { FailureKind, ProviderEvent } from "../providers/provider.ts";

/** One event; `agent` names the sub-agent it belongs to, absent for the root. */
export type AgentEvent = AgentEventBody & { agent?: AgentOrigin };

/** Which sub-agent an event comes from. */
export interface AgentOrigin {
  id: string;
  name: string;
  /** The call of the parent that spawned it. */
  parentToolCallId: string | undefined;
}

/** The events proper. */
export type AgentEventBody =
  | { type: "request"; turn: number }
  | { type: "text_delta"; text: string }
  | { type: "thinking_delta"; text: string }
  | { type: "tool_call_delta"; id: string; name: string; delta: string }
  /** A retried reply starts over: what was shown of it does not count. */
  | { type: "reply_restart" }
  | Extract<ProviderEvent, { type: "retry" }>
  | { type: "assistant"; message: AssistantMessage; ttftMs?: number; durationMs?: number }
  | { type: "tool_start"; call: ToolCallBlock; code: string }
  | { type: "tool_output"; callId: string; stream: "stdout" | "stderr"; text: string }
  | { type: "tool_end"; message: ToolResultMessage }
  | { type: "kernel_progress"; stage: string }
  | {
      type: "kernel";
      state: "ready" | "restarted" | "lost";
      bootMs?: number;
      python?: string;
      reason?: string;
    }
  | {
      type: "compaction";
      reason: "threshold" | "overflow" | "manual";
      tokensBefore: number;
      tokensAfter?: number;
    }
  | { type: "check"; command: string; passed: boolean; exitCode: number | null; output: string }
  /** A message that did not come from the person: a sub-agent's, a notice, a failed check's. */
  | { type: "injected"; source: string; text: string }
  | {
      type: "child";
      state: "queued" | "running" | "completed" | "error" | "cancelled";
      usage?: Usage;
    }
  | { type: "warning"; message: string };

/** Receives events. */
export type EventSink = (event: AgentEvent) => void;

/** How a run ended; the last part of the exit code's name in CONTRACT "Exit codes". */
export type RunSubtype =
  | "success"
  | "error_during_execution"
  | "error_usage"
  | "error_auth"
  | "error_max_turns"
  | "error_max_tokens"
  | "error_max_budget_usd"
  | "error_check_failed"
  | "error_unavailable"
  | "error_kernel"
  | "error_timeout"
  | "error_interrupted";

/** Why a run failed, for machines. */
export interface RunError {
  code: FailureKind | string;
  message: string;
  httpStatus?: number;
  provider?: string;
  retryable: boolean;
}

/** The outcome of one prompt. */
export interface RunOutcome {
  subtype: RunSubtype;
  /** The text of the last reply. */
  text: string;
  error?: RunError;
  stopReason?: string;
}
