/** However the host ends: no kernel, no child of its cells, no socket and no folder is left; what was detached stays. */

import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { processStartTime } from "../../../src/process-identity.ts";
import { describeWithPython, pythonFor } from "../../support/python.ts";
import { TempDir } from "../../support/temp-dir.ts";

const ROOT = resolve(import.meta.dir, "../../..");

/** Starts processes of every kind and writes down which belong to the kernel and which were detached. */
const CELL = `
import json, os, subprocess
quiet = ["sleep", "1000"]
stubborn = ["sh", "-c", "trap '' INT TERM; while true; do sleep 0.1; done"]
mine = [subprocess.Popen(quiet).pid, subprocess.Popen(stubborn).pid]
detached = [subprocess.Popen(quiet, start_new_session=True).pid]
get_ipython().run_cell_magic("bash", "", """
sleep 1000 > /dev/null 2>&1 & echo $! > shell.pid
nohup sleep 1000 > /dev/null 2>&1 & echo $! > nohup.pid
""")
read = lambda name: int(open(name).read())
pids = {"gone": [os.getpid(), *mine, read("shell.pid")], "kept": [*detached, read("nohup.pid")]}
with open("pids.new", "w") as file: json.dump(pids, file)
os.rename("pids.new", "pids.json")
`;

/** A cell of its own: an interrupt ends all that the interrupted cell has started. */
const STAY = "import time\nopen('staying', 'w').close()\ntime.sleep(1000)";
/** The same, without ever giving the interpreter lock back: no thread of the kernel can do anything. */
const HOLD_LOCK = "import re\nopen('staying', 'w').close()\nre.match('(a*)*b', 'a' * 100)";

interface Pids {
  gone: number[];
  kept: number[];
}

/** One `prime-agent cell` in a folder of its own, with nothing of this machine's user. */
class Host implements AsyncDisposable {
  readonly dir = new TempDir();
  readonly #child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  #pids: Pids = { gone: [], kept: [] };

  constructor(...cells: string[]) {
    const sockets = this.dir.write("run/.keep", "").replace("/.keep", "");
    this.#child = Bun.spawn(["bun", join(ROOT, "src/main.ts"), "cell", ...cells], {
      cwd: this.dir.path,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: this.dir.path,
        XDG_RUNTIME_DIR: sockets,
        PRIME_AGENT_KERNEL_PYTHON: pythonFor("newest"),
      },
      stdio: ["ignore", "ignore", "pipe"],
    });
  }

  /** Resolves when the first cell has started its processes and, if there is a second one, that runs. */
  async underWay(stays: boolean): Promise<Pids> {
    await until(() => existsSync(this.dir.join(stays ? "staying" : "pids.json")));
    this.#pids = JSON.parse(readFileSync(this.dir.join("pids.json"), "utf8")) as Pids;
    return this.#pids;
  }

  /** What is in the folder of the kernels' sockets. */
  get left(): string[] {
    return readdirSync(this.dir.join("run")).filter((name) => name !== ".keep");
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  exited(): Promise<number> {
    return this.#child.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.signal("SIGKILL");
    for (const pid of this.#pids.kept) if (isAlive(pid)) process.kill(pid, "SIGKILL");
    await this.exited();
    this.dir[Symbol.dispose]();
  }
}

const isAlive = (pid: number) => processStartTime(pid) !== undefined;

/** Waits for a condition that other processes bring about. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(10);
}

/** How the host ends, and its exit code: 128 + signal where it was told to. */
const ENDS: Array<{ name: string; signals: NodeJS.Signals[]; code: number; last?: string }> = [
  { name: "its normal exit", signals: [], code: 0 },
  { name: "SIGINT", signals: ["SIGINT"], code: 130, last: STAY },
  { name: "SIGTERM", signals: ["SIGTERM"], code: 143, last: STAY },
  { name: "SIGHUP", signals: ["SIGHUP"], code: 129, last: STAY },
  {
    name: "two signals, the second of which it does not wait for",
    signals: ["SIGTERM", "SIGTERM"],
    code: 143,
    last: STAY,
  },
  { name: "SIGKILL", signals: ["SIGKILL"], code: 137, last: STAY },
  {
    name: "SIGTERM in a cell that holds the lock",
    signals: ["SIGTERM"],
    code: 143,
    last: HOLD_LOCK,
  },
  {
    name: "SIGKILL in a cell that holds the lock",
    signals: ["SIGKILL"],
    code: 137,
    last: HOLD_LOCK,
  },
];

describeWithPython("newest", "after", () => {
  test.each(ENDS)(
    "$name nothing is left but what was detached",
    async ({ signals, code, last }) => {
      await using host = new Host(CELL, ...(last ? [last] : []));
      const { gone, kept } = await host.underWay(last !== undefined);
      for (const signal of signals) host.signal(signal);
      expect(await host.exited()).toBe(code);
      await until(() => !gone.some(isAlive) && host.left.length === 0);
      await until(() => commandsThatName(host.dir.join("run")).length === 0);
      expect(kept.filter(isAlive)).toEqual(kept);
    },
  );

  test("the end of a host that forks its kernels, by SIGKILL, nothing is left", async () => {
    using dir = new TempDir();
    const program = join(ROOT, "test/support/forking-host.ts");
    const host = Bun.spawn(["bun", program, pythonFor("newest"), dir.path], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const { value } = await host.stdout.getReader().read();
    const pids = JSON.parse(new TextDecoder().decode(value)) as number[];
    expect(pids.filter(isAlive)).toEqual(pids);
    const template = readdirSync("/proc")
      .map(Number)
      .filter((pid) => isTemplateOf(host.pid, pid));
    expect(template).toHaveLength(1);
    host.kill("SIGKILL");
    await until(() => ![...pids, ...template].some(isAlive));
    await until(() => !readdirSync(dir.path).some((name) => name.startsWith("pa-")));
  });
});

/** The processes whose command line names a folder, as that of a kernel and of its guard does. */
function commandsThatName(folder: string): string[] {
  const { stdout } = Bun.spawnSync(["ps", "-eo", "pid=,args=", "-ww"]);
  return stdout
    .toString()
    .split("\n")
    .filter((line) => line.includes(folder));
}

/** Whether a process is a child of `host` that was told to be a fork server. */
function isTemplateOf(host: number, pid: number): boolean {
  if (!Number.isInteger(pid) || !existsSync(`/proc/${pid}/stat`)) return false;
  const { stdout } = Bun.spawnSync(["ps", "-o", "ppid=,args=", "-p", String(pid)]);
  const line = stdout.toString().trim();
  return line.startsWith(`${host} `) && line.includes("fork_server");
}
