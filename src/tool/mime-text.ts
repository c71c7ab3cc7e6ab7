/** The text of a MIME bundle that a model should read. */

import type { MimeBundle } from "../kernel/execution.ts";

/** Shown in this order where there is no plain text, or only the name of a wrapper object. */
const OTHER_TYPES = [
  "text/markdown",
  "text/latex",
  "application/json",
  "text/html",
  "application/javascript",
];

/** The best text of a bundle: what a person would read, not the repr of a wrapper object. */
export function plainText(data: MimeBundle): string {
  const plain = asText(data["text/plain"]);
  const isWrapper = /^<IPython\.core\.display\.\w+ object>$/.test(plain.trim());
  if (plain && !isWrapper) return plain;
  const other = OTHER_TYPES.find((type) => type in data);
  return other === undefined ? plain : asText(data[other]);
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((line) => typeof line === "string"))
    return value.join("");
  return value === undefined ? "" : (JSON.stringify(value, null, 2) ?? "");
}
