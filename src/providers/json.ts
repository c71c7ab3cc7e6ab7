/** Reads values out of JSON that a peer sent: whatever has the wrong type counts as absent. */

/** A JSON object. */
export type JsonObject = Record<string, unknown>;

/** `value` if it is a JSON object (no array, no null). */
export function asObject(value: unknown): JsonObject | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? (value as JsonObject)
    : undefined;
}

/** The objects of an array; empty for anything else. */
export function asObjects(value: unknown): JsonObject[] {
  if (!Array.isArray(value)) return [];
  return value.filter((item): item is JsonObject => asObject(item) !== undefined);
}

/** `value` if it is a string. */
export function asString(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** `value` if it is a finite number. */
export function asNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

/** The object that `text` is as JSON, or `undefined` if it is none. */
export function parseObject(text: string): JsonObject | undefined {
  return asObject(parseJson(text));
}

/** What `text` is as JSON, or `undefined` if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // Peers send anything; callers decide what a missing value means.
    return undefined;
  }
}
