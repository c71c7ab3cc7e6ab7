/** What flags and environment say about the kernel, on the compiled program, and what `setup` and `doctor` make of it. */

import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeWithPython, pythonFor } from "../support/python.ts";
import { expectCode, UserHome, type RunOptions } from "../support/program.ts";
import { ProviderServer } from "../support/provider-server.ts";
import { RealKernel } from "../support/real-kernel.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** Runs cells; the folder holds what `files` says, executable when it ends in `.sh`. */
async function cells(
  args: string[],
  options: RunOptions & { files?: Record<string, string> } = {},
) {
  using user = new UserHome();
  for (const [name, text] of Object.entries(options.files ?? {})) {
    const path = join(user.cwd, name);
    writeFileSync(path, text);
    if (name.endsWith(".sh")) chmodSync(path, 0o755);
  }
  return await user.run(["cell", ...args], options);
}

describe("the environment of cells", () => {
  const SHOW =
    "import os; print([os.environ.get(name) for name in ('OPENAI_API_KEY', 'X_AUTH_TOKEN', 'OTHER')])";
  const env = { OPENAI_API_KEY: "sk-secret-1", X_AUTH_TOKEN: "secret-two", OTHER: "plain" };

  test("has no credentials but those that --env-pass names", async () => {
    expect((await cells([SHOW], { env })).stdout).toBe("[None, None, 'plain']\n");
    const passed = await cells(["--env-pass", "OPENAI_API_KEY", SHOW], { env });
    expect(passed.stdout).toBe("['sk-secret-1', None, 'plain']\n");
  });

  test("makes programs ask nothing, page nothing and colour nothing, and stdin is empty", async () => {
    const run = await cells([
      '%%bash\ngit --version >/dev/null && echo "$PAGER|$GIT_PAGER|$GIT_TERMINAL_PROMPT|$NO_COLOR"; wc -c; read x || echo none',
    ]);
    expectCode(run, 0);
    expect(run.stdout).toMatch(/^cat\|cat\|0\|1\n0\nnone\n$/);
  });
});

describe("shell cells", () => {
  test("run in the shell of --shell-path, behind --command-prefix", async () => {
    const files = { "shell.sh": '#!/bin/sh\necho "my shell"\nexec /bin/sh "$@"\n' };
    const flags = ["--shell-path", "./shell.sh", "--command-prefix", "who=me"];
    const run = await cells([...flags, "%%bash\necho $who"], { files });
    expectCode(run, 0);
    expect(run.stdout).toBe("my shell\nme\n");
  });

  test("in a shell that is not there fail and say so", async () => {
    const run = await cells(["--shell-path", "/no/such/shell", "%%bash\necho hi"]);
    expectCode(run, 1);
    expect(run.stdout + run.stderr).toContain("/no/such/shell");
  });
});

describe("--cell-timeout", () => {
  test("interrupts the cell and keeps the kernel, and the model is told", async () => {
    await using server = await ProviderServer.start([
      cell("x = 42\nprint('begun')\nimport time; time.sleep(1000)"),
      cell("print(x)"),
      { text: "done" },
    ]);
    using user = new UserHome();
    const env = useServer(user, server);
    const run = await user.run(["-p", "--json", "--cell-timeout", "700ms", "hi"], { env });
    expectCode(run, 0);
    const [, second, third] = server.requests.map(sentRequest);
    expect(second?.results[0]?.text).toMatch(/begun[^]*timed out after 0.7 s/);
    expect(third?.results[1]?.text).toBe("42\n");
    expect(run.events[0]).toMatchObject({ limits: { cell_timeout_ms: 700 } });
  });
});

test("cell --cell-timeout says that it was the limit, and fails", async () => {
  using user = new UserHome();
  const run = await user.run(["cell", "--cell-timeout", "700ms", "import time; time.sleep(1000)"]);
  expectCode(run, 1);
  expect(run.stderr).toContain("timed out after 0.7 s");
});

describe("a cell that ignores interrupts", () => {
  /** Ends only when it is killed. */
  const DEAF = `x = 1
import time
while True:
    try:
        while True: time.sleep(0.05)
    except KeyboardInterrupt:
        pass`;

  async function nextResult(choice: string): Promise<string> {
    await using server = await ProviderServer.start([
      cell(DEAF),
      cell("print('next')"),
      { text: "done" },
    ]);
    using user = new UserHome();
    const env = useServer(user, server);
    const flags = ["--cell-timeout", "300ms", "--on-busy", choice];
    const run = await user.run(["-p", "-q", ...flags, "hi"], { env });
    expectCode(run, 0);
    return sentRequest(server.requests[2]).results[1]?.text ?? "";
  }

  test("is left or killed as --on-busy says, and nobody is asked", async () => {
    const [left, killed] = await Promise.all([nextResult("cancel"), nextResult("restart")]);
    expect(left).toMatch(/still runs.*was not started/);
    expect(left).not.toContain("next\n");
    expect(killed).toMatch(/^<ipython_kernel_reset>[^]*<\/ipython_kernel_reset>\nnext\n$/);
  });
});

describe("PRIME_AGENT_KERNEL_PYTHON", () => {
  test.each([
    { name: "no file", python: "/no/such/python", says: "/no/such/python" },
    { name: "a folder", python: "/usr", says: "/usr" },
    { name: "a program that is no Python", python: "/bin/true", says: "/bin/true" },
  ])(
    "that is $name ends a run with 7 and one clear message, and setup fails too",
    async ({ python, says }) => {
      await using server = await ProviderServer.start([cell("1"), { text: "done" }]);
      using user = new UserHome();
      const env = { ...useServer(user, server), PRIME_AGENT_KERNEL_PYTHON: python };
      const run = await user.run(["-p", "--json", "hi"], { env });
      expectCode(run, 7);
      expect(run.events.at(-1)).toMatchObject({ subtype: "error_kernel", exit_code: 7 });
      expect(run.stderr).toContain(says);
      expect(run.stderr).not.toContain("    at ");
      const direct = await user.run(["cell", "1"], { env });
      expectCode(direct, 7);
      expect(direct.stderr).toContain(says);
      expectCode(await user.run(["setup"], { env }), 7);
    },
  );

  test("without ipykernel names all that is missing and how to install it, once", async () => {
    const bare = Bun.which("python3", { PATH: "/usr/bin:/usr/local/bin" });
    if (!bare) return;
    const run = await cells(["1"], { env: { PRIME_AGENT_KERNEL_PYTHON: bare } });
    if (run.code === 0) return;
    expectCode(run, 7);
    expect(run.stderr).toContain("ipykernel");
    expect(run.stderr).toContain("-m pip install");
  });
});

describeWithPython("newest", "an interpreter of one's own", () => {
  test("is used as it is, on either transport and without the fork server", async () => {
    for (const more of [
      { PRIME_AGENT_KERNEL_TRANSPORT: "tcp" },
      { PRIME_AGENT_KERNEL_FORKSERVER: "0", PRIME_AGENT_MAX_CONCURRENT_KERNEL_BOOTS: "nonsense" },
    ]) {
      const env = { PRIME_AGENT_KERNEL_PYTHON: pythonFor("newest"), ...more };
      const run = await cells(["import sys; print(sys.executable)"], { env });
      expectCode(run, 0);
      expect(run.stdout).toBe(`${pythonFor("newest")}\n`);
    }
  });

  test("builds the managed environment with --python, below PRIME_AGENT_HOME", async () => {
    using user = new UserHome();
    const home = join(user.home, "elsewhere");
    const env = { PRIME_AGENT_HOME: home, PRIME_AGENT_KERNEL_VENV: undefined };
    const setup = await user.run(["setup", "--python", pythonFor("newest")], { env });
    expectCode(setup, 0);
    expect(setup.stdout).toMatch(/environment is built: Python 3\.13/);
    expect(existsSync(join(home, "kernel-venv/bin/python"))).toBe(true);
    expect(existsSync(join(user.home, ".prime"))).toBe(false);
    const again = await user.run(["setup"], { env });
    expect(again.stdout).toContain("environment is ready");
    const run = await user.run(["cell", "print(1)"], { env });
    expect(run.stdout).toBe("1\n");
  });

  test("--existing runs cells in a kernel that somebody else started, and leaves it running", async () => {
    await using kernel = new RealKernel("newest", "tcp");
    await kernel.info;
    const file = kernel.directory.join("kernel.json");
    const first = await cells(["--existing", file, "shared = 40"]);
    expectCode(first, 0);
    await using server = await ProviderServer.start([
      cell("shared += 2; print(shared)"),
      { text: "done" },
    ]);
    using user = new UserHome();
    const env = useServer(user, server);
    expectCode(await user.run(["-p", "-q", "--existing", file, "hi"], { env }), 0);
    expect(sentRequest(server.requests[1]).results[0]?.text).toBe("42\n");
    expect((await cells(["--existing", file, "print(shared)"])).stdout).toBe("42\n");
  });
});

test("--existing with a file that is not there, or is none, ends with one clear message", async () => {
  const missing = await cells(["--existing", "nowhere.json", "1"]);
  expectCode(missing, 2);
  expect(missing.stderr).toContain("there is no connection file");
  const files = { "kernel.json": '{"transport": "carrier pigeon"}' };
  const broken = await cells(["--existing", "kernel.json", "1"], { files });
  expectCode(broken, 7);
  expect(broken.stderr).toContain("kernel.json");
  expect(broken.stderr).not.toContain("    at ");
});

describe("doctor", () => {
  test("says what is there, what is missing and how to mend it; 0 only if a run would work", async () => {
    await using server = await ProviderServer.start([]);
    using user = new UserHome();
    const env = useServer(user, server);
    const fine = await user.run(["doctor", "--json"], { env });
    expectCode(fine, 0);
    const report = JSON.parse(fine.stdout);
    expect(report).toMatchObject({ ok: true });
    const states = Object.fromEntries(report.findings.map(({ name, state }: any) => [name, state]));
    expect(states).toMatchObject({ kernel: "ok", model: "ok", provider: "ok", home: "ok" });
    const nothing = await user.run(["doctor"], {
      env: { PRIME_AGENT_KERNEL_PYTHON: "/no/python" },
    });
    expectCode(nothing, 1);
    expect(nothing.stdout).toMatch(
      /kernel +failed[^]*\/no\/python[^]*A run would not work yet\.\n$/,
    );
    expect(nothing.stdout).not.toContain("\x1b");
  });

  test("reports a broken models.json instead of failing over it", async () => {
    using user = new UserHome();
    mkdirSync(join(user.home, ".prime/agent"), { recursive: true });
    writeFileSync(join(user.home, ".prime/agent/models.json"), "{");
    const run = await user.run(["doctor"]);
    expectCode(run, 1);
    expect(run.stdout).toMatch(/model +failed .*models\.json is not valid JSON/);
  });
});

test("files of the program are its owner's alone", async () => {
  await using server = await ProviderServer.start([cell("x = 1"), { text: "done" }]);
  using user = new UserHome();
  const env = useServer(user, server);
  expectCode(await user.run(["-p", "--session-id", "s", "hi"], { env }), 0);
  const mode = (...path: string[]) =>
    statSync(join(user.home, ".prime/agent", ...path)).mode & 0o077;
  expect(mode("sessions", "s.jsonl")).toBe(0);
  expect(mode("sessions")).toBe(0);
  expect(mode("session-artifacts", "s")).toBe(0);
});
