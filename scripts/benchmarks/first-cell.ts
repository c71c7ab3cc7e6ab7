/** From an empty home without a network: the first cell ever, and the second beside jupyter_client. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Figure } from "./bench.ts";
import { median, ROOT } from "./our-kernel.ts";

const PROGRAM = join(ROOT, "dist/prime-agent");
const RUNS = 5;
const FIRST_BAR_MS = 8_000;
const SECOND_BAR = 0.6;

/** Whole processes, from exec to exit; the peer runs in the environment that the first cell built. */
export async function firstCell(): Promise<Figure[]> {
  const first: number[] = [];
  const second: number[] = [];
  const peer: number[] = [];
  let megabytes = 0;
  for (let index = 0; index < RUNS; index += 1) {
    const home = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
    try {
      first.push(timeRun(home, [PROGRAM, "cell", "print(1)"]));
      second.push(timeRun(home, [PROGRAM, "cell", "print(1)"]));
      const venv = join(home, ".prime/agent/kernel-venv");
      const python = join(venv, "bin/python");
      peer.push(timeRun(home, [python, join(import.meta.dir, "jupyter_peer.py")], "cold\n"));
      megabytes = diskUse(venv);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  }
  const ratio = median(second) / median(peer);
  return [
    {
      name: "first cell from an empty home without a network",
      ours: `${(median(first) / 1000).toFixed(1)} s`,
      peer: "",
      bar: "≤ 8 s",
      holds: median(first) <= FIRST_BAR_MS,
    },
    {
      name: "second cell, beside jupyter_client in the same environment",
      ours: `${median(second).toFixed(0)} ms`,
      peer: `${median(peer).toFixed(0)} ms`,
      ratio,
      bar: `≤ ${SECOND_BAR}`,
      holds: ratio <= SECOND_BAR,
    },
    {
      name: "the environment on disk",
      ours: `${megabytes.toFixed(0)} MB`,
      peer: "",
      bar: "≤ 60 MB",
      holds: megabytes <= 60,
    },
  ];
}

/** Milliseconds of a process that can reach no package index. */
function timeRun(home: string, command: readonly string[], stdin = ""): number {
  const nowhere = "http://127.0.0.1:9";
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: home,
    PIP_INDEX_URL: nowhere,
    UV_INDEX_URL: nowhere,
  };
  const begin = performance.now();
  const run = Bun.spawnSync([...command], { cwd: home, env, stdin: Buffer.from(stdin) });
  if (run.exitCode !== 0) throw new Error(`${command.join(" ")}: ${run.stderr.toString()}`);
  return performance.now() - begin;
}

function diskUse(folder: string): number {
  const { stdout } = Bun.spawnSync(["du", "-sk", folder]);
  return Number(stdout.toString().split("\t")[0]) / 1024;
}
