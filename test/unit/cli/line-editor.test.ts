import { describe, expect, test } from "bun:test";
import { LineEditor, type EditorAction } from "../../../src/cli/line-editor.ts";
import { keysOf } from "../../support/key-script.ts";

function editorWith(history: readonly string[] = []): LineEditor {
  return new LineEditor({
    history: () => history,
    complete: (text) => (text === "/he" ? "/help " : text),
  });
}

/** The text with a bar for the cursor. */
function shown({ line: { text, cursor } }: LineEditor): string {
  return `${text.slice(0, cursor)}|${text.slice(cursor)}`;
}

/** Presses the keys; returns the actions that they asked for. */
function press(editor: LineEditor, script: string): EditorAction[] {
  return keysOf(script).flatMap((key) => editor.press(key) ?? []);
}

describe("editing", () => {
  test.each([
    ["typing", "hello", "hello|"],
    ["typing in the middle", "hllo<home><right>e", "he|llo"],
    ["a wide character is one step", "a你b<left><left><left>", "|a你b"],
    ["an emoji of several parts is one step", "a👩‍👩‍👧b<left><left>", "a|👩‍👩‍👧b"],
    ["a combining accent goes with its letter", "ae\u0301<left>", "a|e\u0301"],
    ["backspace removes a whole emoji", "a👍🏽<backspace>", "a|"],
    ["backspace at the start does nothing", "a<home><backspace>", "|a"],
    ["backspace joins lines", "a<ctrl-j>b<left><backspace>", "a|b"],
    ["delete removes what is after", "abc<home><delete>", "|bc"],
    ["Ctrl-D removes what is after, where there is text", "abc<home><ctrl-d>", "|bc"],
    ["delete at the end does nothing", "abc<delete>", "abc|"],
    ["Ctrl-A and Ctrl-E go to the ends of the line", "ab<ctrl-a>x<ctrl-e>y", "xaby|"],
    ["Home stays in its line", "ab<ctrl-j>cd<home>", "ab\n|cd"],
    ["End stays in its line", "ab<ctrl-j>cd<up><home><end>", "ab|\ncd"],
    ["left at the start of a line goes to the one above", "a<ctrl-j>b<home><left>", "a|\nb"],
    ["Ctrl-B and Ctrl-F are left and right", "abc<ctrl-b><ctrl-b><ctrl-f>", "ab|c"],
    ["words to the left", "one two-three<ctrl-left><alt-b>", "one |two-three"],
    ["words to the right", "one two-three<home><ctrl-right><alt-f>", "one two|-three"],
    ["words of other alphabets", "naïve 世界 x<alt-b><alt-b>", "naïve |世界 x"],
    ["Ctrl-W cuts what is between spaces", "one two-three<ctrl-w>", "one |"],
    ["Ctrl-W takes the spaces after it along", "one two  <ctrl-w>", "one |"],
    ["Ctrl-W crosses lines only over space", "one<ctrl-j><ctrl-w>", "|"],
    ["Alt-Backspace cuts a word of letters", "one two-three<alt-backspace>", "one two-|"],
    ["Alt-D cuts the word after", "one two<home><alt-d>", "| two"],
    ["Ctrl-U cuts to the start of the line", "a<ctrl-j>bcd<left><ctrl-u>", "a\n|d"],
    ["Ctrl-U at the start joins with the line above", "a<ctrl-j>b<home><ctrl-u>", "a|b"],
    ["Ctrl-K cuts to the end of the line", "abc<ctrl-j>d<up><home><ctrl-k>", "|\nd"],
    ["Ctrl-K at the end joins with the line below", "a<ctrl-j>b<up><end><ctrl-k>", "a|b"],
    ["Ctrl-Y brings back what was cut last", "one two<ctrl-w><ctrl-y><ctrl-y>", "one twotwo|"],
    ["a cut of nothing keeps what was cut before", "ab<ctrl-u><ctrl-u><ctrl-y>", "ab|"],
    ["Ctrl-J makes a line", "a<ctrl-j>b", "a\nb|"],
    ["Alt-Enter and Shift-Enter make a line", "a<alt-enter>b<shift-enter>c", "a\nb\nc|"],
    ["Enter after a backslash makes a line", "a\\<enter>b", "a\nb|"],
    ["a paste keeps its lines", "x<paste a\nb\n>y", "xa\nb\ny|"],
    ["a paste with half a character is mended", "<paste \ud83d>", "\ufffd|"],
    ["Tab completes", "/he<tab>x", "/help x|"],
    ["Tab without a completion does nothing", "abc<tab>", "abc|"],
    ["up and down keep the column", "abcd<ctrl-j>e<ctrl-j>fghi<up><up>", "abcd|\ne\nfghi"],
    ["up and down count wide characters as two", "你好<ctrl-j>abcd<left><left><up>", "你|好\nabcd"],
    ["up into the middle of a wide character stays before it", "你<ctrl-j>a<up>", "|你\na"],
    ["Ctrl-P and Ctrl-N are up and down", "a<ctrl-j>b<ctrl-p>x<ctrl-n>y", "ax\nby|"],
    ["Ctrl-Home and Ctrl-End go all the way", "a<ctrl-j>b<ctrl-home>x<ctrl-end>y", "xa\nby|"],
    ["keys without a meaning change nothing", "ab<escape><page-up><ctrl-t><insert>", "ab|"],
  ])("%s", (_name, script, expected) => {
    const editor = editorWith();
    expect(press(editor, script)).toEqual([]);
    expect(shown(editor)).toBe(expected);
  });

  test.each([
    [
      "Enter enters the text, wherever the cursor is",
      "abc<left><enter>",
      [{ type: "submit", text: "abc" }],
      "|",
    ],
    ["Enter enters nothing as nothing", "<enter>", [{ type: "submit", text: "" }], "|"],
    [
      "two backslashes at the end are text",
      "a\\\\<enter>",
      [{ type: "submit", text: "a\\\\" }],
      "|",
    ],
    [
      "a backslash in the middle is text",
      "a\\b<left><enter>",
      [{ type: "submit", text: "a\\b" }],
      "|",
    ],
    ["lines are entered together", "a<ctrl-j>b<enter>", [{ type: "submit", text: "a\nb" }], "|"],
    ["Ctrl-C leaves the text to its owner", "ab<ctrl-c>", [{ type: "interrupt" }], "ab|"],
    ["Ctrl-D with nothing typed ends", "<ctrl-d>", [{ type: "end" }], "|"],
    ["Ctrl-Z stops", "a<ctrl-z>", [{ type: "suspend" }], "a|"],
    ["Ctrl-L clears the screen", "a<ctrl-l>", [{ type: "clear-screen" }], "a|"],
  ] as Array<[string, string, EditorAction[], string]>)(
    "%s",
    (_name, script, actions, expected) => {
      const editor = editorWith();
      expect(press(editor, script)).toEqual(actions);
      expect(shown(editor)).toBe(expected);
    },
  );
});

describe("the history", () => {
  const history = ["first", "second\nof two lines", "third"];

  test.each([
    ["up shows the newest", "<up>", "third|"],
    ["up goes on through entries of several lines", "<up><up><up>", "first|"],
    ["up past the oldest stays", "<up><up><up><up>", "first|"],
    ["down comes back", "<up><up><up><down><down>", "third|"],
    ["down past the newest brings back what was typed", "draft<up><up><down><down>", "draft|"],
    ["down with nothing recalled does nothing", "draft<down>", "draft|"],
    ["up inside a text of several lines moves the cursor first", "a<ctrl-j>b<up>", "a|\nb"],
    ["up from the first line then recalls", "a<ctrl-j>b<up><up>", "third|"],
    ["after another key, up moves inside an entry", "<up><up><left><up>", "second|\nof two lines"],
    ["an entry that was changed is a text of its own", "<up>!<down>", "third!|"],
    ["from a changed entry, up begins at the newest", "<up><up><up>!<up>", "third|"],
  ])("%s", (_name, script, expected) => {
    const editor = editorWith(history);
    press(editor, script);
    expect(shown(editor)).toBe(expected);
  });

  test("an entry that is entered leaves the draft behind", () => {
    const editor = editorWith(history);
    expect(press(editor, "draft<up><enter>")).toEqual([{ type: "submit", text: "third" }]);
    press(editor, "<up><down>");
    expect(shown(editor)).toBe("|");
  });

  test.each([
    ["finds the newest match", "<ctrl-r>s", "|second\nof two lines"],
    ["puts the cursor at the match", "<ctrl-r>two", "second\nof |two lines"],
    ["ignores case", "<ctrl-r>FIRST", "|first"],
    ["stays at an entry that still matches", "<ctrl-r>ir", "th|ird"],
    ["goes on to older matches", "<ctrl-r>ir<ctrl-r>", "f|irst"],
    ["stays at the oldest match", "<ctrl-r>ir<ctrl-r><ctrl-r>", "f|irst"],
    ["starts over when the query is shortened", "<ctrl-r>fi<backspace>", "second\no|f two lines"],
    ["without a match shows the last one", "<ctrl-r>thixyz", "|third"],
    ["with an empty query shows what was typed", "draft<ctrl-r>", "draft|"],
    ["ends with a motion, which then counts", "<ctrl-r>third<right>", "t|hird"],
    ["ends with Escape", "<ctrl-r>third<escape>!", "!|third"],
    ["is given up with Ctrl-C, and nothing else happens", "draft<ctrl-r>third<ctrl-c>", "draft|"],
    ["is given up with Ctrl-G", "draft<ctrl-r>third<ctrl-g>", "draft|"],
  ])("Ctrl-R %s", (_name, script, expected) => {
    const editor = editorWith(history);
    expect(press(editor, script)).toEqual([]);
    expect(shown(editor)).toBe(expected);
  });

  test("Ctrl-R says what is searched for, and Enter enters what was found", () => {
    const editor = editorWith(history);
    press(editor, "<ctrl-r>fir");
    expect(editor.searchQuery).toBe("fir");
    expect(editor.isEmpty).toBe(false);
    expect(press(editor, "<enter>")).toEqual([{ type: "submit", text: "first" }]);
    expect(editor.searchQuery).toBeUndefined();
  });
});

test("text can be put in from outside", () => {
  const editor = editorWith();
  press(editor, "abc");
  editor.setText("from outside");
  expect(shown(editor)).toBe("from outside|");
  editor.setText("");
  expect(editor.isEmpty).toBe(true);
});
