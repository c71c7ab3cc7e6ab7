import { describe, expect, test } from "bun:test";
import { layoutPrompt, outputRows } from "../../../src/cli/prompt-layout.ts";

/** Lays out a text whose cursor is its bar, and shows the rows with a bar at the cursor. */
function rowsOf(marked: string, columns: number, maxRows = 100, label = "> "): string[] {
  const cursor = marked.indexOf("|");
  const text = marked.slice(0, cursor) + marked.slice(cursor + 1);
  const layout = layoutPrompt({ text, cursor, columns, maxRows, label });
  return layout.rows.map((row, index) => {
    expect(row.width).toBe(Bun.stringWidth(row.text));
    expect(row.width).toBeLessThanOrEqual(columns);
    if (index !== layout.cursorRow) return row.text;
    expect(layout.cursorColumn).toBeLessThan(columns);
    return withBar(row.text, layout.cursorColumn);
  });
}

function withBar(row: string, column: number): string {
  let before = "";
  for (const { segment } of new Intl.Segmenter().segment(row)) {
    if (Bun.stringWidth(before) >= column) break;
    before += segment;
  }
  return `${before}|${row.slice(before.length)}`;
}

describe("the layout of a prompt", () => {
  test.each([
    ["nothing", "|", 20, ["> |"]],
    ["one line", "hello|", 20, ["> hello|"]],
    ["lines under each other", "one\ntwo|\n", 20, ["> one", "  two|", "  "]],
    ["a line that wraps goes on indented", "abcdefghijklmnop|", 12, ["> abcdefghij", "  klmnop|"]],
    ["a cursor after a full row is in the next", "abcdefghij|", 12, ["> abcdefghij", "  |"]],
    [
      "a cursor where a line wraps is in the next row",
      "abcdefghij|k",
      12,
      ["> abcdefghij", "  |k"],
    ],
    ["a cursor before the last column", "abcdefghi|j", 12, ["> abcdefghi|j"]],
    ["a full row before a line break", "abcdefghij\nk|", 12, ["> abcdefghij", "  k|"]],
    ["a wide character that does not fit", "abcdefghi你|", 12, ["> abcdefghi", "  你|"]],
    [
      "a cursor before a wide character that does not fit",
      "abcdefghi|你",
      12,
      ["> abcdefghi", "  |你"],
    ],
    ["an emoji of several parts", "a👩‍👩‍👧b|", 20, ["> a👩‍👩‍👧b|"]],
    ["an accent takes no column", "e\u0301e\u0301|", 20, ["> e\u0301e\u0301|"]],
    ["a tab is four columns", "a\tb|", 20, ["> a    b|"]],
    ["a narrow window has no indent", "abcd\nef|", 6, ["> abcd", "ef|"]],
    ["a window of two columns", "a你b|", 2, ["a", "你", "b|"]],
    ["a window of one column", "ab|", 1, ["a", "b", "|"]],
  ])("%s", (_name, marked, columns, rows) => {
    expect(rowsOf(marked, columns)).toEqual(rows);
  });

  test("a label that does not fit is left out", () => {
    expect(rowsOf("ab|", 8, 9, "a long label: ")).toEqual(["ab|"]);
  });

  const lines = Array.from({ length: 9 }, (_, index) => `line ${index + 1}`);
  const at = (line: number) => lines.map((text, index) => (index === line - 1 ? `${text}|` : text));

  test.each([
    ["the start", 1, ["> line 1|", "  line 2", "  line 3", "  line 4", " … 5 more rows below"]],
    [
      "the middle",
      5,
      [" … 3 more rows above", "  line 4", "  line 5|", "  line 6", " … 3 more rows below"],
    ],
    ["the end", 9, [" … 5 more rows above", "  line 6", "  line 7", "  line 8", "  line 9|"]],
  ])("a text that is too high shows %s, where the cursor is", (_name, line, rows) => {
    expect(rowsOf(at(line).join("\n"), 30, 5)).toEqual(rows);
  });

  test("every place of a long text is shown in every window", () => {
    const text = "ab你 cd\n\nefgh ijkl mnop qrst\n👍🏽👍🏽👍🏽👍🏽\tx";
    for (let columns = 1; columns < 24; columns += 1) {
      for (let maxRows = 1; maxRows < 8; maxRows += 1) {
        for (let cursor = 0; cursor <= text.length; cursor += 1) {
          const layout = layoutPrompt({ text, cursor, columns, maxRows, label: "> " });
          expect(layout.rows.length).toBeLessThanOrEqual(maxRows);
          expect(layout.cursorRow).toBeLessThan(layout.rows.length);
          expect(layout.cursorRow).toBeGreaterThanOrEqual(0);
        }
      }
    }
  });
});

describe("the rows of output", () => {
  test.each([
    ["", 10, 1],
    ["abc", 10, 1],
    ["0123456789", 10, 1],
    ["01234567890", 10, 2],
    ["\x1b[31m0123456789\x1b[39m", 10, 1],
    ["012345678你", 10, 2],
    ["你你你", 3, 3],
    ["a\tb", 10, 1],
    ["a\tbc", 10, 1],
    ["a\tbcd", 10, 2],
  ])("%j in %d columns are %d", (text, columns, rows) => {
    expect(outputRows(text, columns)).toBe(rows);
  });
});
