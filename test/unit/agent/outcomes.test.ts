/** What ended a run, as its outcome. */

import { expect, test } from "bun:test";
import { requestFailed } from "../../../src/agent/outcomes.ts";
import { AbortedError, type AbortCause } from "../../../src/errors.ts";
import type { FailureKind } from "../../../src/providers/provider.ts";

const OUTCOMES: Record<Exclude<FailureKind, "aborted">, string> = {
  auth: "error_auth",
  not_found: "error_during_execution",
  invalid_request: "error_during_execution",
  overflow: "error_during_execution",
  protocol: "error_during_execution",
  content_filter: "error_during_execution",
  rate_limit: "error_unavailable",
  overloaded: "error_unavailable",
  server: "error_unavailable",
  network: "error_unavailable",
  timeout: "error_unavailable",
};

test.each(Object.entries(OUTCOMES))(
  "a request that failed with %s ends a run as %s",
  (kind, subtype) => {
    const failure = { kind: kind as FailureKind, message: "why", provider: "p", retryable: false };
    const outcome = requestFailed(
      { ...failure, httpStatus: 418 },
      "half",
      new AbortController().signal,
    );
    expect(outcome).toEqual({
      subtype: subtype as never,
      text: "half",
      error: { code: kind, message: "why", provider: "p", retryable: false, httpStatus: 418 },
      stopReason: "error",
    });
  },
);

test.each([
  ["user", "error_interrupted"],
  ["signal", "error_interrupted"],
  ["shutdown", "error_interrupted"],
  ["timeout", "error_timeout"],
] as const)("a request that was aborted by %s ends a run as %s", (cause: AbortCause, subtype) => {
  const abort = new AbortController();
  abort.abort(new AbortedError(cause));
  const failure = { kind: "aborted" as const, message: "aborted", provider: "p", retryable: false };
  expect(requestFailed(failure, "half", abort.signal)).toMatchObject({
    subtype,
    text: "half",
    stopReason: "aborted",
  });
});
