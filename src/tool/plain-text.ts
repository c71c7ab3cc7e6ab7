/**
 * Turns a terminal's byte soup into plain text, piece by piece: escape
 * sequences go, a carriage return leaves the last state of its line, a
 * backspace removes a character. Sequences may be cut anywhere.
 */

/** ECMA-48: CSI, then string sequences (OSC, DCS, SOS, PM, APC), then two- and three-byte escapes. */
const ESCAPES =
  // eslint-disable-next-line no-control-regex
  /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]+[0-~]|[0-Z\\`-~])/g;
/** An escape sequence that may still be going on at the end of a chunk. */
const OPEN_ESCAPE = /\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?|[ -/]*)$/;
/** Control characters that mean nothing in text; tab, line feed, carriage return and backspace are handled. */
const CONTROLS = /[\x00-\x07\x0b\x0c\x0e-\x1f\x7f]/g;
const NEEDS_WORK = /[\x00-\x08\x0b-\x1f\x7f]/;
const MAX_HELD_ESCAPE = 4_096;
const MAX_HELD_LINE = 65_536;

/** Removes escape sequences and control characters from a whole text. */
export function stripTerminal(text: string): string {
  const cleaner = new TerminalCleaner();
  return cleaner.push(text) + cleaner.end();
}

/** See the head of this file. Text that can't change any more is returned as it comes. */
export class TerminalCleaner {
  /** The end of the input that may be the beginning of an escape sequence. */
  #escape = "";
  /** The current line, held back only while a carriage return could still overwrite it. */
  #line = "";
  #afterReturn = false;

  /** Takes the next piece and returns the text that is final. */
  push(chunk: string): string {
    if (!this.#escape && !this.#line && !this.#afterReturn && !NEEDS_WORK.test(chunk)) {
      const lineStart = chunk.lastIndexOf("\n") + 1;
      this.#line = chunk.slice(lineStart);
      return chunk.slice(0, lineStart) + this.#takeLongLine();
    }
    return this.#collapse(this.#stripEscapes(chunk)) + this.#takeLongLine();
  }

  /** Returns what was held back. */
  end(): string {
    const rest = this.#line;
    this.#line = "";
    this.#escape = "";
    this.#afterReturn = false;
    return rest;
  }

  /** The current, unfinished line: what a reader would see of it now. */
  get pendingLine(): string {
    return this.#line;
  }

  #stripEscapes(chunk: string): string {
    let text = this.#escape + chunk;
    this.#escape = "";
    if (text.includes("\x1b")) {
      text = text.replace(ESCAPES, "");
      const open = OPEN_ESCAPE.exec(text);
      if (open && open[0].length <= MAX_HELD_ESCAPE) {
        this.#escape = open[0];
        text = text.slice(0, open.index);
      }
    }
    return text.replace(CONTROLS, "");
  }

  #collapse(text: string): string {
    let done = "";
    let from = 0;
    for (;;) {
      const at = nextSpecial(text, from);
      this.#append(text.slice(from, at < 0 ? undefined : at));
      if (at < 0) return done;
      const special = text[at];
      if (special === "\n") {
        done += `${this.#line}\n`;
        this.#line = "";
        this.#afterReturn = false;
      } else if (special === "\r") {
        this.#afterReturn = true;
      } else {
        this.#line = this.#line.slice(0, -1);
      }
      from = at + 1;
    }
  }

  #append(text: string): void {
    if (!text) return;
    // What is written after a carriage return takes the place of the line.
    this.#line = this.#afterReturn ? text : this.#line + text;
    this.#afterReturn = false;
  }

  /** A line without an end is let go, so that memory stays bounded. */
  #takeLongLine(): string {
    if (this.#line.length <= MAX_HELD_LINE || this.#afterReturn) return "";
    const line = this.#line;
    this.#line = "";
    return line;
  }
}

function nextSpecial(text: string, from: number): number {
  for (let index = from; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    if (code === 10 || code === 13 || code === 8) return index;
  }
  return -1;
}
