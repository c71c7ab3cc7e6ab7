/** 200 cells while the kernel is killed with -9 at random moments: nothing hangs, nothing is lost but what died. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { ForkServers } from "../../../src/kernel/fork-servers.ts";
import type { IpythonResult } from "../../../src/tool/ipython.ts";
import { describeWithPython } from "../../support/python.ts";
import { textOf, ToolKernel } from "../../support/tool-kernel.ts";

const CELLS = 200;
const SEED = 20_261;

/** Numbers from 0 to 1, the same in every run (the "minimal standard" generator). */
function createRandom(seed: number): () => number {
  let state = seed;
  return () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
}

/** One kernel under fire. */
class Battle implements AsyncDisposable {
  readonly kernel: ToolKernel;
  readonly #random = createRandom(SEED);
  /** The kernels that were shot, by pid. */
  readonly killed = new Set<number>();
  deaths = 0;
  notices = 0;

  constructor(kernel: ToolKernel) {
    this.kernel = kernel;
  }

  /** A name that must come back every time, once it is on disk. */
  async begin(): Promise<void> {
    await this.kernel.run("import time\nanchor = 'kept'\nn = -1");
    const file = this.kernel.dir.join("artifacts", "kernel-state.dill");
    while (!existsSync(file)) await Bun.sleep(10);
    await this.kernel.provisioner.kernel?.call(
      "snapshot_wait",
      { seconds: 30 },
      { channel: "control", timeoutMs: 60_000 },
    );
  }

  /** Runs one cell, and now and then kills the kernel before, during or after it. */
  async round(index: number): Promise<void> {
    const shots = this.#random() < 0.2 ? [this.#shootLater(this.#random() * 60)] : [];
    const seconds = (this.#random() * 0.04).toFixed(3);
    const code = `import time\ntime.sleep(${seconds})\nn = ${index}\nprint('cell', anchor, n)`;
    this.#judge(index, await this.kernel.run(code));
    await Promise.all(shots);
  }

  async end(): Promise<void> {
    this.#judge(CELLS, await this.kernel.run(`n = ${CELLS}\nprint('cell', anchor, n)`));
  }

  async #shootLater(ms: number): Promise<void> {
    await Bun.sleep(ms);
    const pid = this.kernel.provisioner.kernel?.pid;
    if (pid === undefined || this.killed.has(pid)) return;
    this.killed.add(pid);
    process.kill(pid, "SIGKILL");
  }

  #judge(index: number, result: IpythonResult): void {
    const text = textOf(result);
    if (result.details.kernelRestarted) {
      this.notices += 1;
      expect(text).toMatch(/<ipython_kernel_reset>\nThe kernel was restarted: .*SIGKILL/);
      expect(text).toMatch(/Restored from the last snapshot: .*\banchor\b/);
    }
    if (result.details.errorEname === "KernelDied") {
      this.deaths += 1;
      expect(text).toContain("SIGKILL");
    } else {
      expect(text).toEndWith(`cell kept ${index}\n`);
      expect(result.details.status).toBe("ok");
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kernel[Symbol.asyncDispose]();
  }
}

for (const [python, how] of [
  ["newest", "forked"],
  ["oldest", "spawned"],
] as const) {
  describeWithPython(python, `on ${python}, ${how}`, () => {
    test(`${CELLS} cells survive kills at random moments`, async () => {
      const forkServers = new ForkServers(how === "forked");
      await using battle = new Battle(new ToolKernel({ python, snapshots: true, forkServers }));
      await battle.begin();
      for (let index = 0; index < CELLS; index += 1) await battle.round(index);
      await battle.end();
      forkServers.dispose();
      expect(battle.killed.size).toBeGreaterThan(20);
      // Each death is reported once, by the cell that it hit or by the next one, and each has one notice.
      expect(battle.kernel.lost).toHaveLength(battle.killed.size);
      expect(battle.notices).toBe(battle.killed.size);
      expect(battle.deaths).toBeGreaterThan(5);
      expect(battle.deaths).toBeLessThanOrEqual(battle.killed.size);
    });
  });
}
