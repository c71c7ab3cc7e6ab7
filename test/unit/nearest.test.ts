import { expect, test } from "bun:test";
import { nearest } from "../../src/nearest.ts";

const words = ["sessions", "skills", "setup", "demo", "doctor", "models"];

test.each([
  ["sesions", ["sessions"]],
  ["SKILS", ["skills"]],
  ["doc", ["doctor"]],
  ["modles", ["models"]],
  ["", []],
  ["zzzzzz", []],
])("%p is nearest to %p", (word, expected) => {
  expect(nearest(word, words)).toEqual(expected);
});

test("gives at most as many as asked", () => {
  expect(nearest("s", ["sa", "sb", "sc"], 2)).toEqual(["sa", "sb"]);
});
