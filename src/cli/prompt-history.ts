/**
 * What was entered before, kept in `<home>/history`: one JSON string a line, oldest first, each
 * text once. Several programs may write at a time; each adds to what the others left.
 */

import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";

/** Entries that are kept. */
export const MAX_HISTORY_ENTRIES = 1_000;

/** A longer text is remembered by this program, but not saved. */
const MAX_ENTRY_CHARS = 32_768;

/** See the head of this file. */
export class PromptHistory {
  readonly #path: string;
  #entries: string[];

  /** Reads the file at `path`; a missing or damaged one is no error. */
  constructor(path: string) {
    this.#path = path;
    this.#entries = readEntries(path);
  }

  /** Oldest first. */
  get entries(): readonly string[] {
    return this.#entries;
  }

  /**
   * Adds a text at the end. One that is blank, or begins with a space, is not kept.
   * Returns what went wrong with saving it, if anything did; the entry then lasts as long as the program.
   */
  add(text: string): string | undefined {
    if (text.trim() === "" || text.startsWith(" ")) return undefined;
    this.#entries = withEntry(this.#entries, text);
    if (text.length > MAX_ENTRY_CHARS) return undefined;
    try {
      // Read anew: another program may have added something.
      writeEntries(this.#path, withEntry(readEntries(this.#path), text));
      return undefined;
    } catch (error) {
      return `the history is not saved: ${errorMessage(error)}`;
    }
  }
}

function withEntry(entries: readonly string[], text: string): string[] {
  return [...entries.filter((entry) => entry !== text), text].slice(-MAX_HISTORY_ENTRIES);
}

function readEntries(path: string): string[] {
  let content: string;
  try {
    content = readFileSync(path, "utf8");
  } catch (error) {
    debug("history", `${path} can't be read`, error);
    return [];
  }
  const entries = content.split("\n").flatMap((line) => {
    try {
      const entry: unknown = JSON.parse(line || "null");
      return typeof entry === "string" ? [entry] : [];
    } catch (error) {
      debug("history", "a damaged line is left out", error);
      return [];
    }
  });
  return entries.slice(-MAX_HISTORY_ENTRIES);
}

/** Replaces the file at once, so that no reader sees half of it. */
function writeEntries(path: string, entries: readonly string[]): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const next = `${path}.${process.pid}`;
  writeFileSync(next, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""), {
    mode: 0o600,
  });
  renameSync(next, path);
}
