/**
 * The compiled program as a user runs it: in a folder and a home of its own,
 * with nothing of the tester's environment, and with a kernel environment that
 * all tests share, since building one is tested elsewhere.
 */

import { expect } from "bun:test";
import { join, resolve } from "node:path";
import { TempDir } from "./temp-dir.ts";

const ROOT = resolve(import.meta.dir, "../..");

/** The executable that `scripts/build` makes. */
export const PROGRAM = join(ROOT, "dist/prime-agent");

/** A finished run. */
export interface Finished {
  code: number;
  stdout: string;
  stderr: string;
  /** The parsed lines of stdout, for JSON formats. */
  readonly events: Array<Record<string, any>>;
}

/** How to run it. */
export interface RunOptions {
  /** Variables beside PATH, HOME and the shared kernel environment; `undefined` removes one. */
  env?: Record<string, string | undefined>;
  /** What stdin holds; default: nothing (`/dev/null`). */
  stdin?: string | "pipe";
  cwd?: string;
}

/** A home and a working folder for one test. Both are gone when disposed. */
export class UserHome implements Disposable {
  readonly #dir = new TempDir();
  readonly home = this.#dir.join("home");
  readonly cwd = this.#dir.join("work");

  constructor() {
    for (const folder of [this.home, this.cwd]) Bun.spawnSync(["mkdir", "-p", folder]);
  }

  /** Starts the program. */
  start(
    args: readonly string[],
    options: RunOptions = {},
  ): Bun.Subprocess<"pipe" | "ignore", "pipe", "pipe"> {
    const env: Record<string, string | undefined> = {
      PATH: process.env["PATH"],
      HOME: this.home,
      PRIME_AGENT_KERNEL_VENV: join(ROOT, ".cache/e2e/kernel-venv"),
      ...options.env,
    };
    const child = Bun.spawn([PROGRAM, ...args], {
      cwd: options.cwd ?? this.cwd,
      env,
      stdin: options.stdin === undefined ? "ignore" : "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    if (options.stdin !== undefined && options.stdin !== "pipe" && child.stdin) {
      child.stdin.write(options.stdin);
      void child.stdin.end();
    }
    return child;
  }

  /** Runs the program to its end. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return await finish(this.start(args, options));
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

/** Collects what a started program says until it ends. */
export async function finish(
  child: Bun.Subprocess<"pipe" | "ignore", "pipe", "pipe">,
): Promise<Finished> {
  const [stdout, stderr, code] = await Promise.all([
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  return {
    code,
    stdout,
    stderr,
    get events() {
      return stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => JSON.parse(line) as Record<string, any>);
    },
  };
}

/** Fails with the program's stderr when the exit code is another one. */
export function expectCode(run: Finished, code: number): void {
  if (run.code !== code)
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code, stderr: "" });
}
