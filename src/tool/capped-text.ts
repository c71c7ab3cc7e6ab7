/**
 * Text in bounded memory: its head and its tail, with a marker between them
 * and the whole of it in a file. The cap works while receiving.
 */

import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { debug } from "../log.ts";

/** How much of each stream of a cell the model gets. */
export const DEFAULT_MAX_OUTPUT_CHARS = 65_536;
/** How much of a stream goes into the file with the full text. */
const MAX_FILE_BYTES = 256 * 1024 * 1024;

/** See the head of this file. */
export class CappedText {
  readonly #limit: number;
  readonly #newFile: () => string | undefined;
  #head = "";
  #tail = "";
  #total = 0;
  #fileAsked = false;
  #file: { path: string; fd: number; bytes: number; cut: boolean } | undefined;

  /** `newFile` names the file for the full text; it is asked at most once, when the cap is passed. */
  constructor(limit: number, newFile: () => string | undefined) {
    this.#limit = limit;
    this.#newFile = newFile;
  }

  /** How many characters were pushed. */
  get length(): number {
    return this.#total;
  }

  push(text: string): void {
    if (!text) return;
    this.#total += text.length;
    if (this.#file) this.#write(text);
    else if (this.#total > this.#limit && !this.#fileAsked) this.#openFile(text);
    const room = this.#headLimit - this.#head.length;
    if (room > 0 && !this.#tail) {
      this.#head += text.slice(0, room);
      text = text.slice(room);
    }
    this.#tail += text;
    // Cutting at twice the size keeps the cost linear in what is pushed.
    if (this.#tail.length > 2 * this.#limit) this.#tail = this.#tail.slice(-this.#tailLimit);
  }

  /** Forgets everything, as `clear_output` asks; the file, if any, keeps what was written. */
  clear(): void {
    this.#head = "";
    this.#tail = "";
    this.#total = 0;
  }

  /** Head, marker and tail; or everything, when it fits. Always well-formed Unicode. */
  toString(): string {
    if (this.#total <= this.#limit) return (this.#head + this.#tail).toWellFormed();
    const tail = this.#tail.slice(-this.#tailLimit);
    return `${wholeStart(this.#head)}\n${this.#marker()}\n${wholeEnd(tail)}`.toWellFormed();
  }

  /** Closes the file; the text can still be read. */
  close(): void {
    if (this.#file) closeSync(this.#file.fd);
  }

  get #headLimit(): number {
    return Math.floor(this.#limit / 2);
  }

  get #tailLimit(): number {
    return this.#limit - this.#headLimit;
  }

  #marker(): string {
    const marker = `[... output truncated at ${this.#limit} chars ...]`;
    if (!this.#file) return `${marker}\n[all ${this.#total} chars could not be kept in a file]`;
    const kept = this.#file.cut ? `the first ${this.#file.bytes} bytes` : "full text";
    return `${marker}\n[${kept} of ${this.#total} chars: ${this.#file.path}]`;
  }

  #openFile(text: string): void {
    this.#fileAsked = true;
    const path = this.#newFile();
    if (!path) return;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      this.#file = { path, fd: openSync(path, "wx", 0o600), bytes: 0, cut: false };
    } catch (error) {
      debug("tool", "the full output can't be kept in a file", error);
      return;
    }
    this.#write(this.#head + this.#tail + text);
  }

  #write(text: string): void {
    const file = this.#file;
    if (!file || file.cut) return;
    const bytes = Buffer.from(text.toWellFormed());
    const room = Math.min(bytes.length, MAX_FILE_BYTES - file.bytes);
    try {
      let written = 0;
      while (written < room) written += writeSync(file.fd, bytes, written, room - written);
      file.bytes += room;
      file.cut = room < bytes.length;
    } catch (error) {
      debug("tool", `writing ${file.path} failed`, error);
      file.cut = true;
    }
  }
}

/** Without half a character at its end. */
function wholeStart(text: string): string {
  return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
}

/** Without half a character at its beginning. */
function wholeEnd(text: string): string {
  return /^[\udc00-\udfff]/.test(text) ? text.slice(1) : text;
}
