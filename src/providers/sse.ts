/**
 * Incremental parser of server-sent events (WHATWG HTML, section 9.2.6,
 * "Interpreting an event stream"). Bytes in, events out; no I/O. Input may be
 * split anywhere, inside a UTF-8 sequence or between CR and LF too.
 */

/** One event: `event` is its type (`message` when the stream names none). */
export interface SseEvent {
  event: string;
  data: string;
}

/** The longest event that is accepted, in UTF-16 units; a peer that never ends a line can't fill our memory. */
export const MAX_SSE_EVENT_CHARS = 64 * 1024 * 1024;

/** The stream held an event longer than {@link MAX_SSE_EVENT_CHARS}. */
export class SseOverflow extends Error {}

/** Feed it with {@link SseParser.push}; an event that the end of the stream cuts off is discarded, as the standard says. */
export class SseParser {
  readonly #decoder = new TextDecoder("utf-8");
  readonly #limit: number;
  /** Parts of the line that has no end yet; joined once, so that a long line costs no repeated copies. */
  #line: string[] = [];
  #lineChars = 0;
  #data: string[] = [];
  #dataChars = 0;
  #event = "";
  #skipLineFeed = false;

  constructor(limit: number = MAX_SSE_EVENT_CHARS) {
    this.#limit = limit;
  }

  /** The events that `bytes` completes, in order. Throws {@link SseOverflow}. */
  push(bytes: Uint8Array): SseEvent[] {
    // The decoder also drops a leading BOM, and keeps half a character for the next call.
    const text = this.#decoder.decode(bytes, { stream: true });
    const events: SseEvent[] = [];
    let start = 0;
    if (this.#skipLineFeed && text.length > 0) {
      if (text[0] === "\n") start = 1;
      this.#skipLineFeed = false;
    }
    // "Lines must be separated by either a CRLF pair, a single LF, or a single CR."
    const lineEnd = /\r\n|\n|\r/g;
    lineEnd.lastIndex = start;
    for (let match = lineEnd.exec(text); match; match = lineEnd.exec(text)) {
      this.#takeLine(this.#completeLine(text.slice(start, match.index)), events);
      start = lineEnd.lastIndex;
      // A CR at the end of the input may be the first half of a CRLF pair.
      if (match[0] === "\r" && start === text.length) this.#skipLineFeed = true;
    }
    if (start < text.length) {
      this.#line.push(text.slice(start));
      this.#lineChars += text.length - start;
      this.#checkLimit();
    }
    return events;
  }

  #completeLine(end: string): string {
    if (this.#line.length === 0) return end;
    const line = this.#line.join("") + end;
    this.#line = [];
    this.#lineChars = 0;
    return line;
  }

  #takeLine(line: string, events: SseEvent[]): void {
    if (line === "") {
      this.#dispatch(events);
      return;
    }
    const colon = line.indexOf(":");
    // "If the line starts with a U+003A COLON character (:): Ignore the line."
    if (colon === 0) return;
    const field = colon < 0 ? line : line.slice(0, colon);
    let value = colon < 0 ? "" : line.slice(colon + 1);
    // "If value starts with a U+0020 SPACE character, remove it from value."
    if (value.startsWith(" ")) value = value.slice(1);
    if (field === "data") {
      this.#data.push(value);
      this.#dataChars += value.length;
      this.#checkLimit();
    } else if (field === "event") {
      this.#event = value;
    }
  }

  #dispatch(events: SseEvent[]): void {
    const data = this.#data.join("\n");
    const event = this.#event === "" ? "message" : this.#event;
    this.#data = [];
    this.#dataChars = 0;
    this.#event = "";
    // "If the data buffer is an empty string, set the data buffer and the event type buffer to
    // the empty string and return."
    if (data !== "") events.push({ event, data });
  }

  #checkLimit(): void {
    if (this.#lineChars + this.#dataChars > this.#limit) {
      throw new SseOverflow(`an event of the stream is longer than ${this.#limit} characters`);
    }
  }
}
