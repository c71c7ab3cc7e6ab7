/** The only place where an error becomes text and an exit code. */

import type { RunOutcome, RunSubtype } from "../agent/events.ts";
import { AbortedError, PrimeAgentError, UsageError } from "../errors.ts";

/** Exit codes by outcome; see the README. */
export const EXIT_CODES: Readonly<Record<RunSubtype, number>> = {
  success: 0,
  error_during_execution: 1,
  error_usage: 2,
  error_auth: 3,
  error_max_turns: 4,
  error_max_tokens: 4,
  error_max_budget_usd: 4,
  error_check_failed: 5,
  error_unavailable: 6,
  error_kernel: 7,
  error_timeout: 124,
  error_interrupted: 130,
};

/** The exit code of a run whose reader went away. */
export const EXIT_READER_GONE = 141;

/** Kinds of errors that mean that there is no usable kernel. */
const KERNEL_CODES = /^(kernel_|environment|assets|no_python|unusable_python|package_install)/;

/** The outcome that an error thrown before or beside a run stands for. */
export function subtypeOf(error: unknown): RunSubtype {
  if (error instanceof UsageError) return "error_usage";
  if (error instanceof AbortedError)
    return error.abortCause === "timeout" ? "error_timeout" : "error_interrupted";
  if (error instanceof PrimeAgentError) {
    if (error.code === "auth") return "error_auth";
    if (KERNEL_CODES.test(error.code)) return "error_kernel";
  }
  return "error_during_execution";
}

/** The outcome of a run that an error ended before its agent could say how. */
export function outcomeOf(error: unknown): RunOutcome {
  if (error instanceof AbortedError) {
    const timeout = error.abortCause === "timeout";
    const message = timeout ? "the run's time is over (--timeout)" : "interrupted";
    const code = timeout ? "timeout" : "interrupted";
    return { subtype: subtypeOf(error), text: "", error: { code, message, retryable: true } };
  }
  const known = error instanceof PrimeAgentError;
  const message = describeError(error).replace(/^prime-agent: /, "");
  return {
    subtype: subtypeOf(error),
    text: "",
    error: { code: known ? error.code : "internal", message, retryable: false },
  };
}

/** One or two lines for stderr: what is wrong, and what to do about it. */
export function describeError(error: unknown): string {
  if (error instanceof PrimeAgentError) {
    return error.hint
      ? `prime-agent: ${error.message}\n  ${error.hint}`
      : `prime-agent: ${error.message}`;
  }
  const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return `prime-agent: internal error: ${text}`;
}
