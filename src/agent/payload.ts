/** Reads the payload of a host request. What is not as it must be is refused with what was expected. */

import { HostRequestError } from "../kernel/host-bridge.ts";

/** The fields of one request, or of an object in it. Every method throws {@link HostRequestError}. */
export class Payload {
  readonly #label: string;
  readonly #fields: Readonly<Record<string, unknown>>;

  /** `label` goes before each complaint: the request's type. */
  constructor(label: string, fields: Readonly<Record<string, unknown>>) {
    this.#label = label;
    this.#fields = fields;
  }

  /** A text that is not blank, of at most `maxChars`. */
  text(key: string, maxChars: number): string {
    const value = this.optionalText(key, maxChars);
    if (value !== undefined && value.trim() !== "") return value;
    throw this.#complaint(key, "a text that is not empty");
  }

  /** A text of at most `maxChars`; undefined when it is absent or null. */
  optionalText(key: string, maxChars: number): string | undefined {
    const value = this.#value(key);
    if (value === undefined) return undefined;
    if (typeof value !== "string") throw this.#complaint(key, "a string");
    if (value.length <= maxChars) return value.toWellFormed();
    throw new HostRequestError(
      `${this.#label}: ${key} has ${value.length} characters, more than ${maxChars}; write it to a file and send the path.`,
    );
  }

  /** One of `choices`. */
  choice<T extends string>(key: string, choices: readonly T[]): T {
    const found = choices.find((choice) => choice === this.#value(key));
    if (found !== undefined) return found;
    throw this.#complaint(key, `one of ${choices.join(", ")}`);
  }

  /** A whole number within the bounds; `fallback` when it is absent or null. */
  wholeNumber<T>(key: string, bounds: { min: number; max: number }, fallback: T): number | T {
    const value = this.#value(key);
    if (value === undefined) return fallback;
    const fits = Number.isSafeInteger(value) && (value as number) >= bounds.min;
    if (fits && (value as number) <= bounds.max) return value as number;
    throw this.#complaint(key, `a whole number from ${bounds.min} to ${bounds.max}`);
  }

  /** An object with no other keys than `known`; an empty one when it is absent or null. */
  object(key: string, known: readonly string[]): Payload {
    const value = this.#value(key) ?? {};
    if (typeof value !== "object" || Array.isArray(value)) throw this.#complaint(key, "an object");
    const unknown = Object.keys(value).filter((name) => !known.includes(name));
    if (unknown.length === 0) return new Payload(this.#label, value as Record<string, unknown>);
    throw new HostRequestError(
      `${this.#label}: unknown option ${unknown.slice(0, 5).join(", ")}; there are ${known.join(", ")}.`,
    );
  }

  /** Whether a field is there and not null. */
  has(key: string): boolean {
    return this.#value(key) !== undefined;
  }

  /** A field of its own; Python's `None` arrives as null. */
  #value(key: string): unknown {
    return Object.hasOwn(this.#fields, key) ? (this.#fields[key] ?? undefined) : undefined;
  }

  #complaint(key: string, expected: string): HostRequestError {
    return new HostRequestError(
      `${this.#label}: ${key} must be ${expected}, not ${shown(this.#value(key))}.`,
    );
  }
}

const MAX_SHOWN_CHARS = 60;

function shown(value: unknown): string {
  if (value === undefined) return "absent";
  const json = JSON.stringify(value) ?? typeof value;
  return json.length > MAX_SHOWN_CHARS ? `${json.slice(0, MAX_SHOWN_CHARS)}…` : json;
}
