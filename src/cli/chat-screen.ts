/**
 * Output and prompt on one screen. Output only ever goes forward; while a prompt is shown, it
 * stands below the output, and what comes is written above it. A line of output that has not
 * ended is taken up again where it stopped, so that neither ever breaks the other.
 */

import pc from "picocolors";
import type { Line } from "./line-motion.ts";
import { moveUp, PromptArea } from "./prompt-area.ts";
import { layoutPrompt, outputRows } from "./prompt-layout.ts";

/** A window's size in characters. */
export interface ScreenSize {
  columns: number;
  rows: number;
}

/** What a screen works with. */
export interface ScreenOptions {
  write(text: string): void;
  size(): ScreenSize;
  color: boolean;
  /** Calls back a little later; output that comes meanwhile is written above the prompt together. */
  later(callback: () => void): void;
}

/** A prompt to show. */
export interface Prompt extends Line {
  label: string;
}

/** Rows of an entered text that stay on the screen. */
const MAX_ECHO_LINES = 20;

/** See the head of this file. */
export class ChatScreen {
  readonly #options: ScreenOptions;
  readonly #color: ReturnType<typeof pc.createColors>;
  readonly #area = new PromptArea();
  #prompt: Prompt | undefined;
  /** Output since its last line break: what has to be written again when the prompt made room for it. */
  #openLine = "";
  /** Output that waits to be written above the prompt. */
  #held = "";

  constructor(options: ScreenOptions) {
    this.#options = options;
    this.#color = pc.createColors(options.color);
  }

  /** Writes output: above the prompt, where one is shown. */
  write(text: string): void {
    if (text === "") return;
    if (!this.#prompt) return this.#advance(text);
    const isFirst = this.#held === "";
    this.#held += text;
    if (isFirst) this.#options.later(() => this.#release());
  }

  /** Writes whole lines: above a line of output that is still open. */
  insert(lines: string): void {
    this.#release();
    const prompt = this.#prompt;
    if (prompt) this.hidePrompt();
    const openLine = this.#openLine;
    const rows = openLine === "" ? 0 : this.#rowsOf(openLine);
    if (rows > this.#options.size().rows) {
      // It can't be moved down any more: what follows goes on in a line of its own.
      this.#openLine = "";
      this.#options.write(`\n${lines}`);
    } else {
      const erase = rows === 0 ? "" : `${moveUp(rows - 1)}\r\x1b[J`;
      this.#options.write(`${erase}${lines}${openLine}`);
    }
    if (prompt) this.showPrompt(prompt);
  }

  /** Shows a prompt, or what became of it. */
  showPrompt(prompt: Prompt): void {
    const fresh = this.#area.isShown ? "" : this.#lineBreak();
    this.#prompt = prompt;
    this.#options.write(fresh + this.#draw());
  }

  /** Takes the prompt away. */
  hidePrompt(): void {
    const before = this.#removePrompt();
    this.#prompt = undefined;
    this.#options.write(before);
    this.#release();
  }

  /** Takes the prompt away and leaves what was entered in the output, above a line that is still open. */
  enterPrompt(prompt: Prompt): void {
    this.hidePrompt();
    this.insert(`${this.#echo(prompt)}\n`);
  }

  /** Begins at the top of an empty window. */
  clear(): void {
    this.#release();
    this.#area.forget();
    this.#openLine = "";
    this.#options.write(`\x1b[H\x1b[2J${this.#prompt ? this.#draw() : ""}`);
  }

  /** Leaves the screen to others, on a fresh line and without a prompt. */
  leave(): void {
    this.hidePrompt();
    this.#options.write(this.#lineBreak());
    this.#openLine = "";
  }

  /** Takes a screen that others may have written to: what was shown stays, and what comes is below it. */
  takeBack(): void {
    if (this.#area.isShown) this.#options.write("\r\n");
    this.#area.forget();
    this.#openLine = "";
  }

  #draw(): string {
    const { label, text, cursor } = this.#prompt as Prompt;
    const { columns, rows } = this.#options.size();
    const layout = layoutPrompt({ label, text, cursor, columns, maxRows: rows - 1 });
    const paint = { label: this.#color.bold, labelLength: label.length };
    return this.#area.draw(layout, columns, paint);
  }

  /** Removes the prompt from the screen and goes back to the end of the output. */
  #removePrompt(): string {
    if (!this.#area.isShown) return "";
    const { columns, rows } = this.#options.size();
    const { height } = this.#area;
    const erase = this.#area.erase(columns);
    if (this.#openLine === "") return erase;
    const openRows = this.#rowsOf(this.#openLine);
    if (openRows + height > rows) {
      // Its beginning has left the window: what follows goes on in a line of its own.
      this.#openLine = "";
      return erase;
    }
    return `${erase}${moveUp(openRows)}\r\x1b[J${this.#openLine}`;
  }

  /** Writes what was held back. */
  #release(): void {
    const held = this.#held;
    this.#held = "";
    if (held !== "") this.#advance(held);
  }

  #advance(text: string): void {
    const before = this.#removePrompt();
    this.#options.write(before + text + this.#afterOutput(text));
  }

  /** Keeps track of the open line, and draws the prompt again. */
  #afterOutput(text: string): string {
    const lastBreak = text.lastIndexOf("\n");
    this.#openLine = lastBreak < 0 ? this.#openLine + text : text.slice(lastBreak + 1);
    if (!this.#prompt) return "";
    return this.#lineBreak() + this.#draw();
  }

  /** What starts a new row, where the output is in the middle of one. */
  #lineBreak(): string {
    return this.#openLine === "" ? "" : "\n";
  }

  #rowsOf(openLine: string): number {
    return outputRows(openLine, this.#options.size().columns);
  }

  #echo({ label, text }: Prompt): string {
    const lines = text.replaceAll("\t", "    ").split("\n");
    const shown = lines.slice(0, MAX_ECHO_LINES);
    const more = lines.length - shown.length;
    const rest = shown.slice(1).map((line) => `\n  ${line}`);
    const mark = more > 0 ? this.#color.dim(`\n  … ${more} more lines`) : "";
    return `${this.#color.bold(label)}${shown[0]}${rest.join("")}${mark}`;
  }
}
