/**
 * The executable alone in a minimal Debian: python3 and nothing else, no
 * network, no HOME, a user id without an account, a read-only root with a
 * folder for temporary files, process 1.
 */

import { describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { MODEL_ENV, modelFlags } from "../support/model-flags.ts";
import { expectCode, type Finished, PROGRAM, RunningProgram } from "../support/program.ts";
import { ProviderServer } from "../support/provider-server.ts";

const ROOT = resolve(import.meta.dir, "../..");
const CONTAINER_ROOT = join(ROOT, ".cache/container/root");
const SOMEBODY = 12_345;

/** Runs a command in the container. `network` shares this machine's, for a provider on it. */
async function contained(
  command: readonly string[],
  options: { user?: number; network?: boolean } = {},
): Promise<Finished> {
  const { user = SOMEBODY, network = false } = options;
  const script = join(ROOT, "test/support/container.sh");
  const env = {
    PATH: process.env["PATH"],
    ...(network && { CONTAINER_NETWORK: "host" }),
  };
  return await new RunningProgram(
    [script, CONTAINER_ROOT, PROGRAM, String(user), ...command],
    env,
    { cwd: "/", stdin: undefined },
  ).finished;
}

const isReady = () => existsSync(join(CONTAINER_ROOT, "usr/local/bin/prime-agent"));
if (!isReady() && process.getuid?.() === 0 && Bun.which("debootstrap")) {
  Bun.spawnSync([join(ROOT, "scripts/container-root")], { stderr: "inherit" });
}
const missing = !isReady();
if (missing) console.warn("skipped: in a minimal container: run scripts/container-root as root");

describe.skipIf(missing)("in a minimal container", () => {
  test.each([
    ["a user without an account", SOMEBODY],
    ["root", 0],
  ])("%s gets an environment and an answer from the executable alone", async (_, user) => {
    const run = await contained(["prime-agent", "cell", "import os; print(os.getuid(), 1 + 1)"], {
      user,
    });
    expectCode(run, 0);
    expect(run.stdout).toBe(`${user} 2\n`);
  });

  test("the program leaves no process and no file but its environment", async () => {
    const script = `
      prime-agent cell 'print(1)' 2>/dev/null
      for stat in /proc/[0-9]*/stat; do cut -d ' ' -f 2 "$stat"; done
      cd /tmp && echo * && echo */*`;
    const { stdout } = await contained(["sh", "-c", script]);
    const [answer, ...rest] = stdout.trim().split("\n");
    expect(answer).toBe("1");
    expect(rest.filter((line) => line.startsWith("("))).toEqual(["(sh)"]);
    expect(rest.slice(-2).join(" ")).toMatch(/^(prime-agent\S*) \1\/kernel-venv \1\/runtime$/);
  });

  test("exec answers with a provider on this machine", async () => {
    await using server = await ProviderServer.start([
      { toolCalls: [{ name: "ipython", arguments: { code: "print(6 * 7)" } }] },
      { text: "It is 42." },
    ]);
    const key = Object.entries(MODEL_ENV).map(([name, value]) => `${name}=${value}`);
    const run = await contained(
      ["env", ...key, "prime-agent", "exec", ...modelFlags(server), "what is 6 times 7?"],
      { network: true },
    );
    expectCode(run, 0);
    expect(run.stdout).toBe("It is 42.\n");
    expect(JSON.stringify(server.requests.at(-1)?.body)).toContain("42");
  });

  test("the demo runs as process 1", async () => {
    const run = await contained(["prime-agent", "demo"]);
    expectCode(run, 0);
  });
});
