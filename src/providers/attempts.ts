/** Runs the attempts of one call: retries what may be retried, and ends in exactly one `done` or `failed`. */

import { abortReason, delay } from "../async.ts";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";
import { ProviderFault } from "./errors.ts";
import { failure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import type { ProviderEvent, ProviderFailure, ProviderRequest } from "./provider.ts";
import { Reply } from "./reply.ts";
import { MAX_RETRY_AFTER_MS, retryDelayMs } from "./retry.ts";

/**
 * Makes one attempt: fills `reply` and yields its events. Returns when the reply is finished,
 * throws {@link ProviderFault} when it failed. Anything else that it throws counts as our own fault.
 */
export type Attempt = (reply: Reply) => AsyncIterable<ProviderEvent>;

/** Whose failures they are, for {@link failure}. */
export function sourceOf(request: ProviderRequest): FailureSource {
  return {
    provider: request.model.provider,
    apiKey: request.apiKey,
    ...(request.redact ? { redact: request.redact } : {}),
  };
}

/** The events of one call. Never throws. */
export async function* streamAttempts(
  request: ProviderRequest,
  attempt: Attempt,
): AsyncGenerator<ProviderEvent, void, void> {
  for (let retries = 0; ; retries += 1) {
    const reply = new Reply(request.model);
    const clock = new AttemptClock();
    let problem: ProviderFailure;
    try {
      for await (const event of attempt(reply)) {
        clock.see(event);
        yield event;
      }
      yield { type: "done", message: reply.message(Date.now()), ...clock.read() };
      return;
    } catch (error) {
      problem = failureOf(request, error);
    }
    // Deltas that were read together with the fault are part of what arrived.
    yield* reply.drain();
    const soon = (problem.retryAfterMs ?? 0) <= MAX_RETRY_AFTER_MS;
    if (problem.retryable && soon && retries < request.maxRetries) {
      const delayMs = retryDelayMs(retries + 1, problem.retryAfterMs);
      yield {
        type: "retry",
        attempt: retries + 1,
        maxRetries: request.maxRetries,
        delayMs,
        reason: problem.message,
        ...(problem.httpStatus === undefined ? {} : { httpStatus: problem.httpStatus }),
      };
      try {
        await delay(delayMs, request.signal);
        if (reply.hasContent) yield { type: "restart" };
        continue;
      } catch (error) {
        problem = failureOf(request, error);
      }
    }
    const stopReason = problem.kind === "aborted" ? "aborted" : "error";
    const message = reply.message(Date.now(), { stopReason, errorMessage: problem.message });
    yield { type: "failed", failure: problem, message };
    return;
  }
}

function failureOf(request: ProviderRequest, error: unknown): ProviderFailure {
  const source = sourceOf(request);
  // Our own signal comes first: what broke because of it is not a fault of the network.
  if (request.signal.aborted) {
    return failure(source, "aborted", abortReason(request.signal).message);
  }
  if (error instanceof ProviderFault) return error.failure;
  debug("providers", "an attempt failed in our own code", error);
  return failure(source, "protocol", `the reply can't be read: ${errorMessage(error)}`);
}

/** Times one attempt. */
class AttemptClock {
  readonly #startedAt = performance.now();
  #firstContentAt: number | undefined;

  see(event: ProviderEvent): void {
    if (event.type !== "retry" && event.type !== "restart") {
      this.#firstContentAt ??= performance.now();
    }
  }

  read(): { ttftMs: number; durationMs: number } {
    const now = performance.now();
    return {
      ttftMs: Math.round((this.#firstContentAt ?? now) - this.#startedAt),
      durationMs: Math.round(now - this.#startedAt),
    };
  }
}
