/** What a turn costs the host: from the end of one response to the next request, with an empty cell. */

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProviderServer } from "../../test/support/provider-server.ts";
import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Figure } from "./bench.ts";
import { boot, bootOptions, median, ROOT, run } from "./our-kernel.ts";

const PROGRAM = join(ROOT, "dist/prime-agent");
const TURNS = 200;
const OVERHEAD_BAR_MS = 15;

/** A run of 200 turns: overhead beyond the kernel's own round trip, and whether time and memory stay flat. */
export async function turns(python: string): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
  try {
    const roundTrip = await emptyCell(python);
    const { arrivals, memory } = await longRun(dir);
    const gaps = arrivals.slice(1).map((at, index) => at - (arrivals[index] as number));
    const early = median(gaps.slice(10, 60));
    const late = median(gaps.slice(-50));
    const overhead = median(gaps) - roundTrip;
    const growth = (memory.at(-1) ?? 0) - (memory[20] ?? 0);
    return [
      {
        name: `host overhead per turn beyond the kernel's round trip, p50 of ${TURNS}`,
        ours: `${overhead.toFixed(1)} ms`,
        peer: `${roundTrip.toFixed(1)} ms (round trip)`,
        bar: `≤ ${OVERHEAD_BAR_MS} ms`,
        holds: overhead <= OVERHEAD_BAR_MS,
      },
      {
        name: "a turn at the end of it, beside one at its beginning",
        ours: `${late.toFixed(1)} ms`,
        peer: `${early.toFixed(1)} ms`,
        ratio: late / early,
        bar: "flat (≤ 2)",
        holds: late / early <= 2,
      },
      {
        name: "memory of the program from turn 20 to the end",
        ours: `${growth.toFixed(0)} MB more`,
        peer: "",
        bar: "flat (≤ 48 MB)",
        holds: growth <= 48,
      },
    ];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

async function emptyCell(python: string): Promise<number> {
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  const times: number[] = [];
  for (let index = 0; index < 100; index += 1) {
    const begin = performance.now();
    await run(kernel, "pass");
    times.push(performance.now() - begin);
  }
  await kernel.kill();
  return median(times);
}

async function longRun(dir: string): Promise<{ arrivals: number[]; memory: number[] }> {
  const arrivals: number[] = [];
  const memory: number[] = [];
  let pid = 0;
  const script = Array.from({ length: TURNS }, (_, turn) => () => {
    arrivals.push(performance.now());
    memory.push(residentMb(pid));
    return turn === TURNS - 1
      ? { text: "the end" }
      : { toolCalls: [{ name: "ipython", arguments: { code: "pass" } }] };
  });
  await using server = await ProviderServer.start(script);
  const flags = [
    "-m",
    "bench/model",
    "--base-url",
    server.baseUrl("openai-completions"),
    "--api",
    "openai-completions",
  ];
  const child = Bun.spawn([PROGRAM, "-p", "-q", ...flags, "--api-key-env", "BENCH_KEY", "go"], {
    cwd: dir,
    env: { PATH: process.env["PATH"] ?? "", HOME: dir, BENCH_KEY: "a-key-for-benchmarks" },
    stdio: ["ignore", "ignore", "inherit"],
  });
  pid = child.pid;
  const code = await child.exited;
  if (code !== 0) throw new Error(`the long run exited with ${code}`);
  return { arrivals, memory };
}

function residentMb(pid: number): number {
  const kb = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kb) / 1024;
}
