/** How a run ended, made of what ended it; see {@link RunOutcome}. */

import { abortReason } from "../async.ts";
import { AbortedError, type PrimeAgentError } from "../errors.ts";
import type { FailureKind, ProviderFailure } from "../providers/provider.ts";
import type { RunOutcome, RunSubtype } from "./events.ts";

/** Somebody, or the time, ended the run. */
export function abortedOutcome(error: Error): RunOutcome {
  const timeout = error instanceof AbortedError && error.abortCause === "timeout";
  return {
    subtype: timeout ? "error_timeout" : "error_interrupted",
    text: "",
    error: {
      code: timeout ? "timeout" : "interrupted",
      message: timeout ? "the run's time is over (--timeout); resume to go on" : "interrupted",
      retryable: true,
    },
    stopReason: "aborted",
  };
}

/** A check did not pass, as often as it was tried. */
export function checkFailed(text: string, message: string): RunOutcome {
  return {
    subtype: "error_check_failed",
    text,
    error: { code: "check_failed", message, retryable: false },
  };
}

/** There is no kernel to be had. */
export function kernelFailed(error: PrimeAgentError): RunOutcome {
  return { ...brokenOutcome(error), subtype: "error_kernel" };
}

/** An error of ours ended the run. */
export function brokenOutcome({ code, message, hint }: PrimeAgentError): RunOutcome {
  return {
    subtype: "error_during_execution",
    text: "",
    error: { code, message: `${message} ${hint}`.trim(), retryable: false },
  };
}

const UNAVAILABLE: readonly FailureKind[] = [
  "rate_limit",
  "overloaded",
  "server",
  "network",
  "timeout",
];

/** A request failed for good; `text` is what had arrived of its reply. */
export function requestFailed(
  failure: ProviderFailure,
  text: string,
  signal: AbortSignal,
): RunOutcome {
  if (failure.kind === "aborted") return { ...abortedOutcome(abortReason(signal)), text };
  const { kind, message, httpStatus, provider, retryable } = failure;
  const error = { code: kind, message, provider, retryable };
  return {
    subtype: failedSubtype(kind),
    text,
    error: { ...error, ...(httpStatus !== undefined && { httpStatus }) },
    stopReason: "error",
  };
}

function failedSubtype(kind: FailureKind): RunSubtype {
  if (kind === "auth") return "error_auth";
  return UNAVAILABLE.includes(kind) ? "error_unavailable" : "error_during_execution";
}
