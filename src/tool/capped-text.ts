/**
 * Text in bounded memory: its head and its tail, with a marker between them
 * and the whole of it in a file. The cap works while receiving.
 */

import { TextTail } from "../kernel/text-tail.ts";
import { SpillFile } from "./spill-file.ts";

/** How much of each stream of a cell the model gets. */
export const DEFAULT_MAX_OUTPUT_CHARS = 65_536;

/** See the head of this file. */
export class CappedText {
  readonly #limit: number;
  readonly #headLimit: number;
  readonly #newFile: () => string | undefined;
  readonly #tail: TextTail;
  #head = "";
  #total = 0;
  #file: SpillFile | undefined;

  /** `newFile` names the file for the full text; it is asked at most once, when the cap is passed. */
  constructor(limit: number, newFile: () => string | undefined) {
    this.#limit = limit;
    this.#headLimit = Math.floor(limit / 2);
    this.#tail = new TextTail(limit - this.#headLimit);
    this.#newFile = newFile;
  }

  /** How many characters were pushed. */
  get length(): number {
    return this.#total;
  }

  push(text: string): void {
    if (!text) return;
    this.#total += text.length;
    if (this.#file) this.#file.write(text);
    else if (this.#total > this.#limit) this.#spill(text);
    const room = this.#headLimit - this.#head.length;
    if (room >= text.length) {
      this.#head += text;
    } else {
      // Copied, since a mere slice would keep the whole text in memory.
      if (room > 0) this.#head += copyOf(text.slice(0, room));
      this.#tail.push(room > 0 ? text.slice(room) : text);
    }
  }

  /** Forgets everything, as `clear_output` asks; the file, if any, keeps what was written. */
  clear(): void {
    this.#head = "";
    this.#tail.clear();
    this.#total = 0;
  }

  /** Head, marker and tail; or everything, when it fits. Always well-formed Unicode. */
  toString(): string {
    const { text: tail } = this.#tail;
    if (this.#total <= this.#limit) return (this.#head + tail).toWellFormed();
    return `${wholeStart(this.#head)}\n${this.#marker()}\n${wholeEnd(tail)}`.toWellFormed();
  }

  /** Closes the file; the text can still be read. */
  close(): void {
    this.#file?.close();
  }

  #spill(text: string): void {
    this.#file = new SpillFile(this.#newFile());
    this.#file.write(this.#head + this.#tail.text);
    this.#file.write(text);
  }

  #marker(): string {
    const kept = this.#file?.description ?? "it could not be kept in a file";
    return `[... output truncated at ${this.#limit} chars ...]\n[of ${this.#total} chars; ${kept}]`;
  }
}

function copyOf(text: string): string {
  return Buffer.from(text, "utf16le").toString("utf16le");
}

/** Without half a character at its end. */
function wholeStart(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}

/** Without half a character at its beginning. */
function wholeEnd(text: string): string {
  return /^[\udc00-\udfff]/.test(text) ? text.slice(1) : text;
}
