import { describe, expect, test } from "bun:test";
import { ChatScreen } from "../../../src/cli/chat-screen.ts";
import { ScreenGrid } from "../../support/screen-grid.ts";

function screenOf(columns: number, rows = 24): { grid: ScreenGrid; screen: ChatScreen } {
  const grid = new ScreenGrid(columns, rows);
  const screen = new ChatScreen({
    write: (text) => grid.write(text),
    size: () => ({ columns, rows }),
    color: false,
    later: (callback) => callback(),
  });
  return { grid, screen };
}

const prompt = (text: string, cursor = text.length) => ({ label: "> ", text, cursor });

describe("a chat's screen", () => {
  test("writes output without a prompt as it is", () => {
    let written = "";
    const size = () => ({ columns: 20, rows: 5 });
    const screen = new ChatScreen({
      write: (text) => (written += text),
      size,
      color: false,
      later: () => undefined,
    });
    for (const part of ["one ", "line\n", "and ", "another"]) screen.write(part);
    expect(written).toBe("one line\nand another");
  });

  test("shows the prompt below the output, with the cursor in it", () => {
    const { grid, screen } = screenOf(20);
    screen.write("some output\n");
    screen.showPrompt(prompt("hello", 2));
    expect(grid.text).toBe("some output\n> hello");
    expect(grid.cursor).toEqual({ row: 1, column: 4 });
  });

  test("redraws a prompt in place, however many rows it had", () => {
    const { grid, screen } = screenOf(12);
    screen.write("output\n");
    screen.showPrompt(prompt("one\ntwo\nthree three three", 5));
    screen.showPrompt(prompt("short"));
    expect(grid.text).toBe("output\n> short");
    screen.showPrompt(prompt("0123456789"));
    expect(grid.text).toBe("output\n> 0123456789");
    expect(grid.cursor).toEqual({ row: 2, column: 2 });
  });

  test("writes whole lines above the prompt", () => {
    const { grid, screen } = screenOf(20);
    screen.showPrompt(prompt("typed"));
    screen.write("first\nsecond\n");
    expect(grid.text).toBe("first\nsecond\n> typed");
  });

  test("takes up a line that the prompt made room for", () => {
    const { grid, screen } = screenOf(20);
    screen.write("The answer is for");
    screen.showPrompt(prompt("t"));
    expect(grid.text).toBe("The answer is for\n> t");
    screen.write("ty-two");
    expect(grid.text).toBe("The answer is forty-\ntwo\n> t");
    screen.write(".\nNext");
    screen.hidePrompt();
    screen.write(" line");
    expect(grid.text).toBe("The answer is forty-\ntwo.\nNext line");
  });

  test("puts what was entered above a line that is still open", () => {
    const { grid, screen } = screenOf(40);
    screen.write("before\nThe answer is for");
    screen.showPrompt(prompt("be brief"));
    screen.enterPrompt(prompt("be brief"));
    screen.write("ty-two.\n");
    expect(grid.text).toBe("before\n> be brief\nThe answer is forty-two.");
  });

  test("writes what comes in quick succession above the prompt at once, and before anything else", () => {
    const written: string[] = [];
    const waiting: Array<() => void> = [];
    const screen = new ChatScreen({
      write: (text) => written.push(text),
      size: () => ({ columns: 20, rows: 5 }),
      color: false,
      later: (callback) => waiting.push(callback),
    });
    screen.showPrompt(prompt("p"));
    written.length = 0;
    for (const piece of ["one", " line", "\n"]) screen.write(piece);
    expect([written.length, waiting.length]).toEqual([0, 1]);
    waiting.shift()?.();
    expect(written.join("")).toContain("one line\n");
    screen.write("two\n");
    screen.hidePrompt();
    screen.write("three\n");
    expect(written.join("")).toMatch(/two\n.*three\n$/s);
  });

  test("inserts lines above a line that is still open, with a prompt and without", () => {
    const { grid, screen } = screenOf(10);
    screen.write("first\na line of two");
    screen.insert("note 1\n");
    screen.write(" rows");
    screen.showPrompt(prompt("typed"));
    screen.insert("note 2\n");
    screen.hidePrompt();
    screen.write(".");
    expect(grid.text).toBe("first\nnote 1\nnote 2\na line of\ntwo rows.");
  });

  test.each([
    { rows: 4, text: `note\n${"0123456789\n".repeat(4)}more` },
    { rows: 3, text: `${"0123456789\n".repeat(4)}note\nmore` },
  ])(
    "inserts lines above an open line of 4 rows, below it in a window of $rows",
    ({ rows, text }) => {
      const { grid, screen } = screenOf(10, rows);
      screen.write("0123456789".repeat(4));
      screen.insert("note\n");
      screen.write("more");
      expect(grid.text).toBe(text);
    },
  );

  test("keeps a long text's beginning in the output, and says how much it left out", () => {
    const { grid, screen } = screenOf(40, 60);
    const text = Array.from({ length: 50 }, (_, index) => `line ${index + 1}`).join("\n");
    screen.showPrompt(prompt(text));
    screen.enterPrompt(prompt(text));
    const lines = grid.text.split("\n");
    expect(lines.slice(0, 2)).toEqual(["> line 1", "  line 2"]);
    expect(lines.slice(-2)).toEqual(["  line 20", "  … 30 more lines"]);
  });

  test.each([
    { openRows: 3, promptRows: 1, joined: true },
    { openRows: 2, promptRows: 2, joined: true },
    { openRows: 4, promptRows: 1, joined: false },
    { openRows: 3, promptRows: 2, joined: false },
  ])(
    "with an open line of $openRows rows, a prompt of $promptRows and a window of 4: taken up $joined",
    ({ openRows, promptRows, joined }) => {
      const { grid, screen } = screenOf(10, 4);
      const open = "0123456789".repeat(openRows - 1) + "012";
      screen.write(open);
      screen.showPrompt(prompt(Array(promptRows).fill("p").join("\n")));
      screen.write("rest");
      screen.hidePrompt();
      const rows = `${"0123456789\n".repeat(openRows - 1)}012`;
      expect(grid.text).toBe(`${rows}${joined ? "" : "\n"}rest`);
    },
  );

  test("clears the window and keeps the prompt", () => {
    const { grid, screen } = screenOf(20, 5);
    screen.write("output\n");
    screen.showPrompt(prompt("typed"));
    screen.clear();
    expect(grid.text).toBe("> typed");
  });

  test("leaves the screen on a fresh line without a prompt", () => {
    const { grid, screen } = screenOf(20);
    screen.write("half a line");
    screen.showPrompt(prompt("typed"));
    screen.leave();
    grid.write("$ ");
    expect(grid.text).toBe("half a line\n$");
  });

  test("begins below what others wrote", () => {
    const { grid, screen } = screenOf(20);
    screen.showPrompt(prompt("typed"));
    grid.write("from elsewhere");
    screen.takeBack();
    screen.showPrompt(prompt("typed"));
    expect(grid.text).toBe("> typedfrom elsewher\ne\n> typed");
  });
});

describe("output and a prompt that is edited", () => {
  /** A fixed sequence of numbers below `limit`: the same test each time. */
  function numbers(seed: number): (limit: number) => number {
    let state = seed;
    return (limit) => {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      return Math.floor((state / 2_147_483_648) * limit);
    };
  }

  const PIECES = [
    "a",
    "word ",
    "你好",
    "👩‍👩‍👧",
    "\n",
    "line\n",
    "\t",
    "0123456789ABCDEF",
    "\n\n",
    ".",
  ];

  test.each([3, 7, 10, 16, 40, 80])("never garble each other in %d columns", (columns) => {
    for (let seed = 1; seed <= 60; seed += 1) {
      const next = numbers(seed);
      const { grid, screen } = screenOf(columns, 60);
      let output = "";
      for (let step = 0; step < 30; step += 1) {
        const what = next(5);
        if (what < 2) {
          const piece = PIECES[next(PIECES.length)] as string;
          screen.write(piece);
          output += piece;
        } else if (what === 2) {
          screen.insert("a note\n");
          const openAt = output.lastIndexOf("\n") + 1;
          output = `${output.slice(0, openAt)}a note\n${output.slice(openAt)}`;
        } else {
          const text = Array.from({ length: next(4) }, () => PIECES[next(PIECES.length)]).join("");
          if (text === "") screen.hidePrompt();
          else screen.showPrompt(prompt(text, text.length));
        }
      }
      screen.hidePrompt();
      const plain = new ScreenGrid(columns, 60);
      plain.write(output);
      expect(grid.text).toBe(plain.text);
      expect(grid.cursor).toEqual(plain.cursor);
    }
  });
});
