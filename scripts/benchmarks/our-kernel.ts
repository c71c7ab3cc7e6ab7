/** Our kernels for the benchmarks, booted as the program boots them. */

import { join } from "node:path";
import { Semaphore } from "../../src/async.ts";
import { bootKernel, type BootOptions } from "../../src/kernel/boot.ts";
import type { CellOutput } from "../../src/kernel/execution.ts";
import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";

export const ROOT = join(import.meta.dir, "../..");

/** Boot options for the interpreter `python`. */
export function bootOptions(python: string, forkServers: ForkServers, permits = 4): BootOptions {
  return {
    prepare: async () => ({ python, root: join(ROOT, "kernel") }),
    permits: new Semaphore(permits),
    forkServers,
    cwd: "/",
    paths: [],
    env: process.env as Record<string, string>,
    transport: "ipc",
    runtimeDirs: [],
    handlers: {},
    bootstrap: { skills: [], depth: 0, max_depth: 1 },
  };
}

/** Boots a kernel. */
export async function boot(options: BootOptions): Promise<Kernel> {
  const { kernel } = await bootKernel(options, () => undefined, new AbortController().signal);
  return kernel;
}

/** Runs a cell to its end and returns the characters of its output. */
export async function run(kernel: Kernel, code: string): Promise<number> {
  let chars = 0;
  const count = (output: CellOutput) => {
    if (output.kind === "stream") chars += output.text.length;
  };
  const outcome = await kernel.execute(code, { onOutput: count });
  if (outcome.status !== "ok") throw new Error(`the cell failed: ${JSON.stringify(outcome.error)}`);
  return chars;
}

/** Milliseconds from nothing to the first result, directly started. */
export async function coldStart(python: string): Promise<number> {
  const begin = performance.now();
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  await run(kernel, "1+1");
  const ms = performance.now() - begin;
  await kernel.kill();
  return ms;
}

/** The middle value. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}
