/** A large namespace while it is saved, and a cell that prints a gigabyte. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import contract from "../../kernel/rlm/contract.json";
import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Kernel } from "../../src/kernel/kernel.ts";
import { IpythonKernelProvisioner, bootOwnKernel } from "../../src/kernel/provisioner.ts";
import { createIpythonTool } from "../../src/tool/ipython.ts";
import type { Figure } from "./bench.ts";
import { boot, bootOptions, median, run } from "./our-kernel.ts";

const RUNS = 9;
const SNAPSHOT_BAR_MS = 100;
const MEMORY_BAR_MB = 64;

const NAMESPACE = `
import numpy as np
big = [np.random.rand(2_000_000) for _ in range(38)]
small = [{'i': i, 's': str(i)} for i in range(1_000_000)]
`;
/** What a cell does: some work over a part of the data, and over all of it, so that page faults after the fork count. */
const CELLS = {
  "a cell": "sum(row['i'] for row in small[:200_000])",
  "a cell that reads every object": "sum(row['i'] for row in small)",
};
/** The saver remembers what was too big while that keeps its length: thus each time it has all to do. */
const CHANGE = "small.append({'i': 0, 's': ''}); big.append(big[0])";

/** How much longer a cell takes while the namespace is being written. */
export async function snapshot(python: string): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  try {
    await run(kernel, NAMESPACE);
    const times: Array<{ cell: string; alone: number; during: number }> = [];
    for (const [cell, code] of Object.entries(CELLS)) {
      const alone = median(await timeCells(kernel, code));
      times.push({ cell, alone, during: median(await timeCells(kernel, code, dir)) });
    }
    const begin = performance.now();
    await run(kernel, `import dill, io\nfor value in (big, small): dill.dump(value, io.BytesIO())`);
    const plain = performance.now() - begin;
    return times.map(({ cell, alone, during }) => ({
      name: `${cell} while 600 MB and a million objects are saved, beyond the same cell alone`,
      ours: `${(during - alone).toFixed(0)} ms (${during.toFixed(0)} instead of ${alone.toFixed(0)})`,
      peer: `${(plain / 1000).toFixed(1)} s (dill in the kernel)`,
      bar: `≤ ${SNAPSHOT_BAR_MS} ms`,
      holds: during - alone <= SNAPSHOT_BAR_MS,
    }));
  } finally {
    await kernel.kill();
    rmSync(dir, { recursive: true, force: true });
  }
}

/** Times a cell, each time right behind the begin of a snapshot into `dir`, if there is one. */
async function timeCells(kernel: Kernel, code: string, dir?: string): Promise<number[]> {
  const times: number[] = [];
  for (let index = 0; index < RUNS; index += 1) {
    await run(kernel, CHANGE);
    const begin = performance.now();
    if (dir !== undefined) await save(kernel, dir);
    await run(kernel, code);
    times.push(performance.now() - begin);
    if (dir === undefined) continue;
    const { running } = await finishSnapshot(kernel, 0);
    if (!running) throw new Error("the snapshot was over before the cell was");
    await finishSnapshot(kernel, contract.limits.snapshot_seconds);
  }
  return times;
}

/** Waits so many seconds for the end of the snapshot that is being written; whether it still is. */
async function finishSnapshot(kernel: Kernel, seconds: number): Promise<{ running: boolean }> {
  const options = { channel: "control", timeoutMs: 70_000 } as const;
  return (await kernel.call("snapshot_wait", { seconds }, options)) as { running: boolean };
}

/** Starts a snapshot, as the schedule does after a cell; the next cell is sent right behind it. */
async function save(kernel: Kernel, dir: string): Promise<void> {
  const { snapshot_variable_bytes, snapshot_total_bytes, snapshot_seconds } = contract.limits;
  await kernel.call(
    "snapshot",
    {
      dir,
      max_variable_bytes: snapshot_variable_bytes,
      max_total_bytes: snapshot_total_bytes,
      seconds: snapshot_seconds,
    },
    { timeoutMs: 60_000 },
  );
}

/** Growth of this process while a cell prints 1 GB through the whole tool. */
export async function memory(python: string): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
  const provisioner = new IpythonKernelProvisioner({
    boot: bootOwnKernel(bootOptions(python, new ForkServers(false))),
  });
  const tool = createIpythonTool({
    provisioner,
    outputDir: () => dir,
    chooseWhenBusy: async () => "cancel",
  });
  try {
    await tool.run("print('x' * 10_000_000)");
    const before = process.memoryUsage.rss();
    let peak = before;
    const timer = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 20);
    const begin = performance.now();
    await tool.run("line = 'x' * 999 + '\\n'\nfor _ in range(1_000_000): print(line, end='')");
    clearInterval(timer);
    const growth = (peak - before) / 1024 / 1024;
    const rate = 1000 / ((performance.now() - begin) / 1000);
    return [
      {
        name: "growth of the host's memory while a cell prints 1 GB",
        ours: `${growth.toFixed(0)} MB (at ${rate.toFixed(0)} MB/s)`,
        peer: "",
        bar: `≤ ${MEMORY_BAR_MB} MB`,
        holds: growth <= MEMORY_BAR_MB,
      },
    ];
  } finally {
    await provisioner.dispose();
    rmSync(dir, { recursive: true, force: true });
  }
}
