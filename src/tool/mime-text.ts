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

/** What is longer shows something. */
const MAX_EMPTY_HTML = 2_000;

/** The best text of a bundle: what a person would read, not the repr of a wrapper object. */
export function plainText(data: MimeBundle): string {
  const plain = asText(data["text/plain"]);
  const isWrapper = /^<IPython\.core\.display\.\w+ object>$/.test(plain.trim());
  if (plain && !isWrapper) return plain;
  const other = OTHER_TYPES.find((type) => type in data);
  if (other === undefined) return plain;
  const text = asText(data[other]);
  // A display that says by its empty plain text that there is nothing to see, such as a finished progress bar.
  const isBlank = "text/plain" in data && !isWrapper && other === "text/html" && isEmptyHtml(text);
  return isBlank ? "" : text;
}

function isEmptyHtml(html: string): boolean {
  return html.length < MAX_EMPTY_HTML && html.replace(/<[^>]*>/g, "").trim() === "";
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((line) => typeof line === "string"))
    return value.join("");
  return value === undefined ? "" : (JSON.stringify(value, null, 2) ?? "");
}
