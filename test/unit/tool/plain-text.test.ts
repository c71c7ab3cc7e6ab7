/** Plain text out of what programs write for terminals; every case is also fed split at every position. */

import { describe, expect, test } from "bun:test";
import { stripTerminal, TerminalCleaner } from "../../../src/tool/plain-text.ts";

const ESC = "\x1b";

/** Raw text, and what a reader should get. */
const CASES: Array<{ name: string; raw: string; text: string }> = [
  { name: "plain lines", raw: "one\ntwo\n", text: "one\ntwo\n" },
  { name: "no text", raw: "", text: "" },
  { name: "a line without an end", raw: "prompt> ", text: "prompt> " },
  {
    name: "colours",
    raw: `${ESC}[0;31mred${ESC}[0m and ${ESC}[38;5;241mgrey${ESC}[39m\n`,
    text: "red and grey\n",
  },
  { name: "colours with colons", raw: `${ESC}[4:3mcurly${ESC}[m`, text: "curly" },
  { name: "8-bit CSI", raw: "\x9b31mred\x9bm", text: "red" },
  {
    name: "a window title, ended by BEL and by ST",
    raw: `${ESC}]0;title\x07a${ESC}]2;t${ESC}\\b`,
    text: "ab",
  },
  { name: "an 8-bit string", raw: "\x9d0;title\x9ctext", text: "text" },
  { name: "a hyperlink", raw: `${ESC}]8;;http://x${ESC}\\link${ESC}]8;;${ESC}\\`, text: "link" },
  {
    name: "DCS, APC and PM strings",
    raw: `${ESC}Pq#0${ESC}\\a${ESC}_x${ESC}\\b${ESC}^y${ESC}\\c`,
    text: "abc",
  },
  {
    name: "character sets and keypad modes",
    raw: `${ESC}(B${ESC}=${ESC}>${ESC}7a${ESC}8`,
    text: "a",
  },
  { name: "cursor keys and erasing", raw: `a${ESC}[2K${ESC}[1A${ESC}[?25lb`, text: "ab" },
  { name: "a lone ESC at the end", raw: `text${ESC}`, text: "text" },
  { name: "an unfinished sequence at the end", raw: `text${ESC}[31`, text: "text" },
  { name: "an unfinished title at the end", raw: `text${ESC}]0;never`, text: "text" },
  { name: "NUL, bells and other controls", raw: "a\0b\x07c\x0cd\x7fe\x85f", text: "abcdef" },
  { name: "tabs", raw: "a\tb\n", text: "a\tb\n" },
  { name: "a progress bar", raw: "\r 1%|#\r50%|##\r100%|####\n", text: "100%|####\n" },
  { name: "a progress bar that ends with a return", raw: "1%\r2%\r3%\r", text: "3%" },
  {
    name: "a progress bar after a line",
    raw: "start\n1%\r2%\r\ndone\n",
    text: "start\n2%\ndone\n",
  },
  { name: "Windows line ends", raw: "a\r\nb\r\n", text: "a\nb\n" },
  { name: "doubled returns", raw: "a\r\r\nb", text: "a\nb" },
  { name: "an erased progress line", raw: `downloading\r${ESC}[Kdone\n`, text: "done\n" },
  { name: "backspaces", raw: "spinner |\b/\b-\bx\n", text: "spinner x\n" },
  { name: "overstrike", raw: "_\bN_\bA\n", text: "NA\n" },
  { name: "more backspaces than text", raw: "ab\b\b\b\bc\n", text: "c\n" },
  { name: "a backspace over an emoji", raw: "a\u{1f600}\bb", text: "ab" },
  { name: "a backspace after a return", raw: "ab\r\b\n", text: "ab\n" },
  { name: "line and paragraph separators", raw: "a\u2028b\u2029c", text: "a\u2028b\u2029c" },
  {
    name: "characters above the controls",
    raw: "caf\u00e9 \u{1f600} \u4e2d",
    text: "caf\u00e9 \u{1f600} \u4e2d",
  },
];

describe("plain text of", () => {
  test.each(CASES)("$name", ({ raw, text }) => {
    expect(stripTerminal(raw)).toBe(text);
    for (let at = 0; at <= raw.length; at += 1) {
      const cleaner = new TerminalCleaner();
      const parts = [cleaner.push(raw.slice(0, at)), cleaner.push(raw.slice(at)), cleaner.end()];
      expect(parts.join(""), `split at ${at}`).toBe(text);
    }
    const cleaner = new TerminalCleaner();
    const pieces = [...raw.split("").map((unit) => cleaner.push(unit)), cleaner.end()];
    expect(pieces.join(""), "unit by unit").toBe(text);
  });

  test("no mixture holds an ESC, a return or another control", () => {
    const pieces = CASES.map(({ raw }) => raw);
    for (let turn = 0; turn < pieces.length; turn += 1) {
      const cleaner = new TerminalCleaner();
      const order = [...pieces.slice(turn), ...pieces.slice(0, turn)];
      const text = order.map((piece) => cleaner.push(piece)).join("") + cleaner.end();
      expect(text).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
    }
  });
});

describe("text as it comes", () => {
  test("is let go line by line", () => {
    const cleaner = new TerminalCleaner();
    expect(cleaner.push("a\nb")).toBe("a\n");
    expect(cleaner.push("c\n")).toBe("bc\n");
    expect(cleaner.end()).toBe("");
  });

  test("is let go without a line end when the line is long, and again behind it", () => {
    const cleaner = new TerminalCleaner();
    const long = "x".repeat(70_000);
    expect(cleaner.push(long)).toBe(long);
    expect(cleaner.push("y")).toBe("");
    expect(cleaner.end()).toBe("y");
  });

  test("a sequence that never ends is given up, and the text behind it comes", () => {
    const cleaner = new TerminalCleaner();
    const text =
      cleaner.push(`${ESC}]${"x".repeat(5_000)}`) + cleaner.push("\nafter\n") + cleaner.end();
    expect(text).toEndWith("\nafter\n");
    expect(text).not.toContain(ESC);
  });

  test("100,000 states of a bar and 350,000 backspaces leave one line each", () => {
    const bar = Array.from({ length: 100_000 }, (_, index) => `\r${index}%`).join("");
    expect(stripTerminal(bar)).toBe("99999%");
    expect(stripTerminal("ab\b".repeat(350_000))).toBe("a".repeat(350_000));
  });
});
