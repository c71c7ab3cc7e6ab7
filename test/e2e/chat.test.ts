/** The terminal chat under tmux: prompts, answers, cells, history, pastes, and how it is left. */

import { describe, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Chat, SANE_MODES } from "../support/chat.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** What the person said last, as the model reads it. */
function lastPrompt(chat: Chat): string {
  return chat.server.requests.at(-1)?.body.messages.at(-1).content;
}

describe("an answer", () => {
  test("streams while it comes, with cells, their output, errors and changes", async () => {
    await using chat = await Chat.start({
      replies: [
        { text: "First I look.\n", ...cell("for word in ['one', 'two']:\n    print(word)\n6*7") },
        cell("await edit('notes.txt', 'old', 'new\\nlines')\n1/0"),
        { text: "The answer is 42", finish: "none", end: "hang" },
      ],
    });
    await Bun.write(join(chat.user.cwd, "notes.txt"), "first\nold\n");
    await chat.window.enter("What is 6*7?");
    const screen = await chat.window.waitFor("The answer is 42");
    expect(screen.slice(screen.indexOf("> What"))).toBe(
      [
        "> What is 6*7?",
        "First I look.",
        ">>> for word in ['one', 'two']:",
        "...     print(word)",
        "... 6*7",
        "Starting IPython kernel…",
        "one",
        "two",
        "42",
        ">>> await edit('notes.txt', 'old', 'new\\nlines')",
        "... 1/0",
        `edited ${join(chat.user.cwd, "notes.txt")}:2`,
        "- old",
        "+ new",
        "+ lines",
        "✗ ZeroDivisionError: division by zero",
        "The answer is 42",
      ].join("\n"),
    );
  });

  test("shows a cell's output before the cell ends", async () => {
    await using chat = await Chat.start({
      replies: [
        cell(
          "import os, time\nprint('so' + ' far')\nwhile not os.path.exists('go'): time.sleep(0.02)",
        ),
        { text: "Done." },
      ],
    });
    await chat.window.enter("wait");
    await chat.window.waitFor("\nso far");
    expect(chat.server.requests.length).toBe(1);
    await Bun.write(join(chat.user.cwd, "go"), "");
    await chat.window.waitFor("Done.");
  });

  test("says that a reply is retried, and what failed for good", async () => {
    const overloaded = {
      status: 529,
      error: { type: "overloaded_error", message: "busy" },
      headers: { "retry-after": "0" },
    };
    const refused = {
      status: 400,
      error: { type: "invalid_request_error", message: "no such thing" },
    };
    await using chat = await Chat.start({ replies: [overloaded, { text: "At last." }, refused] });
    await chat.window.enter("hi");
    expect(await chat.window.waitFor("At last.")).toMatch(/busy.*; retry 1\/3 in/);
    await chat.waitForPrompt();
    await chat.window.enter("hi again");
    await chat.window.waitFor("no such thing");
    await chat.waitForPrompt();
  });

  test("of a model can't move the cursor or rename the window", async () => {
    await using chat = await Chat.start({
      replies: [{ text: "a\x1b[2Jb\x1b]0;title\x07c\r\nnext" }],
    });
    await chat.window.enter("hi");
    await chat.window.waitFor("a\\x1b[2Jb\\x1b]0;title\\x07c\nnext");
  });
});

describe("the prompt line", () => {
  test("starts with the prompt of the command line", async () => {
    await using chat = await Chat.open({ replies: [{ text: "Hello there." }] });
    await chat.run(["'say hello'"]);
    await chat.window.waitFor("Hello there.");
    await chat.waitForPrompt();
    expect(lastPrompt(chat)).toBe("say hello");
  });

  test("keeps pasted lines together, also what looks like Enter", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }] });
    await chat.window.paste("def f():\n\treturn '你好 👍'\n\nf()\n");
    await chat.window.waitFor(/f\(\)$/);
    expect(await chat.window.screen()).toContain("> def f():\n      return '你好 👍'\n\n  f()");
    expect(chat.server.requests.length).toBe(0);
    await chat.window.enter("# what is it?");
    await chat.window.waitFor("Read.");
    expect(lastPrompt(chat)).toBe("def f():\n\treturn '你好 👍'\n\nf()\n# what is it?");
  });

  test("shows as much of a long paste as fits, and sends all of it", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }], rows: 12 });
    const text = Array.from({ length: 300 }, (_, index) => `line ${index + 1}`).join("\n");
    await chat.window.paste(text);
    const screen = await chat.window.waitFor("line 300");
    expect(screen).toMatch(/more rows above\n  line 29\d\n/);
    await chat.window.press("Enter");
    await chat.window.waitFor("… 280 more lines");
    await chat.window.waitFor("Read.");
    expect(lastPrompt(chat)).toBe(text);
  });

  test("takes new lines by Ctrl-J, Alt-Enter and a backslash", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }] });
    await chat.window.type("one");
    await chat.window.press("C-j");
    await chat.window.type("two");
    await chat.window.press("M-Enter");
    await chat.window.enter("three\\");
    await chat.window.enter("four");
    await chat.window.waitFor("Read.");
    expect(lastPrompt(chat)).toBe("one\ntwo\nthree\nfour");
  });

  test("edits wide characters with the keys of a shell", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }] });
    await chat.window.type("你好 world 👍👍");
    await chat.window.press("BSpace", "C-w", "C-a");
    await chat.window.type("say ");
    await chat.window.press("Right", "Right", "DC", "C-k", "C-y");
    await chat.window.type("!");
    await chat.window.waitFor("> say 你好world !");
    expect(await chat.window.cursor()).toMatchObject({
      column: Bun.stringWidth("> say 你好world !"),
    });
    await chat.window.press("Enter");
    await chat.window.waitFor("Read.");
    expect(lastPrompt(chat)).toBe("say 你好world !");
  });

  test("remembers prompts from one session to the next", async () => {
    await using chat = await Chat.start({ replies: [{ text: "One." }, { text: "Two." }] });
    await chat.window.enter("the first prompt");
    await chat.window.waitFor("One.");
    await chat.waitForPrompt();
    await chat.window.press("C-d");
    await chat.ended();
    const file = join(chat.user.home, ".prime/agent/history");
    expect(readFileSync(file, "utf8")).toBe('"the first prompt"\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);

    await chat.run([]);
    await chat.waitForPrompt();
    await chat.window.press("Up");
    await chat.window.waitFor("> the first prompt");
    await chat.window.press("Enter");
    await chat.window.waitFor("Two.");
    expect(lastPrompt(chat)).toBe("the first prompt");
    await chat.waitForPrompt();
    await chat.window.press("C-r");
    await chat.window.type("first");
    await chat.window.waitFor('search "first": the first prompt');
  });

  test("wraps in a narrow window and follows its size", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }], columns: 20, rows: 20 });
    const prompt = "the quick brown fox jumps over the lazy dog";
    await chat.window.type(prompt);
    await chat.window.waitFor("> the quick brown fo\n  x jumps over the l\n  azy dog");
    expect(await chat.window.cursor()).toMatchObject({ column: 9 });
    await chat.window.resize(31, 20);
    await chat.window.waitFor(/\n> the quick brown fox jumps ove\n  r the lazy dog$/);
    await chat.window.resize(12, 20);
    await chat.window.waitFor("\n> the quick\n  brown fox\n  jumps over\n   the lazy\n  dog");
    await chat.window.resize(80, 20);
    const screen = await chat.window.waitFor(`\n> ${prompt}`);
    expect(screen.split("the quick").length).toBe(2);
    await chat.window.press("Enter");
    await chat.window.waitFor("Read.");
    expect(lastPrompt(chat)).toBe(prompt);
  });
});

describe("leaving", () => {
  test.each([
    ["Ctrl-D", (chat: Chat) => chat.window.press("C-d")],
    ["/quit", (chat: Chat) => chat.window.enter("/quit")],
    ["/exit", (chat: Chat) => chat.window.enter("/exit")],
    ["Ctrl-C twice", (chat: Chat) => chat.window.press("C-c", "C-c")],
  ])(
    "by %s saves the kernel's state and says how to go on; nothing is left",
    async (_name, leave) => {
      await using chat = await Chat.start({
        replies: [cell("kept = 41"), { text: "Kept." }, cell("kept + 1"), { text: "Back." }],
      });
      await chat.window.enter("keep it");
      await chat.window.waitFor("Kept.");
      await chat.waitForPrompt();
      await leave(chat);
      const { screen, ...ending } = await chat.ended();
      expect(ending).toEqual({ code: 0, modes: SANE_MODES });
      await chat.untilGone();
      const id = /prime-agent resume (\S+)\n$/.exec(screen)?.[1] as string;
      await chat.run(["resume", id]);
      await chat.waitForPrompt();
      await chat.window.enter("is it there?");
      await chat.window.waitFor("Back.");
      expect(await chat.window.screen()).toContain("\n42\n");
    },
  );

  test("of a chat in which nothing was said leaves nothing", async () => {
    await using chat = await Chat.start();
    await chat.window.press("C-d");
    expect((await chat.ended()).screen).not.toContain("resume");
    await chat.untilGone();
  });
});

test("without a model the chat says what to do, and shows the demo to those who want it", async () => {
  await using chat = await Chat.open({ env: { PRIME_AGENT_MODEL: "", FLAGS: "" } });
  await chat.run([]);
  await chat.window.waitFor(/ANTHROPIC_API_KEY[\s\S]*See the demo now\? \[y\/N\]$/);
  await chat.window.enter("n");
  expect((await chat.ended()).code).toBe(3);
  await chat.run([]);
  await chat.window.waitFor("See the demo now? [y/N]");
  await chat.window.enter("y");
  await chat.window.waitFor("That was the demo");
  expect(await chat.ended()).toMatchObject({ code: 0, modes: SANE_MODES });
});

test("a terminal that can't move its cursor gets a headless run", async () => {
  await using chat = await Chat.open({ replies: [{ text: "Plain." }] });
  await chat.window.enter("clear; export TERM=dumb");
  await chat.window.enter("script -qec \"$PROGRAM $FLAGS 'say hello'\" typescript");
  await chat.window.waitFor(/Plain\.[\s\S]*success[\s\S]*\n\$$/);
  expect(readFileSync(join(chat.user.cwd, "typescript"), "utf8")).not.toContain("\x1b");
  await chat.window.enter("$PROGRAM");
  await chat.window.waitFor("the prompt is empty");
});
