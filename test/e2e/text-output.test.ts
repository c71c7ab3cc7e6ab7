/** The text format: the answer alone on stdout, what happens on stderr, and colours only where they belong. */

import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expectCode, PROGRAM, UserHome } from "../support/program.ts";
import { ProviderServer, type ServedScript } from "../support/provider-server.ts";
import { runInTerminal } from "../support/pseudo-terminal.ts";
import { useServer } from "../support/user-model.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** A retry, a cell of several lines, a reply that breaks off, a failing cell, an answer. */
const CONVERSATION: ServedScript[] = [
  {
    status: 503,
    headers: { "retry-after": "0" },
    error: { type: "overloaded_error", message: "try later" },
  },
  {
    text: "I look.",
    ...cell("for i in range(3):\n    print(i)\n6*7"),
    usage: { input: 1_000, output: 500 },
  },
  { text: "half an ans", finish: "none", end: "close", chunkBytes: 200, chunkDelayMs: 20 },
  { ...cell("1/0"), usage: { input: 1_000, output: 500 } },
  { text: "done\n\nwell", usage: { input: 1_000, output: 500 } },
];

async function converse(
  flags: string[],
  script: readonly ServedScript[] = CONVERSATION,
  more: Record<string, string> = {},
) {
  await using server = await ProviderServer.start(script);
  using user = new UserHome();
  const env = { ...useServer(user, server), ...more };
  const run = await user.run(["-p", ...flags, "hi"], { env });
  expectCode(run, 0);
  return run;
}

describe("without a terminal", () => {
  test("stdout is the answer and one line break; stderr tells all that happens, line by line", async () => {
    const run = await converse([]);
    expect(run.stdout).toBe("done\n\nwell\n");
    const lines = run.stderr
      .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "ID")
      .replace(/127\.0\.0\.1:\d+/, "HOST")
      .replace(/in [\d.]+ s/g, "in N s")
      .replace(/ · [\d.]+s\n/, " · Ns\n")
      .split("\n")
      .filter((line) => line !== "Starting IPython kernel…");
    expect(lines).toEqual([
      "local/test · session ID",
      "local: try later (HTTP 503); retry 1/3 in N s",
      "> for i in range(3): (+2 lines)",
      "0",
      "1",
      "2",
      "42",
      "local: the connection to HOST was closed unexpectedly; retry 1/3 in N s",
      "> 1/0",
      "✗ ZeroDivisionError: division by zero",
      "success · 3 turns · 2 cells · 4500 tokens · US$ 0.0060 · Ns",
      "",
    ]);
  });

  test.each([
    { answer: "done", stdout: "done\n" },
    { answer: "done\n", stdout: "done\n" },
    { answer: "done\r\n", stdout: "done\r\n" },
    { answer: "\x1b[31mred\x1b[0m", stdout: "\\x1b[31mred\\x1b[0m\n" },
    { answer: "it is a-key-for-tests", stdout: "it is [redacted]\n" },
  ])("the answer $answer arrives as $stdout", async ({ answer, stdout }) => {
    expect((await converse(["-q"], [{ text: answer }])).stdout).toBe(stdout);
  });

  test("-q leaves nothing on stderr, and of a failure only its reason", async () => {
    expect((await converse(["-q"], [cell("1/0"), { text: "done" }])).stderr).toBe("");
    await using server = await ProviderServer.start([]);
    using user = new UserHome();
    const failed = await user.run(["-p", "-q", "hi"], { env: useServer(user, server) });
    expectCode(failed, 1);
    expect(failed.stdout).toBe("");
    expect(failed.stderr).toMatch(/^prime-agent: local: the script has no more replies.*\n$/);
  });

  test("-v adds diagnostics, without secrets", async () => {
    const run = await converse(["-v"], [cell("1"), { text: "done" }]);
    expect(run.stderr).toMatch(/^\[\w[\w-]*\] /m);
    expect(run.stderr).not.toContain("a-key-for-tests");
    expect(run.stdout).toBe("done\n");
  });

  test("--output-last-message gets the answer in every format", async () => {
    for (const format of ["text", "json", "stream-json"]) {
      await using server = await ProviderServer.start([{ text: "the answer" }]);
      using user = new UserHome();
      const flags = ["-p", "-o", format, "--output-last-message", "answer.txt"];
      expectCode(await user.run([...flags, "hi"], { env: useServer(user, server) }), 0);
      expect(readFileSync(join(user.cwd, "answer.txt"), "utf8")).toBe("the answer");
    }
  });

  test("a file for the last message that can't be written is told, and the answer still comes", async () => {
    const run = await converse(["--output-last-message", "/no/such/folder/x"], [{ text: "done" }]);
    expect(run.stdout).toBe("done\n");
    expect(run.stderr).toContain("/no/such/folder/x can't be written");
  });
});

describe("with a terminal", () => {
  async function watch(flags: readonly string[], script: readonly ServedScript[], more = {}) {
    await using server = await ProviderServer.start(script);
    using user = new UserHome();
    const env = { TERM: "xterm", ...useServer(user, server), ...more };
    const { code, shown } = await runInTerminal(user, [PROGRAM, "-p", ...flags, "hi"], env);
    expect({ code, shown }).toEqual({ code: 0, shown });
    return shown;
  }

  test("the answer streams, every line on its own, and a reply that broke off is not glued to the next", async () => {
    const shown = await watch(["--no-color"], CONVERSATION);
    const lines = shown.split("\n");
    for (const line of ["I look.", "done", "well"]) expect(lines).toContain(line);
    // How much of a reply is read before its connection closes is up to the system.
    expect(shown).not.toMatch(/half an ans[^\n]/);
    expect(shown.match(/done\n\nwell/g)).toHaveLength(1);
    expect(lines.at(-2)).toMatch(/^success · 3 turns/);
    expect(shown).not.toContain("\r");
  });

  test.each([
    { name: "a plain terminal", flags: [], env: {}, colours: true },
    { name: "NO_COLOR", flags: [], env: { NO_COLOR: "1" }, colours: false },
    { name: "CI", flags: [], env: { CI: "true" }, colours: false },
    { name: "TERM=dumb", flags: [], env: { TERM: "dumb" }, colours: false },
    { name: "--no-color", flags: ["--no-color"], env: {}, colours: false },
    { name: "--color never", flags: ["--color", "never"], env: {}, colours: false },
    {
      name: "--color always against NO_COLOR",
      flags: ["--color", "always"],
      env: { NO_COLOR: "1" },
      colours: true,
    },
  ])("$name: colours $colours, and never a moved cursor", async ({ flags, env, colours }) => {
    const shown = await watch(flags, [cell("1/0"), { text: "done" }], env);
    expect(shown.includes("\x1b")).toBe(colours);
    // Colours end with m; whatever else begins with an escape would move something.
    expect(shown.replace(/\x1b\[[\d;]*m/g, "")).not.toContain("\x1b");
  });
});

test("on a pipe there is no escape byte, whatever the environment says about colours", async () => {
  for (const env of [{}, { FORCE_COLOR: "1", CLICOLOR_FORCE: "1", TERM: "xterm-256color" }]) {
    const script = [cell("1/0"), { text: "done" }];
    const run = await converse([], script, env as Record<string, string>);
    expect(run.stdout + run.stderr).not.toContain("\x1b");
  }
});
