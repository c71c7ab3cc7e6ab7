import { describe, expect, test } from "bun:test";
import { chmodSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { MAX_HISTORY_ENTRIES, PromptHistory } from "../../../src/cli/prompt-history.ts";
import { TempDir } from "../../support/temp-dir.ts";

describe("the history of prompts", () => {
  test("is kept in a file that only its owner can read", () => {
    using dir = new TempDir();
    const path = dir.join("home", "history");
    expect(new PromptHistory(path).add("first")).toBeUndefined();
    new PromptHistory(path).add("second\nof two lines");
    expect(new PromptHistory(path).entries).toEqual(["first", "second\nof two lines"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(dir.join("home"))).toEqual(["history"]);
  });

  test("holds each text once, where it was entered last", () => {
    using dir = new TempDir();
    const history = new PromptHistory(dir.join("history"));
    for (const text of ["a", "b", "a"]) history.add(text);
    expect(history.entries).toEqual(["b", "a"]);
    expect(new PromptHistory(dir.join("history")).entries).toEqual(["b", "a"]);
  });

  test.each(["", "  \n", " begins with a space"])("does not keep %j", (text) => {
    using dir = new TempDir();
    const history = new PromptHistory(dir.join("history"));
    history.add(text);
    expect(history.entries).toEqual([]);
  });

  test("is bounded, in memory and on disk", () => {
    using dir = new TempDir();
    const lines = Array.from({ length: MAX_HISTORY_ENTRIES + 50 }, (_, index) => `"${index}"\n`);
    const path = dir.write("history", lines.join(""));
    const history = new PromptHistory(path);
    expect(history.entries.length).toBe(MAX_HISTORY_ENTRIES);
    history.add("new");
    expect(history.entries.length).toBe(MAX_HISTORY_ENTRIES);
    expect(readFileSync(path, "utf8").split("\n").length - 1).toBe(MAX_HISTORY_ENTRIES);
  });

  test("a very long text is remembered, but not saved", () => {
    using dir = new TempDir();
    const history = new PromptHistory(dir.join("history"));
    history.add("x".repeat(100_000));
    expect(history.entries.length).toBe(1);
    expect(new PromptHistory(dir.join("history")).entries).toEqual([]);
  });

  test("two programs do not take each other's entries away", () => {
    using dir = new TempDir();
    const [one, two] = [0, 1].map(() => new PromptHistory(dir.join("history")));
    one?.add("from one");
    two?.add("from two");
    expect(new PromptHistory(dir.join("history")).entries).toEqual(["from one", "from two"]);
  });

  test("damaged lines are left out", () => {
    using dir = new TempDir();
    const path = dir.write("history", '"good"\n{"no": 1}\nnot json\n"torn\n\0\0\n"also good"\n');
    expect(new PromptHistory(path).entries).toEqual(["good", "also good"]);
  });

  test("a place that can't be written is told, and the entry lasts as long as the program", () => {
    using dir = new TempDir();
    const history = new PromptHistory(dir.write("file", "") + "/history");
    expect(history.add("kept")).toContain("the history is not saved");
    expect(history.entries).toEqual(["kept"]);
  });

  test("an unreadable file is no error", () => {
    using dir = new TempDir();
    const path = dir.write("history", '"a"\n');
    chmodSync(path, 0o000);
    expect(() => new PromptHistory(path)).not.toThrow();
    chmodSync(path, 0o600);
    writeFileSync(path, '"a"\n');
  });
});
