/** What begins with a slash, and what is typed while the model works, in the chat under tmux. */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Chat } from "../support/chat.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** A cell that says when it runs, and ends when a file appears. */
const GATED_CELL = cell(
  "import os, time\nprint('it', 'runs')\nwhile not os.path.exists('go'): time.sleep(0.02)",
);

function openGate(chat: Chat): Promise<number> {
  return Bun.write(join(chat.user.cwd, "go"), "");
}

/** The session that the screen names last. */
function sessionId(screen: string): string {
  return [...screen.matchAll(/· session ([0-9a-f-]{36})/g)].at(-1)?.[1] as string;
}

/** The entries of a saved session. */
function entries(chat: Chat, id: string): Array<Record<string, any>> {
  const file = join(chat.user.home, `.prime/agent/sessions/${id}.jsonl`);
  const lines = readFileSync(file, "utf8").trimEnd().split("\n");
  return lines.map((line) => JSON.parse(line) as Record<string, any>);
}

describe("typing while the model works", () => {
  test("queues a message that the model reads before its next step", async () => {
    await using chat = await Chat.start({ replies: [GATED_CELL, { text: "As you say." }] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.type("be bri");
    await chat.window.waitFor(/\nsteer> be bri$/);
    await chat.window.enter("ef");
    await chat.window.waitFor("Queued: the model reads it before its next step.");
    await openGate(chat);
    await chat.window.waitFor("As you say.");
    const last = chat.server.requests[1]?.body.messages.at(-1);
    expect(last).toMatchObject({ role: "user", content: "be brief" });
  });

  test("does not garble an answer that streams meanwhile", async () => {
    const words = Array.from({ length: 400 }, (_, index) => `word${index}`).join(" ");
    await using chat = await Chat.start({
      replies: [
        { text: `${words}.\nThe end.`, chunkBytes: 2_000, chunkDelayMs: 20 },
        { text: "Yes." },
      ],
      columns: 60,
    });
    await chat.window.enter("go");
    await chat.window.waitFor("word20 ");
    for (const letter of "stop soon") await chat.window.type(letter);
    await chat.window.press("Enter");
    await chat.window.waitFor("Yes.");
    const screen = await chat.window.screen({ all: true });
    // Above the answer's first line, which was open when the message was entered.
    expect(screen).toMatch(/\nsteer> stop soon\nQueued[^\n]*\nword0 word1 /);
    // Where the terminal wraps a word, the screen has a line break that the answer has not.
    const shown = screen.slice(screen.indexOf("word0")).replace(/\s/g, "");
    expect(shown).toStartWith(`${words.replaceAll(" ", "")}.Theend.`);
  });

  test("a message that came too late for an aborted turn is back in the prompt line", async () => {
    await using chat = await Chat.start({
      replies: [{ text: "Well", finish: "none", end: "hang" }, { text: "Now." }],
    });
    await chat.window.enter("go");
    await chat.window.waitFor("Well");
    await chat.window.enter("and quickly");
    await chat.window.waitFor("Queued");
    await chat.window.press("C-c");
    await chat.window.waitFor(/\n> and quickly$/);
    await chat.window.press("Enter");
    await chat.window.waitFor("Now.");
    expect(chat.server.requests[1]?.body.messages.at(-1).content).toBe("and quickly");
  });

  test("some commands work at once, others have to wait", async () => {
    await using chat = await Chat.start({ replies: [GATED_CELL, { text: "Done." }] });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.enter("/usage");
    await chat.window.waitFor("context: about");
    await chat.window.enter("/new");
    await chat.window.waitFor("That has to wait for the end of the turn.");
    await openGate(chat);
    await chat.window.waitFor("Done.");
    expect(chat.server.requests.length).toBe(2);
  });

  test("/restart ends even a cell that can't be interrupted, and the model is told", async () => {
    await using chat = await Chat.start({
      replies: [GATED_CELL, cell("1 + 1"), { text: "Done." }],
    });
    await chat.window.enter("go");
    await chat.window.waitFor("\nit runs");
    await chat.window.enter("/restart");
    await chat.window.waitFor("a fresh one starts");
    expect(await chat.window.waitFor("Done.")).toContain("The kernel was restarted.");
    expect(chat.server.requests[2]?.body.messages.at(-1).content).toContain("user restarted it");
  });
});

describe("commands", () => {
  test("/help names every command; a mistyped one is not sent", async () => {
    await using chat = await Chat.start();
    await chat.window.enter("/help");
    const screen = await chat.window.waitFor("Tab completes");
    const names = ["help", "model", "effort", "new", "resume", "compact", "goal", "skills"];
    for (const name of [...names, "restart", "usage", "quit"])
      expect(screen).toContain(`  /${name}`);
    await chat.window.enter("/hepl me");
    await chat.window.waitFor("There is no command /hepl. Did you mean /help?");
    expect(chat.server.requests.length).toBe(0);
    await chat.window.type("/he");
    await chat.window.press("Tab");
    await chat.window.waitFor(/> \/help$/);
  });

  test("a path at the start of a line is a prompt", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Programs." }] });
    await chat.window.enter("/usr/bin holds what?");
    await chat.window.waitFor("Programs.");
    expect(chat.server.requests[0]?.body.messages.at(-1).content).toBe("/usr/bin holds what?");
  });

  test("/model and /effort change what answers, and the session keeps it", async () => {
    await using chat = await Chat.start({ replies: [{ text: "One." }, { text: "Two." }] });
    const id = sessionId(await chat.window.screen());
    await chat.window.enter("first");
    await chat.window.waitFor("One.");
    await chat.waitForPrompt();
    await chat.window.enter("/model");
    await chat.window.waitFor("local/test answers now.");
    await chat.window.enter("/model no-such-provider/x");
    await chat.window.waitFor("no-such-provider");
    await chat.window.enter("/model local/other");
    await chat.window.waitFor("model: local/other");
    await chat.window.enter("/effort huge");
    await chat.window.waitFor('not "huge"');
    await chat.window.enter("/effort high");
    await chat.window.waitFor("effort: high");
    await chat.window.enter("second");
    await chat.window.waitFor("Two.");
    expect(chat.server.requests.map(({ body }) => body.model)).toEqual(["test", "other"]);
    expect(entries(chat, id)).toContainEqual(
      expect.objectContaining({ type: "model_change", provider: "local", modelId: "other" }),
    );
    expect(entries(chat, id)).toContainEqual(
      expect.objectContaining({ type: "thinking_level_change", thinkingLevel: "high" }),
    );
  });

  test("/new begins with a fresh kernel, /resume goes back to the old one", async () => {
    await using chat = await Chat.start({
      replies: [
        cell("where = 'in the first'"),
        { text: "First." },
        cell("'where' in globals()"),
        { text: "Second." },
        cell("where"),
        { text: "Third." },
      ],
    });
    const first = sessionId(await chat.window.screen());
    await chat.window.enter("one");
    await chat.window.waitFor("First.");
    await chat.waitForPrompt();
    await chat.window.enter("/new");
    await chat.window.waitFor((screen) => sessionId(screen) !== first);
    await chat.waitForPrompt();
    await chat.window.enter("two");
    expect(await chat.window.waitFor("Second.")).toContain("\nFalse\n");
    expect(chat.server.requests[2]?.body.messages.length).toBe(2);
    await chat.waitForPrompt();
    await chat.window.enter("/resume");
    await chat.window.waitFor(new RegExp(`\\n${first.slice(0, 8)}.* one\\n`));
    await chat.window.enter("/resume nothing-like-it");
    await chat.window.waitFor('there is no session "nothing-like-it"');
    await chat.window.enter(`/resume ${first.slice(0, 8)}`);
    await chat.window.waitFor(
      new RegExp(`session ${first}, 4 messages so far\n(.*\n)*> one\nFirst.\n\n>$`),
    );
    await chat.window.enter("three");
    expect(await chat.window.waitFor("Third.")).toContain("\n'in the first'\n");
    await chat.waitForPrompt();
    await chat.window.enter(`/resume ${first.slice(0, 8)}`);
    await chat.window.waitFor("This is the session that you are in.");
    await chat.window.press("C-d");
    await chat.window.waitFor(`prime-agent resume ${first}`);
    await chat.untilGone();
  });

  test("/compact replaces what is old by a summary, and Ctrl-C aborts it", async () => {
    const long = "word ".repeat(12_000);
    await using chat = await Chat.start({
      replies: [
        { text: long },
        { text: "Short." },
        { text: "A summ", finish: "none", end: "hang" },
        { text: "A summary of it all." },
        { text: "Going on." },
      ],
    });
    await chat.window.enter("tell me a long story");
    await chat.window.waitFor(/word\n.* full\n\n>$/);
    await chat.window.enter("and now");
    await chat.window.waitFor("Short.");
    await chat.waitForPrompt();
    await chat.window.enter("/compact");
    await chat.window.waitFor("Compacting… Ctrl-C aborts it.");
    await chat.server.waitForRequests(3);
    await chat.window.press("C-c");
    await chat.window.waitFor("aborted");
    await chat.window.enter("/compact keep the names");
    await chat.window.waitFor("Context compacted (manual");
    expect(chat.server.requests[3]?.text).toContain("keep the names");
    await chat.window.enter("go on");
    await chat.window.waitFor("Going on.");
    expect(chat.server.requests[4]?.text).toContain("A summary of it all.");
    expect(chat.server.requests[4]?.text).not.toContain("word word");
  });

  test("/goal is worked on until it is reached", async () => {
    await using chat = await Chat.start({
      replies: [{ text: "I begin." }, cell("await goal.complete()"), { text: "Reached." }],
    });
    await chat.window.enter("/goal");
    await chat.window.waitFor("There is no goal.");
    await chat.window.enter("/goal write a poem");
    await chat.window.waitFor("Reached.");
    expect(chat.server.requests[0]?.text).toContain("write a poem");
    await chat.waitForPrompt();
    await chat.window.enter("/goal");
    await chat.window.waitFor(/goal \(complete, \d+ tokens used\): write a poem/);
  });

  test("/skills lists skills, and /skill:NAME begins a prompt with one", async () => {
    await using chat = await Chat.open({ replies: [{ text: "Fish it is." }] });
    const skill = "---\nname: cook\ndescription: How to cook.\n---\nBoil the water first.\n";
    await Bun.write(join(chat.user.cwd, ".agents/skills/cook/SKILL.md"), skill);
    await chat.run([]);
    await chat.waitForPrompt();
    await chat.window.enter("/skills");
    await chat.window.waitFor("How to cook.");
    await chat.window.enter("/skill:cok fish");
    await chat.window.waitFor("Did you mean /skill:cook?");
    await chat.window.enter("/skill:cook fish");
    await chat.window.waitFor("Fish it is.");
    const content = chat.server.requests[0]?.body.messages.at(-1).content;
    expect(content).toContain("Boil the water first.");
    expect(content).toEndWith("fish");
  });

  test("/usage adds up the session", async () => {
    await using chat = await Chat.start({
      replies: [{ text: "Hi.", usage: { input: 1_200, output: 34 } }],
    });
    await chat.window.enter("hello");
    await chat.window.waitFor("Hi.");
    await chat.waitForPrompt();
    await chat.window.enter("/usage");
    const screen = await chat.window.waitFor("context: about");
    expect(screen).toContain("session: 1,234 tokens");
    expect(screen).toContain("local/test: 1,200 in, 34 out, 1 replies");
  });

  test("what is entered while a command works comes after it", async () => {
    await using chat = await Chat.start({ replies: [{ text: "Then this." }] });
    await chat.window.type("/new");
    await chat.window.press("Enter", "h", "i", "Enter");
    await chat.window.waitFor("Then this.");
    expect(chat.server.requests[0]?.body.messages.at(-1).content).toBe("hi");
  });
});
