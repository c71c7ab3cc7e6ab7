/** How a prompt's text lies in rows on the screen, and where its cursor is. */

import { graphemes } from "./graphemes.ts";
import type { Line } from "./line-motion.ts";

/** What is to be laid out. */
export interface PromptView extends Line {
  /** Before the first row, plain. */
  label: string;
  columns: number;
  /** Rows that may be used; of a longer text those around the cursor are shown. */
  maxRows: number;
}

/** One row: what to write, and how many columns it takes. */
export interface PromptRow {
  text: string;
  width: number;
}

/** The rows with the place of the cursor in them, both from 0. */
export interface PromptLayout {
  rows: PromptRow[];
  cursorRow: number;
  cursorColumn: number;
}

/** Further rows begin so far from the edge, where there is room. */
const INDENT = 2;

/** In a narrower window every column is for the text. */
const MIN_COLUMNS_FOR_INDENT = 12;

/** Columns that a tab is shown as. */
const TAB_WIDTH = 4;

/** With fewer rows there is no room to say how many are hidden. */
const MIN_ROWS_FOR_MARKS = 4;

/** Lays the text out. No row is wider than the window, and the cursor is always in a row. */
export function layoutPrompt(view: PromptView): PromptLayout {
  const columns = Math.max(1, view.columns);
  const flow = new Flow(columns, view.label);
  let index = 0;
  for (const line of view.text.split("\n")) {
    if (index > 0) flow.breakRow();
    for (const character of graphemes(line)) {
      if (index === view.cursor) flow.markCursor(widthOf(character));
      flow.put(character);
      index += character.length;
    }
    if (index === view.cursor) flow.markCursor(1);
    index += 1;
  }
  return clipRows(flow.finish(), columns, view.maxRows);
}

/** How many rows plain output takes that the terminal itself wraps; colours take no room. */
export function outputRows(text: string, columns: number): number {
  let rows = 1;
  let width = 0;
  for (const character of graphemes(Bun.stripANSI(text))) {
    const added = character === "\t" ? tabStop(width, columns) - width : Bun.stringWidth(character);
    if (width + added > columns) {
      rows += 1;
      width = 0;
    }
    width += added;
  }
  return rows;
}

/** A terminal's tab goes to the next column that is a multiple of 8, but not past the last one. */
function tabStop(width: number, columns: number): number {
  return Math.max(width, Math.min(columns - 1, (Math.floor(width / 8) + 1) * 8));
}

/** Puts characters into rows. */
class Flow {
  readonly #columns: number;
  readonly #indent: string;
  readonly #rows: PromptRow[] = [];
  #text: string;
  #width: number;
  #cursor = { row: 0, column: 0 };

  constructor(columns: number, label: string) {
    this.#columns = columns;
    this.#indent = columns < MIN_COLUMNS_FOR_INDENT ? "" : " ".repeat(INDENT);
    const fits = Bun.stringWidth(label) < columns;
    this.#text = fits ? label : "";
    this.#width = fits ? Bun.stringWidth(label) : 0;
  }

  /** The cursor is here, before something of this width. */
  markCursor(width: number): void {
    this.#makeRoom(width);
    this.#cursor = { row: this.#rows.length, column: this.#width };
  }

  put(character: string): void {
    const width = widthOf(character);
    this.#makeRoom(width);
    this.#text += character === "\t" ? " ".repeat(width) : character;
    this.#width += width;
  }

  breakRow(): void {
    this.#rows.push({ text: this.#text, width: this.#width });
    this.#text = this.#indent;
    this.#width = this.#indent.length;
  }

  finish(): PromptLayout {
    this.#rows.push({ text: this.#text, width: this.#width });
    const { row, column } = this.#cursor;
    return { rows: this.#rows, cursorRow: row, cursorColumn: column };
  }

  /** Goes to the next row when the present one has no room; a row takes at least one character. */
  #makeRoom(width: number): void {
    const isFresh = this.#text === this.#indent && this.#rows.length > 0;
    if (this.#width + width > this.#columns && !isFresh) this.breakRow();
  }
}

function widthOf(character: string): number {
  return character === "\t" ? TAB_WIDTH : Bun.stringWidth(character);
}

/** The rows around the cursor, with a mark in place of those that are left out. */
function clipRows(layout: PromptLayout, columns: number, maxRows: number): PromptLayout {
  const { rows, cursorRow } = layout;
  const height = Math.max(1, maxRows);
  if (rows.length <= height) return layout;
  const start = Math.max(0, Math.min(cursorRow - Math.floor(height / 2), rows.length - height));
  const shown = rows.slice(start, start + height);
  if (height >= MIN_ROWS_FOR_MARKS) {
    const below = rows.length - start - height;
    if (start > 0) shown[0] = mark(start + 1, "above", columns);
    if (below > 0) shown[height - 1] = mark(below + 1, "below", columns);
  }
  return { ...layout, rows: shown, cursorRow: cursorRow - start };
}

function mark(rows: number, where: string, columns: number): PromptRow {
  const text = ` … ${rows} more rows ${where}`.slice(0, columns);
  return { text, width: Bun.stringWidth(text) };
}
