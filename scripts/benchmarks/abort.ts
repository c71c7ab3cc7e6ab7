/** From the abort of a cell to its settled call, and from there to the next result. */

import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import type { Figure } from "./bench.ts";
import { boot, bootOptions, run } from "./our-kernel.ts";

const CELLS: Record<string, string> = {
  "while True: pass": "while True: pass",
  "time.sleep(60)": "import time; time.sleep(60)",
  "await asyncio.sleep(60)": "import asyncio\nawait asyncio.sleep(60)",
  "%%bash sleep 60": "%%bash\nsleep 60",
};
const RUNS = 5;
/** How long a cell has run; and moments at which it has hardly begun, or not yet. */
const RUNNING_MS = 300;
const EARLY_MS = Array.from({ length: 40 }, (_, index) => (index + 1) / 4);
const SETTLED_BAR_MS = 1_200;
const NEXT_BAR_MS = 500;

/** The slowest of some runs of each kind of cell. */
export async function abort(python: string): Promise<Figure[]> {
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  const figures: Figure[] = [];
  for (const [name, code] of Object.entries(CELLS)) {
    const settled: number[] = [];
    const next: number[] = [];
    for (let index = 0; index < RUNS; index += 1) {
      settled.push(await abortOnce(kernel, code, RUNNING_MS));
      const begin = performance.now();
      await run(kernel, "1+1");
      next.push(performance.now() - begin);
    }
    figures.push(
      figure(`abort of ${name} to settled, slowest of ${RUNS}`, settled, SETTLED_BAR_MS),
    );
    figures.push(figure(`next cell after it, slowest of ${RUNS}`, next, NEXT_BAR_MS));
    const early: number[] = [];
    for (const afterMs of EARLY_MS) {
      early.push(await abortOnce(kernel, code, afterMs));
      await run(kernel, "1+1");
    }
    const title = `abort of ${name} within 10 ms of sending it, slowest of ${EARLY_MS.length}`;
    figures.push(figure(title, early, SETTLED_BAR_MS));
  }
  await kernel.kill();
  return figures;
}

/** Milliseconds from the abort, so long after the cell was sent, to the settled call. */
async function abortOnce(kernel: Kernel, code: string, afterMs: number): Promise<number> {
  const abort = new AbortController();
  const outcome = kernel.execute(code, { onOutput: () => undefined, signal: abort.signal });
  await Bun.sleep(afterMs);
  const begin = performance.now();
  abort.abort();
  const { status } = await outcome;
  if (status !== "aborted") throw new Error(`the cell ended as ${status}`);
  return performance.now() - begin;
}

function figure(name: string, times: readonly number[], bar: number): Figure {
  const slowest = Math.max(...times);
  return {
    name,
    ours: `${slowest.toFixed(0)} ms`,
    peer: "",
    bar: `≤ ${bar} ms`,
    holds: slowest <= bar,
  };
}
