/** The file that takes the full text of an output that is cut. */

import { closeSync, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { debug } from "../log.ts";

/** How much of one output is kept. */
const MAX_BYTES = 256 * 1024 * 1024;
const BUFFER_BYTES = 256 * 1024;

const encoder = new TextEncoder();

/** See the head of this file. Never throws: what can't be written is described. */
export class SpillFile {
  readonly #path: string | undefined;
  #fd: number | undefined;
  #buffer: Uint8Array | undefined;
  #bytes = 0;
  #failed = false;

  /** Makes the file, which must not exist; without a path nothing is kept. */
  constructor(path: string | undefined) {
    this.#path = path;
    if (path === undefined) return;
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      this.#fd = openSync(path, "wx", 0o600);
    } catch (error) {
      this.#fail(error);
    }
  }

  /** Appends text as UTF-8; halves of surrogate pairs become U+FFFD. */
  write(text: string): void {
    this.#buffer ??= new Uint8Array(BUFFER_BYTES);
    for (let rest = text; rest && this.#fd !== undefined;) {
      const { read, written } = encoder.encodeInto(rest, this.#buffer);
      this.#writeBytes(this.#buffer.subarray(0, written));
      rest = rest.slice(read);
    }
  }

  /** Closes the file; later writes are ignored. */
  close(): void {
    if (this.#fd !== undefined) closeSync(this.#fd);
    this.#fd = undefined;
    this.#buffer = undefined;
  }

  /** Where the full text is, for the reader of the part that is shown. */
  get description(): string {
    if (this.#path === undefined || this.#bytes === 0) return "it could not be kept in a file";
    if (this.#failed || this.#bytes >= MAX_BYTES)
      return `the first ${this.#bytes} bytes: ${this.#path}`;
    return `full text: ${this.#path}`;
  }

  #writeBytes(bytes: Uint8Array): void {
    const room = Math.min(bytes.length, MAX_BYTES - this.#bytes);
    try {
      for (let written = 0; written < room;)
        written += writeSync(this.#fd as number, bytes, written, room - written);
      this.#bytes += room;
    } catch (error) {
      this.#fail(error);
      return;
    }
    if (this.#bytes >= MAX_BYTES) this.close();
  }

  #fail(error: unknown): void {
    debug("tool", `the full output can't be kept in ${this.#path}`, error);
    this.#failed = true;
    this.close();
  }
}
