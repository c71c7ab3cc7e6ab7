/** Ctrl-R: looks through the history, newest first, while the query is typed. */

import { previousBoundary } from "./graphemes.ts";
import type { Key } from "./key-decoder.ts";
import type { Line } from "./line-motion.ts";

/** What became of the search with a key: it goes on, it is over without a result, or its result is taken. */
export type SearchAnswer = "searching" | "cancelled" | "taken";

const CANCEL_KEYS = new Set(["ctrl-c", "ctrl-g"]);

/** See the head of this file. */
export class HistorySearch {
  readonly #entries: readonly string[];
  #index: number;
  #query = "";

  /** `entries` are oldest first. */
  constructor(entries: readonly string[]) {
    this.#entries = entries;
    this.#index = entries.length;
  }

  /** What was typed so far. */
  get query(): string {
    return this.#query;
  }

  /** The entry that was found, with the cursor where the query is; undefined without one. */
  get found(): Line | undefined {
    const text = this.#entries[this.#index];
    if (text === undefined) return undefined;
    const at = text.toLowerCase().indexOf(this.#query.toLowerCase());
    return { text, cursor: Math.max(0, Math.min(at, text.length)) };
  }

  /** Takes one key. A key that means nothing here takes the result and is then for the editor. */
  press(key: Key): SearchAnswer {
    if (key.type !== "key") {
      this.#query += key.text;
      // The present entry may still match.
      this.#seek(this.#index);
    } else if (key.name === "backspace" || key.name === "ctrl-h") {
      this.#query = this.#query.slice(0, previousBoundary(this.#query, this.#query.length));
      this.#seek(this.#entries.length - 1);
    } else if (key.name === "ctrl-r") {
      this.#seek(this.#index - 1);
    } else {
      return CANCEL_KEYS.has(key.name) ? "cancelled" : "taken";
    }
    return "searching";
  }

  /** Goes to the first match from `start` on towards older entries; stays where it is without one. */
  #seek(start: number): void {
    const query = this.#query.toLowerCase();
    if (query === "") {
      this.#index = this.#entries.length;
      return;
    }
    for (let index = Math.min(start, this.#entries.length - 1); index >= 0; index -= 1) {
      if (this.#entries[index]?.toLowerCase().includes(query)) {
        this.#index = index;
        return;
      }
    }
  }
}
