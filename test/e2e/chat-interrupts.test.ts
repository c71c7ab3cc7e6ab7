/** Ctrl-C in its stages, signals, the busy kernel and the stopped program, in the chat under tmux. */

import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Chat, SANE_MODES } from "../support/chat.ts";
import { pidsOf } from "../support/processes.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** A cell that says when it runs, in words that its code does not hold, and goes on for a minute. */
const LONG_CELL = cell("import time\nprint('it', 'runs')\ntime.sleep(60)");

/** A cell that ignores interrupts until a file appears. */
const STUBBORN_CELL = cell(
  [
    "import os, time",
    "kept = 1",
    "print('it', 'runs')",
    "while not os.path.exists('let-go'):",
    "    try:",
    "        time.sleep(0.05)",
    "    except KeyboardInterrupt:",
    "        pass",
  ].join("\n"),
);

const HANG = { text: "Well", finish: "none", end: "hang" } as const;

/** The process of the chat itself. */
function programPid(chat: Chat): number {
  const isProgram = (pid: number) =>
    readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("dist/prime-agent");
  return pidsOf(chat.user.home).find(isProgram) as number;
}

describe("Ctrl-C", () => {
  test("interrupts the cell; the model goes on", async () => {
    await using chat = await Chat.start({ replies: [LONG_CELL, { text: "I see." }] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.press("C-c");
    await chat.window.waitFor("Interrupting the cell. Ctrl-C again aborts the turn.");
    const screen = await chat.window.waitFor("I see.");
    expect(screen).toContain("✗ ");
    expect(chat.server.requests[1]?.body.messages.at(-1).content).toContain(
      "interrupted by the user",
    );
    await chat.waitForPrompt();
  });

  test("aborts the request where no cell runs; the next prompt works", async () => {
    await using chat = await Chat.start({ replies: [HANG, { text: "Here again." }] });
    await chat.window.enter("go");
    await chat.window.waitFor("Well");
    await chat.window.press("C-c");
    await chat.window.waitFor("Aborting the turn. Ctrl-C again leaves.");
    await chat.waitForPrompt();
    await chat.window.enter("once more");
    await chat.window.waitFor("Here again.");
  });

  test("aborts the turn when the cell does not end, and leaves the third time", async () => {
    await using chat = await Chat.start({ replies: [STUBBORN_CELL, HANG] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.press("C-c", "C-c", "C-c");
    const { screen, ...ending } = await chat.ended();
    expect(screen).toContain("Interrupting the cell.");
    expect(screen).toContain("Aborting the turn.");
    expect(screen).toContain("prime-agent resume ");
    expect(ending).toEqual({ code: 130, modes: SANE_MODES });
    await chat.untilGone();
  });

  test("discards a half-typed prompt first, and asks before it leaves", async () => {
    await using chat = await Chat.start();
    await chat.window.type("not this");
    await chat.window.press("C-c");
    await chat.window.waitFor(/> not this \^C\n>$/);
    await chat.window.press("C-c");
    await chat.window.waitFor("Nothing runs. Ctrl-C again leaves");
    await chat.window.type("x");
    await chat.window.press("BSpace", "C-c");
    await chat.window.waitFor(/leaves[\s\S]*leaves.*\n>$/);
    await chat.window.press("C-c");
    expect((await chat.ended()).code).toBe(0);
  });
});

describe("a kernel that stays busy", () => {
  test("is asked about: wait keeps everything", async () => {
    await using chat = await busyChat([cell("kept + 1"), { text: "Kept." }]);
    await chat.window.enter("wait");
    await Bun.write(join(chat.user.cwd, "let-go"), "");
    expect(await chat.window.waitFor("Kept.")).toContain("\n2\n");
  }, 60_000);

  test("is asked about: restart ends it, and the model is told", async () => {
    await using chat = await busyChat([cell("'kept' in globals()"), { text: "Fresh." }]);
    await chat.window.enter("what?");
    await chat.window.waitFor(/what\?\nwait, restart or cancel\?$/);
    await chat.window.enter("r");
    expect(await chat.window.waitFor("Fresh.")).toContain("The kernel was restarted.");
    const result = chat.server.requests.at(-1)?.body.messages.at(-1).content;
    expect(result).toContain("<ipython_kernel_reset>");
  }, 60_000);

  test("is asked about: cancel and Ctrl-C leave the cell out", async () => {
    await using chat = await busyChat([cell("kept"), cell("kept"), { text: "Never mind." }]);
    await chat.window.enter("cancel");
    await chat.window.waitFor(/KernelBusy[\s\S]*cancel\?$/);
    await chat.window.press("C-c");
    await chat.window.waitFor("Never mind.");
  }, 60_000);

  /** A chat in which an aborted cell still runs and the next one has asked what to do. */
  async function busyChat(replies: object[]): Promise<Chat> {
    const chat = await Chat.start({ replies: [STUBBORN_CELL, { text: "Stubborn." }, ...replies] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.press("C-c");
    await chat.window.waitFor("Stubborn.");
    await chat.waitForPrompt();
    await chat.window.enter("next");
    await chat.window.waitFor("wait, restart or cancel?");
    return chat;
  }
});

describe("signals", () => {
  test.each([
    ["SIGTERM", 143],
    ["SIGHUP", 129],
    ["SIGINT", 130],
  ] as const)(
    "%s ends a turn, saves the session and gives the terminal back",
    async (signal, code) => {
      await using chat = await Chat.start({ replies: [LONG_CELL] });
      await chat.window.enter("go");
      await chat.window.waitFor("\nit runs");
      await chat.window.type("half a prompt");
      process.kill(programPid(chat), signal);
      const { screen, ...ending } = await chat.ended();
      expect(screen).not.toContain("half a prompt");
      expect(ending).toEqual({ code, modes: SANE_MODES });
      await chat.untilGone();
      const id = /prime-agent resume (\S+)/.exec(screen)?.[1];
      const session = join(chat.user.home, `.prime/agent/sessions/${id}.jsonl`);
      expect(readFileSync(session, "utf8")).toContain('"role":"toolResult"');
      expect(existsSync(`${session}.lock`)).toBe(false);
    },
  );

  test("SIGTERM at the prompt ends the chat", async () => {
    await using chat = await Chat.start();
    process.kill(programPid(chat), "SIGTERM");
    expect(await chat.ended()).toMatchObject({ code: 143, modes: SANE_MODES });
  });

  test("a terminal that goes away ends the chat and its kernel", async () => {
    const chat = await Chat.start({ replies: [LONG_CELL] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.close();
    while (chat.processes().length > 0) await Bun.sleep(20);
    await chat[Symbol.asyncDispose]();
  });

  test("Ctrl-Z gives the terminal to the shell, fg takes it back with what was typed", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Read." }] });
    await chat.window.type("half a prompt");
    await chat.window.press("C-z");
    await chat.window.waitFor(/Stopped[\s\S]*\n\$$/);
    await chat.window.enter("fg");
    await chat.window.waitFor(/\n> half a prompt$/);
    await chat.window.paste("\nand the rest");
    await chat.window.press("Enter");
    await chat.window.waitFor("Read.");
    expect(chat.server.requests[0]?.body.messages.at(-1).content).toBe(
      "half a prompt\nand the rest",
    );
  });
});
