/** Kernels of other makes, started as their own users would: xeus-python and Deno's. */

import { describe } from "bun:test";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { createTcpConnection, writeConnectionFile } from "../../src/jupyter/connection-file.ts";
import { freePorts } from "../../src/kernel/launch.ts";
import { TempDir } from "./temp-dir.ts";

const ROOT = resolve(import.meta.dir, "../..");

/** The program of each kernel and its arguments before the connection file. */
const PROGRAMS = {
  "xeus-python": ["/usr/bin/xpython", "-f"],
  "xeus-python --raw": ["/usr/bin/xpython", "--raw", "-f"],
  deno: [join(ROOT, ".cache/deno/deno"), "jupyter", "--kernel", "--conn"],
} as const;

export type ForeignName = keyof typeof PROGRAMS;

/** One kernel process on TCP, with a folder of its own; both are gone when disposed. */
export class ForeignKernel implements AsyncDisposable {
  readonly directory = new TempDir();
  readonly connectionFile = this.directory.join("connection.json");
  readonly #process: Bun.Subprocess<"ignore", "ignore", "ignore">;

  constructor(name: ForeignName) {
    writeConnectionFile(this.connectionFile, createTcpConnection(freePorts()));
    this.#process = Bun.spawn([...PROGRAMS[name], this.connectionFile], {
      cwd: this.directory.path,
      env: {
        PATH: process.env["PATH"] ?? "",
        HOME: this.directory.path,
        DENO_NO_UPDATE_CHECK: "1",
      },
      stdio: ["ignore", "ignore", "ignore"],
    });
  }

  /** Whether its process runs. */
  get isAlive(): boolean {
    return this.#process.exitCode === null && this.#process.signalCode === null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
    await this.#process.exited;
    this.directory[Symbol.dispose]();
  }
}

/** `describe` for tests that need one of these kernels; see `describeWithPython` for what happens without it. */
export function describeWithForeignKernel(name: ForeignName, body: () => void): void {
  const [program] = PROGRAMS[name];
  if (existsSync(program)) return describe(name, body);
  const reason = `${name}: ${program} is missing; run scripts/test-machine and scripts/test-env`;
  if (process.env["CI"] === "true") throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  describe.skip(name, body);
}
