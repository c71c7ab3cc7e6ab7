/** The last part of a text stream, in bounded memory: what to quote when a process has died, and the like. */

import { debug } from "../log.ts";

/** Enough for a crash's message and its stack of up to 100 frames, which end what a process writes. */
const DEFAULT_TAIL_CHARS = 32_768;

/** Keeps the last characters of what is pushed into it. */
export class TextTail {
  readonly #limit: number;
  #text = "";
  #pushed = 0;

  constructor(limit = DEFAULT_TAIL_CHARS) {
    this.#limit = limit;
  }

  push(text: string): void {
    this.#pushed += text.length;
    if (text.length >= this.#limit) {
      this.#text = copyEnd(text, this.#limit);
      return;
    }
    this.#text += text;
    // Cutting at twice the limit keeps the cost linear in what is pushed.
    if (this.#text.length > 2 * this.#limit) this.#text = copyEnd(this.#text, this.#limit);
  }

  /** How many characters were pushed. */
  get pushed(): number {
    return this.#pushed;
  }

  /** The last characters, as many as the limit allows; may begin with half a surrogate pair. */
  get text(): string {
    return this.#text.slice(-this.#limit);
  }

  /** The last `lines` lines, without a trailing line break. */
  lines(lines: number): string {
    return this.text.trimEnd().split("\n").slice(-lines).join("\n");
  }

  /** Forgets everything. */
  clear(): void {
    this.#text = "";
    this.#pushed = 0;
  }
}

/** The last characters of a text as a copy: a mere slice would keep the whole text in memory. */
function copyEnd(text: string, length: number): string {
  return Buffer.from(text.slice(-length), "utf16le").toString("utf16le");
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
