/**
 * A window of a terminal for tests: what stands where after the bytes that a program wrote. Knows
 * what our prompt line uses: CR, LF, cursor up and right, clearing, colours; wraps as xterm does.
 */

/** See the head of this file. */
export class ScreenGrid {
  readonly columns: number;
  readonly rows: number;
  /** All lines, those above the window included. A wide character takes two cells, the second empty. */
  #lines: string[][] = [[]];
  #row = 0;
  #column = 0;
  /** The first line of the window. */
  #top = 0;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
  }

  /** Takes what a program writes; the terminal's own driver makes CR LF of LF. */
  write(text: string): void {
    for (const part of text.match(/\x1b\[[0-9;?]*[@-~]|\n|\r|[^\x1b\r\n]+|\x1b/g) ?? []) {
      if (part === "\n") this.#lineFeed();
      else if (part === "\r") this.#column = 0;
      else if (part.startsWith("\x1b")) this.#control(part);
      else for (const { segment } of new Intl.Segmenter().segment(part)) this.#put(segment);
    }
  }

  /** Every line from the first to the last with content, without trailing spaces. */
  get text(): string {
    const lines = this.#lines.map((cells) =>
      Array.from(cells, (cell) => cell ?? " ")
        .join("")
        .trimEnd(),
    );
    return lines.join("\n").trimEnd();
  }

  /** Where the cursor is, from the first line ever written. */
  get cursor(): { row: number; column: number } {
    return { row: this.#row, column: this.#column };
  }

  #put(character: string): void {
    const stop = Math.min(this.columns - 1, (Math.floor(this.#column / 8) + 1) * 8);
    const tab = Math.max(this.#column, stop);
    const width = character === "\t" ? tab - this.#column : Bun.stringWidth(character);
    if (this.#column + width > this.columns) {
      this.#column = 0;
      this.#lineFeed(false);
    }
    const line = this.#lines[this.#row] as string[];
    line[this.#column] = character === "\t" ? " " : character;
    for (let cell = 1; cell < width; cell += 1) {
      line[this.#column + cell] = character === "\t" ? " " : "";
    }
    this.#column += width;
  }

  #lineFeed(toStart = true): void {
    this.#row += 1;
    if (toStart) this.#column = 0;
    this.#lines[this.#row] ??= [];
    this.#top = Math.max(this.#top, this.#row - this.rows + 1);
  }

  #control(sequence: string): void {
    const count = Number(/\d+/.exec(sequence)?.[0] ?? 1);
    switch (sequence.at(-1)) {
      case "A":
        this.#row = Math.max(this.#top, this.#row - count);
        // A cursor that waits at the edge to wrap stands in the last column.
        this.#column = Math.min(this.#column, this.columns - 1);
        return;
      case "C":
        this.#column = Math.min(this.columns - 1, this.#column + count);
        return;
      case "H":
        this.#row = this.#top;
        this.#column = 0;
        return;
      case "J":
        if (count === 2) {
          for (let row = this.#top; row < this.#lines.length; row += 1) this.#lines[row] = [];
        } else {
          this.#lines.splice(this.#row + 1);
          this.#lines[this.#row]?.splice(this.#column);
        }
        return;
      case "m":
        return;
      default:
        throw new Error(`the grid does not know ${JSON.stringify(sequence)}`);
    }
  }
}
