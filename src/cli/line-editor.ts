/**
 * The editor of the prompt line, as a state machine: keys in, text and cursor out. It knows no
 * terminal; prompt-layout.ts says how the text lies on the screen.
 */

import { HistorySearch } from "./history-search.ts";
import type { Key } from "./key-decoder.ts";
import {
  charLeft,
  charRight,
  columnOf,
  lineDown,
  lineEnd,
  lineStart,
  lineUp,
  spacedWordLeft,
  wordLeft,
  wordRight,
  type Line,
} from "./line-motion.ts";

/** What a key asks of whoever owns the editor, where it is more than editing. */
export type EditorAction =
  | { type: "submit"; text: string }
  /** Ctrl-C. The text is left as it is. */
  | { type: "interrupt" }
  /** Ctrl-D with nothing typed. */
  | { type: "end" }
  /** Ctrl-Z. */
  | { type: "suspend" }
  /** Ctrl-L. */
  | { type: "clear-screen" };

/** What an editor works with. */
export interface EditorOptions {
  /** What was entered before, oldest first; read when it is needed. */
  history(): readonly string[];
  /** What Tab makes of the text before the cursor; the same text when there is nothing to add. */
  complete?(text: string): string;
}

/** Keys that move the cursor. */
const MOTIONS: Readonly<Record<string, (line: Line) => number>> = {
  left: charLeft,
  "ctrl-b": charLeft,
  right: charRight,
  "ctrl-f": charRight,
  "ctrl-left": wordLeft,
  "alt-left": wordLeft,
  "alt-b": wordLeft,
  "ctrl-right": wordRight,
  "alt-right": wordRight,
  "alt-f": wordRight,
  home: lineStart,
  "ctrl-a": lineStart,
  end: lineEnd,
  "ctrl-e": lineEnd,
  "ctrl-home": () => 0,
  "alt-<": () => 0,
  "ctrl-end": ({ text }) => text.length,
  "alt->": ({ text }) => text.length,
};

/** Keys that remove one character: to where. */
const DELETIONS: Readonly<Record<string, (line: Line) => number>> = {
  backspace: charLeft,
  "shift-backspace": charLeft,
  "ctrl-h": charLeft,
  delete: charRight,
  "ctrl-d": charRight,
};

/** Keys that cut: to where. Ctrl-Y brings back what was cut last. */
const CUTS: Readonly<Record<string, (line: Line) => number>> = {
  "ctrl-u": (line) => atLeastOne(line, lineStart(line), charLeft),
  "ctrl-k": (line) => atLeastOne(line, lineEnd(line), charRight),
  "ctrl-w": spacedWordLeft,
  "ctrl-backspace": spacedWordLeft,
  "alt-backspace": wordLeft,
  "ctrl-alt-h": wordLeft,
  "alt-d": wordRight,
  "ctrl-delete": wordRight,
};

/** At the edge of a line, cutting joins it with its neighbour. */
function atLeastOne(line: Line, to: number, step: (line: Line) => number): number {
  return to === line.cursor ? step(line) : to;
}

const NEW_LINE_KEYS = new Set(["ctrl-j", "alt-enter", "shift-enter", "ctrl-enter", "ctrl-alt-j"]);

/** See the head of this file. */
export class LineEditor {
  readonly #options: EditorOptions;
  #line: Line = { text: "", cursor: 0 };
  #cut = "";
  /** The column that up and down try to keep; undefined after any other key. */
  #goalColumn: number | undefined;
  /** The place in the history that is shown, and what was typed before. */
  #recall: { index: number; draft: string } | undefined;
  /** Whether the last key recalled an entry: up and down then go on through the history. */
  #isBrowsing = false;
  #search: HistorySearch | undefined;

  constructor(options: EditorOptions) {
    this.#options = options;
  }

  /** The text with its cursor; during a search, the entry that was found. */
  get line(): Line {
    return this.#search?.found ?? this.#line;
  }

  /** What is searched for in the history; undefined when nothing is. */
  get searchQuery(): string | undefined {
    return this.#search?.query;
  }

  /** Whether nothing is typed. */
  get isEmpty(): boolean {
    return this.#line.text === "" && !this.#search;
  }

  /** Replaces the text; the cursor goes to its end. */
  setText(text: string): void {
    this.#line = { text, cursor: text.length };
    this.#recall = undefined;
    this.#isBrowsing = false;
    this.#goalColumn = undefined;
    this.#search = undefined;
  }

  /** Takes one key. The action, if any, is for the owner; everything else shows in {@link line}. */
  press(key: Key): EditorAction | undefined {
    if (this.#search && !this.#leaveSearch(this.#search, key)) return undefined;
    if (key.type !== "key") {
      this.#insert(key.text);
      return undefined;
    }
    const action = this.#act(key.name);
    if (action === "edit") this.#edit(key.name);
    return action === "edit" ? undefined : action;
  }

  #act(name: string): EditorAction | "edit" {
    if (name === "enter") return this.#enter();
    if (name === "ctrl-c") return { type: "interrupt" };
    if (name === "ctrl-d" && this.#line.text === "") return { type: "end" };
    if (name === "ctrl-z") return { type: "suspend" };
    if (name === "ctrl-l") return { type: "clear-screen" };
    return "edit";
  }

  /** A backslash at the end makes Enter a line break; two of them are text. */
  #enter(): EditorAction | "edit" {
    const { text, cursor } = this.#line;
    const slashes = /\\*$/.exec(text.slice(0, cursor))?.[0].length ?? 0;
    if (cursor === text.length && slashes % 2 === 1) {
      this.#line = { text: text.slice(0, -1), cursor: cursor - 1 };
      return "edit";
    }
    this.setText("");
    return { type: "submit", text };
  }

  #edit(name: string): void {
    if (name === "up" || name === "ctrl-p") return this.#up();
    if (name === "down" || name === "ctrl-n") return this.#down();
    this.#goalColumn = undefined;
    this.#isBrowsing = false;
    const motion = MOTIONS[name];
    if (motion) this.#line = { ...this.#line, cursor: motion(this.#line) };
    else if (DELETIONS[name]) this.#remove(DELETIONS[name](this.#line));
    else if (CUTS[name]) this.#cut = this.#remove(CUTS[name](this.#line)) || this.#cut;
    else if (name === "enter" || NEW_LINE_KEYS.has(name)) this.#insert("\n");
    else if (name === "ctrl-y") this.#insert(this.#cut);
    else if (name === "tab") this.#complete();
    else if (name === "ctrl-r") this.#search = new HistorySearch(this.#options.history());
  }

  #insert(added: string): void {
    const { text, cursor } = this.#line;
    const before = (text.slice(0, cursor) + added).toWellFormed();
    this.#line = { text: before + text.slice(cursor), cursor: before.length };
    this.#goalColumn = undefined;
    this.#forgetRecall();
  }

  /** Removes what lies between the cursor and `to`; returns it. */
  #remove(to: number): string {
    const { text, cursor } = this.#line;
    const [start, end] = to < cursor ? [to, cursor] : [cursor, to];
    this.#line = { text: text.slice(0, start) + text.slice(end), cursor: start };
    this.#forgetRecall();
    return text.slice(start, end);
  }

  #up(): void {
    this.#goalColumn ??= columnOf(this.#line);
    const above = this.#isBrowsing ? undefined : lineUp(this.#line, this.#goalColumn);
    if (above !== undefined) this.#line = { ...this.#line, cursor: above };
    else this.#recallEntry((this.#recall?.index ?? this.#options.history().length) - 1);
  }

  #down(): void {
    this.#goalColumn ??= columnOf(this.#line);
    const below = this.#isBrowsing ? undefined : lineDown(this.#line, this.#goalColumn);
    if (below !== undefined) this.#line = { ...this.#line, cursor: below };
    else if (this.#recall) this.#recallEntry(this.#recall.index + 1);
  }

  /** Shows an entry of the history; past the newest, what was typed before. */
  #recallEntry(index: number): void {
    const history = this.#options.history();
    const draft = this.#recall?.draft ?? this.#line.text;
    const text = index >= history.length ? draft : history[index];
    if (text === undefined) return;
    this.setText(text);
    this.#isBrowsing = true;
    if (index < history.length) this.#recall = { index, draft };
  }

  /** An entry that was changed is a text of its own; the history begins at its end again. */
  #forgetRecall(): void {
    this.#recall = undefined;
    this.#isBrowsing = false;
  }

  #complete(): void {
    const { text, cursor } = this.#line;
    const before = this.#options.complete?.(text.slice(0, cursor)) ?? text.slice(0, cursor);
    this.#line = { text: before + text.slice(cursor), cursor: before.length };
  }

  /** Gives a key to the search; true when it ended the search and still means something. */
  #leaveSearch(search: HistorySearch, key: Key): boolean {
    const answer = search.press(key);
    if (answer === "searching") return false;
    if (answer === "cancelled") {
      this.#search = undefined;
      return false;
    }
    const { text, cursor } = search.found ?? this.#line;
    this.setText(text);
    this.#line.cursor = cursor;
    return true;
  }
}
