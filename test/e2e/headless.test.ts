/** The headless contract beside failures and signals: stdin, streams, files, limits, checks. */

import { describe, expect, test } from "bun:test";
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MODEL_ENV, modelFlags } from "../support/model-flags.ts";
import {
  expectCode,
  PROGRAM,
  RunningProgram,
  UserHome,
  type Finished,
} from "../support/program.ts";
import { ProviderServer } from "../support/provider-server.ts";

/** A server that answers with the prompt it got. */
function echoServer(): Promise<ProviderServer> {
  return ProviderServer.start([
    (request) => ({ text: `<<${contentText(request.body.messages.at(-1).content)}>>` }),
  ]);
}

function contentText(content: any): string {
  return typeof content === "string" ? content : content.map((block: any) => block.text).join("");
}

/** Runs a shell command line in which `$PA` is the program, with the server as its configured model. */
async function shell(user: UserHome, server: ProviderServer, line: string): Promise<Finished> {
  const env = user.environment({ ...configured(user, server), PA: PROGRAM });
  return await new RunningProgram(["bash", "-c", `set -o pipefail; ${line}`], env, {
    cwd: user.cwd,
    stdin: undefined,
  }).finished;
}

/** Makes the server the model of this home, as a user's `models.json` would. */
function configured(user: UserHome, server: ProviderServer): Record<string, string> {
  const provider = {
    baseUrl: server.baseUrl("openai-completions"),
    api: "openai-completions",
    apiKey: "TEST_KEY",
    models: [
      {
        id: "test",
        contextWindow: 200_000,
        maxTokens: 8_000,
        cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
      },
    ],
  };
  mkdirSync(join(user.home, ".prime/agent"), { recursive: true });
  writeFileSync(
    join(user.home, ".prime/agent/models.json"),
    JSON.stringify({ providers: { local: provider } }),
  );
  return { ...MODEL_ENV, PRIME_AGENT_MODEL: "local/test" };
}

describe("the prompt", () => {
  test.each([
    { name: "words", line: "$PA -p two words </dev/null", prompt: "two words" },
    { name: "stdin alone", line: "echo from stdin | $PA -p", prompt: "from stdin\n" },
    {
      name: "words and stdin",
      line: "echo context | $PA -p question",
      prompt: "question\n\n<stdin>\ncontext\n</stdin>",
    },
    {
      name: "a regular file on stdin",
      line: "echo context > f; $PA -p question < f",
      prompt: "question\n\n<stdin>\ncontext\n</stdin>",
    },
    { name: "a closed stdin", line: "$PA -p question <&-", prompt: "question" },
    {
      name: "--stdin ignore",
      line: "echo context | $PA -p question --stdin ignore",
      prompt: "question",
    },
    {
      name: "a prompt file",
      line: "echo from a file > f; $PA -p -f f </dev/null",
      prompt: "from a file\n",
    },
    { name: "a dash", line: "echo from stdin | $PA exec -", prompt: "from stdin\n" },
    {
      name: "words that look like a command",
      line: "$PA -p -- sessions are slow </dev/null",
      prompt: "sessions are slow",
    },
    { name: "an option after --", line: "$PA -p -- --weird </dev/null", prompt: "--weird" },
    {
      name: "slow stdin",
      line: "(sleep 1; echo late) | $PA -p question",
      prompt: "question\n\n<stdin>\nlate\n</stdin>",
    },
  ])("from $name", async ({ line, prompt }) => {
    await using server = await echoServer();
    using user = new UserHome();
    const run = await shell(user, server, line);
    expectCode(run, 0);
    expect(run.stdout).toBe(`<<${prompt}>>\n`);
  });

  test("an open, silent stdin delays the run by a bounded time, with one note", async () => {
    await using server = await echoServer();
    using user = new UserHome();
    const child = user.start(["-p", ...modelFlags(server), "hi"], {
      env: MODEL_ENV,
      stdin: "pipe",
    });
    const run = await child.finished;
    expectCode(run, 0);
    expect(run.stdout).toBe("<<hi>>\n");
    expect(run.stderr.match(/stdin is open but stayed silent/g)).toHaveLength(1);
  });
});

describe("what it writes", () => {
  test("a 5 MB answer through a slow reader arrives byte for byte", async () => {
    const answer = Array.from(
      { length: 80_000 },
      (_, index) => `line ${index} of a long answer, with ünïcödé ✓\n`,
    ).join("");
    await using server = await ProviderServer.start([{ text: answer }]);
    using user = new UserHome();
    const reader =
      "python3 -c 'import os,time\nwhile True:\n  b=os.read(0,65536)\n  if not b: break\n  os.write(1,b); time.sleep(0.002)'";
    const run = await shell(user, server, `$PA -p hi </dev/null | ${reader}`);
    expectCode(run, 0);
    expect(Bun.hash(run.stdout)).toBe(Bun.hash(answer));
  });

  test("--output-last-message gets the answer, also when nobody reads stdout", async () => {
    await using server = await ProviderServer.start([{ text: "the answer" }]);
    using user = new UserHome();
    const run = await shell(
      user,
      server,
      "$PA -p hi --output-last-message answer.txt </dev/null >&-",
    );
    expect(readFileSync(join(user.cwd, "answer.txt"), "utf8")).toBe("the answer");
    expect([0, 141]).toContain(run.code);
  });

  test("a full disk under stdout ends the run with 141, not with a stack", async () => {
    await using server = await ProviderServer.start([{ text: "the answer" }]);
    using user = new UserHome();
    const run = await shell(user, server, "$PA -p --json hi </dev/null >/dev/full");
    expectCode(run, 141);
    expect(run.stderr).not.toContain("    at ");
  });

  test("no escape byte is written, whatever the model and the cells say", async () => {
    await using server = await ProviderServer.start([
      {
        toolCalls: [{ name: "ipython", arguments: { code: "print('\\x1b[31mred\\x1b[0m'); 1/0" } }],
      },
      { text: "done" },
    ]);
    using user = new UserHome();
    const run = await shell(user, server, "$PA -p --json hi </dev/null");
    expectCode(run, 0);
    expect(run.stdout + run.stderr).not.toContain("\x1b");
    expect(server.requests[1]?.text).not.toMatch(/\\u001b|\x1b/);
  });

  test("-q leaves stderr empty on success", async () => {
    await using server = await ProviderServer.start([{ text: "done" }]);
    using user = new UserHome();
    const run = await shell(user, server, "$PA -p -q hi </dev/null");
    expect({ code: run.code, stdout: run.stdout, stderr: run.stderr }).toEqual({
      code: 0,
      stdout: "done\n",
      stderr: "",
    });
  });
});

describe("limits and checks", () => {
  const cell = {
    toolCalls: [{ name: "ipython", arguments: { code: "1" } }],
    usage: { input: 1_000, output: 500 },
  };

  test.each([
    { flags: "--max-turns 2", subtype: "error_max_turns", turns: 2 },
    { flags: "--max-tokens 2000", subtype: "error_max_tokens", turns: 2 },
    { flags: "--max-budget-usd 0.003", subtype: "error_max_budget_usd", turns: 2 },
  ])(
    "$flags ends the run as $subtype, and it can be resumed",
    async ({ flags, subtype, turns }) => {
      await using server = await ProviderServer.start([cell, cell, { text: "resumed" }]);
      using user = new UserHome();
      const run = await shell(user, server, `$PA -p --json ${flags} hi </dev/null`);
      expectCode(run, 4);
      expect(run.events.at(-1)).toMatchObject({ subtype, is_error: true, num_turns: turns });
      const resumed = await shell(user, server, "$PA -p -c go on </dev/null");
      expect(resumed.stdout).toBe("resumed\n");
    },
  );

  test("a failed check goes back to the model, and the run succeeds once it passes", async () => {
    await using server = await ProviderServer.start([
      { text: "done, I think" },
      { toolCalls: [{ name: "ipython", arguments: { code: "open('fixed', 'w').close()" } }] },
      { text: "now it is" },
    ]);
    using user = new UserHome();
    const run = await shell(
      user,
      server,
      "$PA -p --json --check 'printf \"\\033[31mno\\033[0m file\\n\"; test -e fixed' hi </dev/null",
    );
    expectCode(run, 0);
    expect(server.requests[1]?.text).toContain("no file");
    expect(
      run.events.filter((event) => event["type"] === "check").map((event) => event["passed"]),
    ).toEqual([false, true]);
    expect(run.events.at(-1)).toMatchObject({ subtype: "success", result: "now it is" });
  });

  test("a check that leaves something in the background ends all the same, and takes it along", async () => {
    await using server = await ProviderServer.start([{ text: "done" }]);
    using user = new UserHome();
    const check = "(sleep 1000; touch late) & setsid sleep 1000 & echo begun; exit 0";
    const run = await shell(user, server, `$PA -p --json --check '${check}' hi </dev/null`);
    expectCode(run, 0);
    expect(run.events.find((event) => event["type"] === "check")).toMatchObject({
      passed: true,
      output: "begun\n",
    });
  });

  test("a check that hangs is cut by --timeout", async () => {
    await using server = await ProviderServer.start([{ text: "done" }]);
    using user = new UserHome();
    const check = "trap '' INT TERM; sleep 1000";
    const run = await shell(
      user,
      server,
      `$PA -p --json --timeout 1s --check "${check}" hi </dev/null`,
    );
    expectCode(run, 124);
  });

  test("a check that never passes is exit code 5", async () => {
    await using server = await ProviderServer.start(
      Array.from({ length: 9 }, () => ({ text: "done" })),
    );
    using user = new UserHome();
    const run = await shell(user, server, "$PA -p --json --check false hi </dev/null");
    expectCode(run, 5);
    expect(run.events.at(-1)).toMatchObject({ subtype: "error_check_failed", exit_code: 5 });
  });
});

describe("poor surroundings", () => {
  test("without HOME and with nowhere to save, the run goes on and says what is not saved", async () => {
    await using server = await ProviderServer.start([{ text: "fine" }]);
    using user = new UserHome();
    const flags = modelFlags(server);
    const run = await user.run(["-p", "--json", ...flags, "hi"], {
      env: { ...MODEL_ENV, HOME: undefined, PRIME_AGENT_HOME: "/proc/nowhere" },
    });
    expectCode(run, 0);
    expect(run.events.at(-1)).toMatchObject({ result: "fine", session_file: null });
    expect(run.stderr).toContain("not saved");
  });

  /** Runs the program from a shell script in which `$PA` and `$VENV` are set, and nothing of a model. */
  async function fromShell(user: UserHome, script: string): Promise<Finished> {
    const env = user.environment();
    const more = { PA: PROGRAM, VENV: env["PRIME_AGENT_KERNEL_VENV"] };
    const options = { cwd: user.cwd, stdin: undefined };
    return await new RunningProgram(["bash", "-c", script], { ...env, ...more }, options).finished;
  }

  test("with an empty environment, cells run", async () => {
    using user = new UserHome();
    const cell = `exec env -i PRIME_AGENT_KERNEL_VENV="$VENV" PATH="$PATH" "$PA" cell "print(1)"`;
    const run = await fromShell(user, cell);
    expectCode(run, 0);
    expect(run.stdout).toBe("1\n");
  });

  test("from a deleted folder, one line says what to do: Bun itself can't start there", async () => {
    using user = new UserHome();
    const run = await fromShell(
      user,
      'mkdir gone && cd gone && rmdir ../gone && exec "$PA" cell "print(1)"',
    );
    expectCode(run, 1);
    expect(run.stderr.trim().split("\n")).toEqual([
      expect.stringContaining("working directory was deleted"),
    ]);
  });

  test("a folder that is deleted while cells run does not end them", async () => {
    using user = new UserHome();
    const cells = `"import os; os.rmdir(os.getcwd()); print(1)" $'%%bash\\necho from the shell' "%cd /tmp" "print(2)"`;
    const run = await fromShell(user, `mkdir gone && cd gone && exec "$PA" cell ${cells}`);
    expectCode(run, 0);
    expect(run.stdout.split("\n")).toContain("from the shell");
    expect(run.stdout).toEndWith("2\n");
  });

  test("auth.json is readable by its owner only, and status names no key", async () => {
    using user = new UserHome();
    const set = await user.run(["auth", "set", "openai"], { stdin: "sk-a-secret-key\n" });
    expectCode(set, 0);
    const path = join(user.home, ".prime/agent/auth.json");
    expect((Bun.file(path).size ?? 0) > 0).toBe(true);
    expect(statSync(path).mode & 0o777).toBe(0o600);
    const status = await user.run(["auth", "status"]);
    expect(status.stdout).toMatch(/openai +auth\.json/);
    expect(set.stdout + set.stderr + status.stdout).not.toContain("sk-a-secret-key");
  });
});
