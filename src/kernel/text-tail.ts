/** The last part of a text stream, in bounded memory: what to quote when a process has died. */

import { debug } from "../log.ts";

const DEFAULT_TAIL_CHARS = 8_192;

/** Keeps the last characters of what is pushed into it. */
export class TextTail {
  #text = "";
  readonly #limit: number;

  constructor(limit = DEFAULT_TAIL_CHARS) {
    this.#limit = limit;
  }

  push(text: string): void {
    this.#text += text;
    // Cutting at twice the limit keeps the cost linear in what is pushed.
    if (this.#text.length > 2 * this.#limit) this.#text = this.#text.slice(-this.#limit);
  }

  /** The last `lines` lines, without a trailing line break. */
  lines(lines = 20): string {
    return this.#text.slice(-this.#limit).trimEnd().split("\n").slice(-lines).join("\n");
  }
}

/** Reads a byte stream to its end into `tail`; never rejects. */
export async function drainInto(tail: TextTail, stream: ReadableStream<Uint8Array>): Promise<void> {
  const decoder = new TextDecoder();
  try {
    for await (const chunk of stream) tail.push(decoder.decode(chunk, { stream: true }));
  } catch (error) {
    debug("kernel", "a kernel's stderr could not be read to its end", error);
  }
}
