/**
 * The rows of the prompt on the screen: what to write to draw, redraw and remove them. Makes
 * strings and writes nothing. The only place where the cursor is moved.
 */

import type { PromptLayout } from "./prompt-layout.ts";

/** Colours of a prompt's parts. */
export interface PromptPaint {
  /** Paints the label, which the first row begins with. */
  label(text: string): string;
  labelLength: number;
}

/** See the head of this file. */
export class PromptArea {
  #drawn: PromptLayout | undefined;

  /** Whether it is on the screen. */
  get isShown(): boolean {
    return this.#drawn !== undefined;
  }

  /** Rows that are on the screen. */
  get height(): number {
    return this.#drawn?.rows.length ?? 0;
  }

  /** Draws at the cursor, which must be at the start of a row, or in place of what is drawn. */
  draw(layout: PromptLayout, columns: number, paint: PromptPaint): string {
    const before = this.erase(columns);
    this.#drawn = layout;
    const rows = layout.rows.map(({ text }, index) =>
      index === 0 ? paintLabel(text, paint) : text,
    );
    const up = moveUp(layout.rows.length - 1 - layout.cursorRow);
    // Absolute, so that a terminal with other ideas of a character's width is only off inside the row.
    return `${before}${rows.join("\r\n")}${up}\r${moveRight(layout.cursorColumn)}`;
  }

  /** Removes it; the cursor is where its first row began. `columns` is the window's present width. */
  erase(columns: number): string {
    if (!this.#drawn) return "";
    const above = rowsAboveCursor(this.#drawn, columns);
    this.#drawn = undefined;
    return `${moveUp(above)}\r\x1b[J`;
  }

  /** Forgets what is drawn without removing it: it is gone, or stays where it is. */
  forget(): void {
    this.#drawn = undefined;
  }
}

/** How far the cursor has to go up to the prompt's first row; a narrower window has wrapped the rows. */
function rowsAboveCursor(drawn: PromptLayout, columns: number): number {
  const width = Math.max(1, columns);
  let above = Math.floor(drawn.cursorColumn / width);
  for (const row of drawn.rows.slice(0, drawn.cursorRow)) {
    above += Math.max(1, Math.ceil(row.width / width));
  }
  return above;
}

function paintLabel(row: string, { label, labelLength }: PromptPaint): string {
  return label(row.slice(0, labelLength)) + row.slice(labelLength);
}

/** Moves the cursor up. */
export function moveUp(rows: number): string {
  return rows > 0 ? `\x1b[${rows}A` : "";
}

function moveRight(columns: number): string {
  return columns > 0 ? `\x1b[${columns}C` : "";
}
