/** Head, tail and the file between them: what is kept of a text that is too long. */

import { describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { CappedText } from "../../../src/tool/capped-text.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** A text with a limit of ten characters whose file goes into `dir`. */
function tenChars(dir: TempDir) {
  const path = dir.join("deep", "full.txt");
  let asked = 0;
  const text = new CappedText(10, () => {
    asked += 1;
    return path;
  });
  return { text, path, asked: () => asked };
}

const marked = (head: string, chars: number, path: string, tail: string) =>
  `${head}\n[... output truncated at 10 chars ...]\n[of ${chars} chars; full text: ${path}]\n${tail}`;

describe("a text", () => {
  test.each(["", "a", "0123456789"])("within the limit is kept as it is: %p", (value) => {
    using dir = new TempDir();
    const { text, asked } = tenChars(dir);
    for (const unit of value) text.push(unit);
    expect(text.toString()).toBe(value);
    expect(text.length).toBe(value.length);
    expect(asked()).toBe(0);
  });

  const LONG = "abcdefghijklmnopqrstuvwxyz";
  test("over the limit keeps head and tail, however it is cut, and all of it in a private file", () => {
    for (let at = 0; at <= LONG.length; at += 1) {
      for (let to = at; to <= LONG.length; to += 5) {
        using dir = new TempDir();
        const { text, path, asked } = tenChars(dir);
        for (const part of [LONG.slice(0, at), LONG.slice(at, to), LONG.slice(to)]) text.push(part);
        text.close();
        expect(text.toString()).toBe(marked("abcde", 26, path, "vwxyz"));
        expect(readFileSync(path, "utf8")).toBe(LONG);
        expect(statSync(path).mode & 0o777).toBe(0o600);
        expect(asked()).toBe(1);
      }
    }
  });

  test("is never cut within a surrogate pair, and is well-formed whatever comes", () => {
    using dir = new TempDir();
    const { text, path } = tenChars(dir);
    const face = "\u{1f600}";
    text.push(`abcd${face}-----${face}wxyz`);
    text.push("\ud800");
    text.close();
    expect(text.toString()).toBe(marked("abcd", 18, path, "wxyz\ufffd"));
    expect(readFileSync(path, "utf8")).toBe(`abcd${face}-----${face}wxyz\ufffd`);
    const short = new CappedText(10, () => undefined);
    short.push("\udc00x\ud800");
    expect(short.toString()).toBe("\ufffdx\ufffd");
  });

  test("that is cleared starts anew, and the file keeps what was before", () => {
    using dir = new TempDir();
    const { text, path } = tenChars(dir);
    text.push(LONG);
    text.clear();
    text.push("new");
    text.close();
    expect(text.toString()).toBe("new");
    expect(readFileSync(path, "utf8")).toBe(`${LONG}new`);
  });

  test("that can't be kept in a file says so", () => {
    using dir = new TempDir();
    dir.write("file", "");
    for (const path of [undefined, dir.join("file", "below.txt"), dir.write("taken", "")]) {
      const text = new CappedText(10, () => path);
      text.push(LONG);
      text.close();
      expect(text.toString()).toContain("[of 26 chars; it could not be kept in a file]");
    }
  });

  test("of 100 MB in pieces of 1 MB is counted, cut and kept whole", () => {
    using dir = new TempDir();
    const path = dir.join("full.txt");
    const text = new CappedText(65_536, () => path);
    const piece = `${"x".repeat(999)}\n`.repeat(1_000);
    for (let index = 0; index < 100; index += 1) text.push(piece);
    text.close();
    expect(text.length).toBe(100_000_000);
    expect(text.toString().length).toBeLessThan(66_000);
    expect(statSync(path).size).toBe(100_000_000);
  });

  test("keeps at most 256 MiB of itself in the file, and says how much", () => {
    using dir = new TempDir();
    const path = dir.join("full.txt");
    const text = new CappedText(10, () => path);
    const piece = "x".repeat(64 * 1024 * 1024);
    for (let index = 0; index < 5; index += 1) text.push(piece);
    text.close();
    expect(text.toString()).toContain(`the first 268435456 bytes: ${path}`);
    expect(statSync(path).size).toBe(268_435_456);
  });
});
