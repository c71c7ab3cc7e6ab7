/**
 * Turns a terminal's byte soup into plain text, piece by piece: escape
 * sequences go, a carriage return leaves the last state of its line, a
 * backspace removes a character. Sequences may be cut anywhere.
 */

/**
 * ECMA-48 control sequences: CSI; then strings (OSC, DCS, SOS, PM, APC), which end with ST or BEL; then
 * other escapes. CSI and strings also in their 8-bit forms.
 */
const ESCAPES =
  // eslint-disable-next-line no-control-regex
  /(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)|\x1b(?:[ -/]+[0-~]|[0-OQ-WYZ\\`-~])/g;
/** An escape sequence that may still be going on at the end of a chunk. */
const OPEN_ESCAPE =
  /(?:(?:\x1b\[|\x9b)[0-?]*[ -/]*|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*\x1b?|\x1b[ -/]*)$/;
const HAS_ESCAPE = /[\x1b\x90\x98\x9b\x9d-\x9f]/;
/** Control characters that mean nothing in text; tab, line feed, carriage return and backspace are handled. */
const CONTROLS = /[\x00-\x07\x0b\x0c\x0e-\x1f\x7f-\x9f]/g;
const NEEDS_WORK = /[\x00-\x08\x0b-\x1f\x7f-\x9f]/;
const LINE_MOVES = /[\n\r]/g;
const MAX_HELD_ESCAPE = 4_096;
const MAX_HELD_LINE = 65_536;

/** Removes escape sequences and control characters from a whole text. */
export function stripTerminal(text: string): string {
  if (!NEEDS_WORK.test(text)) return text;
  const cleaner = new TerminalCleaner();
  return cleaner.push(text) + cleaner.end();
}

/** See the head of this file. Text that can't change any more is returned as it comes. */
export class TerminalCleaner {
  /** The end of the input that may be the beginning of an escape sequence. */
  #escape = "";
  /** The current line, held back since a carriage return could still overwrite it. */
  #line = "";
  #afterReturn = false;

  /** Takes the next piece and returns the text that is final. */
  push(chunk: string): string {
    const isPlain = !this.#escape && !this.#afterReturn && !NEEDS_WORK.test(chunk);
    const text = isPlain ? this.#takeLines(chunk) : this.#collapse(this.#stripEscapes(chunk));
    return text + this.#takeLongLine();
  }

  /** Returns what was held back. */
  end(): string {
    const rest = this.#line;
    this.#line = "";
    this.#escape = "";
    this.#afterReturn = false;
    return rest;
  }

  #takeLines(chunk: string): string {
    const lineStart = chunk.lastIndexOf("\n") + 1;
    if (lineStart === 0) {
      this.#line += chunk;
      return "";
    }
    const lines = this.#line + chunk.slice(0, lineStart);
    this.#line = chunk.slice(lineStart);
    return lines;
  }

  #stripEscapes(chunk: string): string {
    let text = this.#escape + chunk;
    this.#escape = "";
    if (HAS_ESCAPE.test(text)) {
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
    for (const move of text.matchAll(LINE_MOVES)) {
      this.#append(text.slice(from, move.index));
      from = move.index + 1;
      if (move[0] === "\r") {
        this.#afterReturn = true;
        continue;
      }
      done += `${this.#line}\n`;
      this.#line = "";
      this.#afterReturn = false;
    }
    this.#append(text.slice(from));
    return done;
  }

  /** What is written after a carriage return takes the place of the line. */
  #append(text: string): void {
    const before = this.#afterReturn ? "" : this.#line;
    const line = text.includes("\b") ? eraseBackwards(before + text) : before + text;
    if (!line && this.#afterReturn) return;
    this.#line = line;
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

/** A line whose backspaces have each taken a character back; in linear time. */
function eraseBackwards(line: string): string {
  const parts: string[] = [];
  for (const [index, part] of line.split("\b").entries()) {
    if (index > 0) eraseLast(parts);
    if (part) parts.push(part);
  }
  return parts.join("");
}

function eraseLast(parts: string[]): void {
  const part = parts.pop();
  if (!part) return;
  const rest = part.slice(0, /[\ud800-\udbff][\udc00-\udfff]$/.test(part.slice(-2)) ? -2 : -1);
  if (rest) parts.push(rest);
}
