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
  start(args: readonly string[], options: RunOptions = {}): RunningProgram {
    return new RunningProgram([PROGRAM, ...args], this.environment(options.env), {
      cwd: options.cwd ?? this.cwd,
      stdin: options.stdin,
    });
  }

  /** The variables that the program gets. */
  environment(more: RunOptions["env"] = {}): Record<string, string | undefined> {
    return {
      PATH: process.env["PATH"],
      HOME: this.home,
      PRIME_AGENT_KERNEL_VENV: join(ROOT, ".cache/e2e/kernel-venv"),
      ...more,
    };
  }

  /** Runs the program to its end. */
  async run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
    return await this.start(args, options).finished;
  }

  [Symbol.dispose](): void {
    this.#dir[Symbol.dispose]();
  }
}

/** A program under way: what it said so far, and what it will have said. */
export class RunningProgram {
  readonly child: Bun.Subprocess<"pipe" | "ignore", "pipe", "pipe">;
  readonly finished: Promise<Finished>;
  stdout = "";
  stderr = "";
  #news = Promise.withResolvers<void>();

  constructor(
    command: readonly string[],
    env: Record<string, string | undefined>,
    options: { cwd: string; stdin: string | undefined },
  ) {
    this.child = Bun.spawn([...command], {
      cwd: options.cwd,
      env,
      stdin: options.stdin === undefined ? "ignore" : "pipe",
      stdout: "pipe",
      stderr: "pipe",
    });
    if (options.stdin !== undefined && options.stdin !== "pipe" && this.child.stdin) {
      this.child.stdin.write(options.stdin);
      void this.child.stdin.end();
    }
    this.finished = this.#collect();
  }

  /** Sends a signal. */
  kill(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  /** Resolves when a stream holds `needle`; rejects when the program ends without it. */
  async saw(stream: "stdout" | "stderr", needle: string): Promise<void> {
    while (!this[stream].includes(needle)) {
      const ended = await Promise.race([this.#news.promise, this.finished]);
      if (ended && !this[stream].includes(needle)) {
        throw new Error(`the program ended without "${needle}" on ${stream}: ${this[stream]}`);
      }
    }
  }

  async #collect(): Promise<Finished> {
    const [code] = await Promise.all([
      this.child.exited,
      this.#read("stdout", this.child.stdout),
      this.#read("stderr", this.child.stderr),
    ]);
    const { stdout, stderr } = this;
    return {
      code,
      stdout,
      stderr,
      get events() {
        const lines = stdout.split("\n").filter((line) => line !== "");
        return lines.map((line) => JSON.parse(line) as Record<string, any>);
      },
    };
  }

  async #read(name: "stdout" | "stderr", stream: ReadableStream<Uint8Array>): Promise<void> {
    const decoder = new TextDecoder();
    for await (const chunk of stream) {
      this[name] += decoder.decode(chunk, { stream: true });
      this.#news.resolve();
      this.#news = Promise.withResolvers<void>();
    }
  }
}

/** Fails with the program's stderr when the exit code is another one. */
export function expectCode(run: Finished, code: number): void {
  if (run.code !== code)
    expect({ code: run.code, stderr: run.stderr }).toEqual({ code, stderr: "" });
}
