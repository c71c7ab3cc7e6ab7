/** Where the program runs when nobody prepared anything for it: other users, homes that are not theirs, process 1, no repository. */

import { describe, expect, test } from "bun:test";
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectCode, PROGRAM, RunningProgram, UserHome } from "../support/program.ts";
import { ProviderServer } from "../support/provider-server.ts";
import { useServer, writeOwnFile } from "../support/user-model.ts";

/** An id without an account. */
const SOMEBODY = 23_456;
const mayChangeUser = process.getuid?.() === 0 && Bun.which("setpriv") !== null;
const mayNest = process.getuid?.() === 0 && Bun.which("unshare") !== null;
if (!mayChangeUser) console.warn("skipped: another user's runs need root and setpriv");
if (!mayNest) console.warn("skipped: runs as process 1 need root and unshare");

/** Runs the program as somebody without an account. */
function asSomebody(user: UserHome, args: string[], env: Record<string, string | undefined>) {
  const id = String(SOMEBODY);
  const command = ["setpriv", "--reuid", id, "--regid", id, "--clear-groups", PROGRAM, ...args];
  return new RunningProgram(command, user.environment(env), { cwd: "/tmp", stdin: undefined })
    .finished;
}

describe.skipIf(!mayChangeUser)("as a user without an account", () => {
  test.each([
    { name: "HOME=/", home: () => "/" },
    { name: "another user's home", home: (user: UserHome) => user.home },
    { name: "a home that is not there", home: () => "/nonexistent" },
  ])("with $name the run answers, and says once what is not saved", async ({ home }) => {
    await using server = await ProviderServer.start([{ text: "fine" }]);
    using user = new UserHome();
    chmodSync(user.home, 0o755);
    const flags = ["-m", "local/x", "--base-url", server.baseUrl("openai-completions")];
    const env = { HOME: home(user), PRIME_AGENT_KERNEL_VENV: undefined };
    const run = await asSomebody(user, ["-p", "--json", ...flags, "hi"], env);
    expectCode(run, 0);
    expect(run.events.at(-1)).toMatchObject({ result: "fine", session_file: null, resume: null });
    expect(run.stderr.match(/not saved: /g)).toHaveLength(1);
    expect(existsSync(join(user.home, ".prime"))).toBe(false);
  });

  test("with no HOME a folder for temporary files of their own takes its place, if it is theirs alone", async () => {
    using user = new UserHome();
    const folder = join(user.cwd, `prime-agent-${SOMEBODY}`);
    for (const path of [join(user.cwd, ".."), user.cwd]) chmodSync(path, 0o1777);
    const env = { HOME: undefined, TMPDIR: user.cwd, PRIME_AGENT_KERNEL_VENV: undefined };
    const ask = async () => {
      await using server = await ProviderServer.start([{ text: "fine" }]);
      const flags = ["-m", "local/x", "--base-url", server.baseUrl("openai-completions")];
      const run = await asSomebody(user, ["-p", "--json", ...flags, "hi"], env);
      expectCode(run, 0);
      return run.events.at(-1)?.["session_file"];
    };
    expect(await ask()).toStartWith(join(folder, "sessions"));
    chmodSync(folder, 0o777);
    writeFileSync(join(folder, "settings.json"), '{"model": "planted/model"}');
    expect(await ask()).toBe(null);
  });

  test("files of another user that can't be read count as missing", async () => {
    await using server = await ProviderServer.start([{ text: "fine" }]);
    using user = new UserHome();
    const folder = join(user.home, ".prime/agent");
    for (const name of ["auth.json", "settings.json", "models.json"])
      chmodSync(writeOwnFile(user, name, { secret: "of root" }), 0o600);
    for (const path of [join(user.home, ".."), user.home, join(folder, ".."), folder])
      chmodSync(path, 0o755);
    const flags = ["-m", "local/x", "--base-url", server.baseUrl("openai-completions")];
    expectCode(await asSomebody(user, ["-p", ...flags, "hi"], { HOME: user.home }), 0);
  });

  test("a home that is theirs is used, and closed to others", async () => {
    await using server = await ProviderServer.start([{ text: "fine" }]);
    using user = new UserHome();
    chmodSync(join(user.home, ".."), 0o755);
    chownSync(user.home, SOMEBODY, SOMEBODY);
    const flags = ["-m", "local/x", "--base-url", server.baseUrl("openai-completions")];
    const run = await asSomebody(user, ["-p", "--session-id", "s", ...flags, "hi"], {
      HOME: user.home,
    });
    expectCode(run, 0);
    expect(readdirSync(join(user.home, ".prime/agent/sessions"))).toEqual(["s.jsonl"]);
  });
});

describe.skipIf(!mayNest)("as process 1", () => {
  test("cells run, their orphans are collected, and the exit code is the run's", async () => {
    using user = new UserHome();
    const nested = ["unshare", "--pid", "--fork", "--mount-proc", PROGRAM];
    const run = (args: string[]) =>
      new RunningProgram([...nested, ...args], user.environment(), {
        cwd: user.cwd,
        stdin: undefined,
      }).finished;
    const orphans =
      "import subprocess, time\nfor _ in range(5): subprocess.run('(sleep 0.01 &)', shell=True)";
    const count =
      "%%bash\nfor i in $(seq 50); do grep -ls '^State:.Z' /proc/[0-9]*/status >/dev/null || break; sleep 0.05; done; grep -ls '^State:.Z' /proc/[0-9]*/status | wc -l";
    const fine = await run(["cell", orphans, "import os; print(os.getppid() > 0)", count]);
    expectCode(fine, 0);
    expect(fine.stdout).toBe("True\n0\n");
    expectCode(await run(["cell", "1/0"]), 1);
  });
});

test("a folder that can't be read or written, and no repository, are fine", async () => {
  await using server = await ProviderServer.start([{ text: "fine" }]);
  using user = new UserHome();
  const env = useServer(user, server);
  mkdirSync(join(user.cwd, "closed"), { mode: 0o000 });
  expectCode(await user.run(["-p", "-C", "closed", "hi"], { env }), 0);
});

test("a home below a file, or on a read-only place, saves nothing and says so once", async () => {
  for (const place of ["file/below", "/proc/self"]) {
    await using server = await ProviderServer.start([{ text: "fine" }]);
    using user = new UserHome();
    await Bun.write(join(user.cwd, "file"), "");
    const home = place.startsWith("/") ? place : join(user.cwd, place);
    const flags = ["-m", "local/x", "--base-url", server.baseUrl("openai-completions")];
    const run = await user.run(["-p", ...flags, "hi"], { env: { PRIME_AGENT_HOME: home } });
    expectCode(run, 0);
    expect(run.stderr.match(/not saved: /g)).toHaveLength(1);
  }
});
