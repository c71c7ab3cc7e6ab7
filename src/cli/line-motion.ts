/** Where the cursor can go in a text: pure functions from an index to an index. */

import { graphemes, nextBoundary, previousBoundary } from "./graphemes.ts";

/** A text and a place in it, in UTF-16 units, always between two characters. */
export interface Line {
  text: string;
  cursor: number;
}

/** The start of the line that the cursor is in. */
export function lineStart({ text, cursor }: Line): number {
  return cursor === 0 ? 0 : text.lastIndexOf("\n", cursor - 1) + 1;
}

/** The end of the line that the cursor is in. */
export function lineEnd({ text, cursor }: Line): number {
  const end = text.indexOf("\n", cursor);
  return end < 0 ? text.length : end;
}

/** The character before. */
export function charLeft({ text, cursor }: Line): number {
  return previousBoundary(text, cursor);
}

/** The character after. */
export function charRight({ text, cursor }: Line): number {
  return nextBoundary(text, cursor);
}

/** The start of the word before: letters and digits. */
export function wordLeft({ text, cursor }: Line): number {
  return (
    cursor -
    (/[\p{L}\p{M}\p{N}_]*[^\p{L}\p{M}\p{N}_]*$/u.exec(text.slice(0, cursor))?.[0].length ?? 0)
  );
}

/** The end of the word after: letters and digits. */
export function wordRight({ text, cursor }: Line): number {
  return (
    cursor + (/^[^\p{L}\p{M}\p{N}_]*[\p{L}\p{M}\p{N}_]*/u.exec(text.slice(cursor))?.[0].length ?? 0)
  );
}

/** The start of what is between spaces before the cursor. */
export function spacedWordLeft({ text, cursor }: Line): number {
  return cursor - (/\S*\s*$/u.exec(text.slice(0, cursor))?.[0].length ?? 0);
}

/** The column that the cursor is in, from 0. */
export function columnOf(line: Line): number {
  return Bun.stringWidth(line.text.slice(lineStart(line), line.cursor));
}

/** The place in the line above that is nearest to `column`; undefined in the first line. */
export function lineUp(line: Line, column: number): number | undefined {
  const start = lineStart(line);
  if (start === 0) return undefined;
  return placeAt(line.text, lineStart({ ...line, cursor: start - 1 }), column);
}

/** The place in the line below that is nearest to `column`; undefined in the last line. */
export function lineDown(line: Line, column: number): number | undefined {
  const end = lineEnd(line);
  return end === line.text.length ? undefined : placeAt(line.text, end + 1, column);
}

function placeAt(text: string, start: number, column: number): number {
  let index = start;
  let width = 0;
  for (const character of graphemes(text.slice(start, lineEnd({ text, cursor: start })))) {
    width += Bun.stringWidth(character);
    if (width > column) break;
    index += character.length;
  }
  return index;
}
