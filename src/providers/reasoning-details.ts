/**
 * OpenRouter's `reasoning_details`: typed pieces of reasoning, some encrypted,
 * which must go back unchanged for the model to go on from its own thoughts.
 */

import { asObject, asString, parseJson } from "./json.ts";
import type { JsonObject } from "./json.ts";

/** The text fields of a detail that arrive in pieces. */
const STREAMED_FIELDS = ["text", "summary", "data"] as const;

/** Joins the streamed pieces of each detail. */
export class ReasoningDetails {
  readonly #details: JsonObject[] = [];

  /** Takes the details of one delta. */
  add(pieces: readonly JsonObject[]): void {
    for (const piece of pieces) {
      const last = this.#details.at(-1);
      if (last && last["type"] === piece["type"] && last["index"] === piece["index"]) {
        merge(last, piece);
      } else {
        this.#details.push({ ...piece });
      }
    }
  }

  /** All details as opaque state for a thinking block, or `undefined` if there were none. */
  take(): string | undefined {
    return this.#details.length === 0 ? undefined : JSON.stringify(this.#details);
  }
}

function merge(into: JsonObject, piece: JsonObject): void {
  for (const [field, value] of Object.entries(piece)) {
    if (value === null || value === undefined) continue;
    const before = asString(into[field]);
    const streamed = (STREAMED_FIELDS as readonly string[]).includes(field);
    into[field] = streamed && before !== undefined ? before + String(value) : value;
  }
}

/** The details that a thinking block's signature holds, if it holds any. */
export function readReasoningDetails(signature: string): JsonObject[] | undefined {
  const value = signature.startsWith("[") ? parseJson(signature) : undefined;
  return Array.isArray(value) && value.every((item) => asObject(item)) ? value : undefined;
}
