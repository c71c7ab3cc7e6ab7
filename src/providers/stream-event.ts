/** Reads the JSON of a stream's event, which is the same job for every wire format. */

import { ProviderFault } from "./errors.ts";
import { failure, streamFailure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import { asObject, parseJson } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { SseEvent } from "./sse.ts";

/**
 * The object that an event holds; `undefined` for what carries nothing (`null`, a bare word).
 * Throws a retryable {@link ProviderFault} for JSON that is damaged, since text of the reply may
 * be lost with it, and a fault for an error that stands alone.
 */
export function readEvent(
  { event, data }: SseEvent,
  source: FailureSource,
): JsonObject | undefined {
  const value = parseJson(data);
  if (value === undefined && /^\s*[{[]/.test(data)) {
    const text = "an event of the stream is damaged";
    throw new ProviderFault(failure(source, "network", text, { retryable: true }));
  }
  const object = asObject(value);
  const standsAlone = object?.["error"] && object["type"] === undefined;
  const isError = event === "error" || object?.["object"] === "error" || standsAlone;
  if (isError) throw new ProviderFault(streamFailure(source, value ?? data, Date.now()));
  return object;
}
