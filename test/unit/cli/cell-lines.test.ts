import { describe, expect, test } from "bun:test";
import pc from "picocolors";
import { codeLines, diffLines, imageLine } from "../../../src/cli/cell-lines.ts";

const plain = pc.createColors(false);

describe("a cell's code", () => {
  test.each([
    ["one line", "print(1)", [">>> print(1)"]],
    ["several lines", "a = 1\n\nb = 2\n", [">>> a = 1", "... ", "... b = 2"]],
    ["blank lines around it", "\n\nx\n\n", [">>> x"]],
    ["a control character", "print('\x1b[2J')", [">>> print('\\x1b[2J')"]],
  ])("with %s", (_name, code, lines) => {
    expect(codeLines(code, plain)).toEqual(lines);
  });

  test("that is long is cut, and says so", () => {
    const code = Array.from({ length: 60 }, (_, index) => `line_${index + 1}`).join("\n");
    const lines = codeLines(code, plain);
    expect(lines.slice(-2)).toEqual(["... line_40", "… 20 more lines"]);
    expect(codeLines("x".repeat(9_999), plain)[0]?.length).toBeLessThan(600);
  });
});

describe("a change in a file", () => {
  const diff = (old_str: string, new_str: string, start_line?: number) =>
    diffLines({ path: "a.py", old_str, new_str, ...(start_line && { start_line }) }, plain);

  test.each([
    ["one line for another", "old", "new", ["edited a.py:5", "- old", "+ new"]],
    [
      "equal lines around are left out",
      "a\nold\nz",
      "a\nnew\nz",
      ["edited a.py:6", "- old", "+ new"],
    ],
    ["lines that came", "a\n", "a\nb\nc\n", ["edited a.py:6", "+ b", "+ c"]],
    ["lines that went", "a\nb\na\n", "a\n", ["edited a.py:6", "- b", "- a"]],
    ["a new file", "", "x\n", ["edited a.py:5", "+ x"]],
    ["nothing but space", "a \n", "a\n", ["edited a.py:5", "- a ", "+ a"]],
    ["the same text", "a\n", "a\n", ["edited a.py:6"]],
  ])("with %s", (_name, before, after, lines) => {
    expect(diff(before, after, 5)).toEqual(lines);
  });

  test("without a known line has none", () => {
    expect(diff("a", "b")).toEqual(["edited a.py", "- a", "+ b"]);
  });

  test("that is long is cut, and says so", () => {
    const lines = diff("old\n".repeat(100), "new\n".repeat(100));
    expect(lines.length).toBe(32);
    expect(lines.at(-1)).toBe("… 170 more lines");
  });

  test("has colours where they are wanted", () => {
    const [, went, came] = diffLines(
      { path: "a", old_str: "x", new_str: "y" },
      pc.createColors(true),
    );
    expect([went, came]).toEqual(["\x1b[31m- x\x1b[39m", "\x1b[32m+ y\x1b[39m"]);
  });
});

test("an image is told by its kind and size", () => {
  const image = { mimeType: "image/png", data: "A".repeat(8_000) };
  expect(imageLine(image, plain)).toBe("[image/png, 6 kB, shown to the model]");
});
