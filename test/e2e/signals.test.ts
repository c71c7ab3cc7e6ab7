/** Signals, limits and readers that go away: the run ends in time, tells the truth, and leaves nothing. */

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { MODEL_ENV, modelFlags } from "../support/model-flags.ts";
import { expectCode, PROGRAM, RunningProgram, UserHome } from "../support/program.ts";
import { ProviderServer, type ServedScript } from "../support/provider-server.ts";

function cell(code: string): ServedScript {
  return { toolCalls: [{ name: "ipython", arguments: { code } }] };
}

/** Processes whose environment names this home: all that the program and its cells left. */
function processesOf(home: string): string[] {
  const found: string[] = [];
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name) || Number(name) === process.pid) continue;
    try {
      const environ = readFileSync(`/proc/${name}/environ`, "utf8");
      const state = /^State:\s+(\S)/m.exec(readFileSync(`/proc/${name}/status`, "utf8"))?.[1];
      if (state !== "Z" && environ.includes(`HOME=${home}\0`))
        found.push(readFileSync(`/proc/${name}/cmdline`, "utf8"));
    } catch {
      // The process ended while we looked.
      continue;
    }
  }
  return found;
}

async function untilGone(home: string): Promise<void> {
  while (processesOf(home).length > 0) await Bun.sleep(20);
}

const BUSY_CELLS: Record<string, string> = {
  "a loop": "print('begun', flush=True)\nwhile True: pass",
  "a shell that ignores INT and TERM":
    "%%bash\ntrap '' INT TERM; echo begun; while true; do sleep 1; done",
  "a blocked thread": "import time\nprint('begun', flush=True)\ntime.sleep(1000)",
};

describe("a signal during a cell", () => {
  const cases = Object.entries(BUSY_CELLS).flatMap(([name, code]) =>
    (
      [
        ["SIGINT", 130],
        ["SIGTERM", 143],
        ["SIGHUP", 129],
      ] as const
    ).map(([signal, code_]) => ({ name, code, signal, exit: code_ })),
  );
  test.each(cases)(
    "$signal while $name runs exits $exit with a last result and leaves no process",
    async ({ code, signal, exit }) => {
      await using server = await ProviderServer.start([cell(code)]);
      using user = new UserHome();
      const child = user.start(["-p", "--json", ...modelFlags(server), "go"], { env: MODEL_ENV });
      await child.saw("stderr", "begun");
      child.kill(signal);
      const run = await child.finished;
      expectCode(run, exit);
      expect(run.events.at(-1)).toMatchObject({
        type: "result",
        subtype: "error_interrupted",
        is_error: true,
        exit_code: exit,
      });
      await untilGone(user.home);
      const resumed = await resume(user);
      expect(resumed).toContain("after the signal");
    },
  );
});

test("a second signal ends the program at once, with the code of one of them, and no process stays", async () => {
  await using server = await ProviderServer.start([
    cell(BUSY_CELLS["a shell that ignores INT and TERM"] as string),
  ]);
  using user = new UserHome();
  const child = user.start(["-p", "--json", ...modelFlags(server), "go"], { env: MODEL_ENV });
  await child.saw("stderr", "begun");
  child.kill("SIGINT");
  child.kill("SIGTERM");
  const run = await child.finished;
  // Signals that wait together may be handled in any order.
  expect([130, 143]).toContain(run.code);
  expect(run.events.at(-1)?.["type"]).not.toBe("result");
  await untilGone(user.home);
  expect(await resume(user)).toContain("after the signal");
});

/** Resumes the session of the home and returns the answer; the request must be valid. */
async function resume(user: UserHome): Promise<string> {
  await using server = await ProviderServer.start([
    (request) => {
      const messages = request.body.messages as any[];
      const calls = messages.flatMap(
        (message) => message.tool_calls?.map((call: any) => call.id) ?? [],
      );
      const results = messages
        .filter((message) => message.role === "tool")
        .map((message) => message.tool_call_id);
      expect(results).toEqual(calls);
      return { text: "after the signal" };
    },
  ]);
  const run = await user.run(["-p", "-c", ...modelFlags(server), "go on"], { env: MODEL_ENV });
  expectCode(run, 0);
  return run.stdout;
}

test("a signal while the model answers ends the request and the run", async () => {
  await using server = await ProviderServer.start([
    { text: "Hello, this takes long", end: "hang" },
  ]);
  using user = new UserHome();
  const child = user.start(
    ["-p", "--json", "--include-partial-messages", ...modelFlags(server), "go"],
    {
      env: MODEL_ENV,
    },
  );
  while (server.requests.length === 0) await Bun.sleep(10);
  child.kill("SIGINT");
  const run = await child.finished;
  expectCode(run, 130);
  expect(run.events.at(-1)).toMatchObject({ subtype: "error_interrupted" });
  await untilGone(user.home);
});

test("--timeout cuts a hung request and a hung cell, with exit code 124", async () => {
  using user = new UserHome();
  await using silent = await ProviderServer.start([{ refuse: "hang" }]);
  const hungRequest = await user.run(
    ["-p", "--json", "--timeout", "1s", ...modelFlags(silent), "go"],
    {
      env: MODEL_ENV,
    },
  );
  expectCode(hungRequest, 124);
  expect(hungRequest.events.at(-1)).toMatchObject({ subtype: "error_timeout", exit_code: 124 });
  await using server = await ProviderServer.start([cell("import time; time.sleep(1000)")]);
  const hungCell = await user.run(
    ["-p", "--json", "--timeout", "2s", ...modelFlags(server), "go"],
    {
      env: MODEL_ENV,
    },
  );
  expectCode(hungCell, 124);
  await untilGone(user.home);
});

test("a reader that goes away ends the run with 141 and stops the running cell", async () => {
  await using server = await ProviderServer.start([cell("for i in range(10**9): print(i)")]);
  using user = new UserHome();
  const command = `"$0" -p --json --include-partial-messages ${modelFlags(server).join(" ")} go | head -n 3; exit "\${PIPESTATUS[0]}"`;
  const shell = new RunningProgram(["bash", "-c", command, PROGRAM], user.environment(MODEL_ENV), {
    cwd: user.cwd,
    stdin: undefined,
  });
  const run = await shell.finished;
  expect({ code: run.code, lines: run.events.length }).toEqual({ code: 141, lines: 3 });
  expect(run.stderr).not.toContain("    at ");
  await untilGone(user.home);
});

test("a killed host leaves no kernel, no shell and no folder of sockets", async () => {
  await using server = await ProviderServer.start([
    cell("%%bash\nsleep 1000 &\necho begun; sleep 1000"),
  ]);
  using user = new UserHome();
  const tmp = `${user.home}/tmp`;
  Bun.spawnSync(["mkdir", "-p", tmp]);
  const child = user.start(["-p", ...modelFlags(server), "go"], {
    env: { ...MODEL_ENV, TMPDIR: tmp },
  });
  await child.saw("stderr", "begun");
  child.kill("SIGKILL");
  await child.finished;
  await untilGone(user.home);
  while (readdirSync(tmp).some((name) => name.startsWith("pa-"))) await Bun.sleep(20);
});

describe("a signal for the cell command", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
  ] as const)(
    "%s ends a cell that ignores it with %d, and leaves no process",
    async (signal, code) => {
      using user = new UserHome();
      const deaf = BUSY_CELLS["a shell that ignores INT and TERM"] as string;
      const child = user.start(["cell", deaf, "print('not reached')"]);
      await child.saw("stdout", "begun");
      child.kill(signal);
      const run = await child.finished;
      expectCode(run, code);
      expect(run.stdout).not.toContain("not reached");
      await untilGone(user.home);
    },
  );

  test("ends the wait for cells on stdin, too, and so does --timeout", async () => {
    using user = new UserHome();
    const waiting = user.start(["cell", "-", "-v"], { stdin: "pipe" });
    await waiting.saw("stderr", "[");
    waiting.kill("SIGINT");
    expectCode(await waiting.finished, 130);
    const late = user.start(["cell", "-", "--timeout", "200ms"], { stdin: "pipe" });
    expectCode(await late.finished, 124);
    await untilGone(user.home);
  });
});
