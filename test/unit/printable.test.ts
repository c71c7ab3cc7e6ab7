import { expect, test } from "bun:test";
import { firstLine, printable } from "../../src/printable.ts";

test.each([
  ["plain \t text\n", "plain \t text\n"],
  ["a\r\nb\rc", "a\nb\\x0dc"],
  ["\u001b[2J\u0007\0\u007f\u009b1m", "\\x1b[2J\\x07\\x00\\x7f\\x9b1m"],
  ["Zoë 🐍 \u2028", "Zoë 🐍 \u2028"],
])("printable(%j) is %j", (text, expected) => {
  expect(printable(text)).toBe(expected);
});

test.each([
  ["\n\n  one\ttwo  \nthree", 20, "one two"],
  ["abcdef", 4, "abc…"],
  ["🐍🐍🐍", 2, "🐍…"],
  ["", 5, ""],
])("firstLine(%j, %p) is %j", (text, width, expected) => {
  expect(firstLine(text, width)).toBe(expected);
});
