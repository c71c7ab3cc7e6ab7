/** Whole processes: start-up, the first request byte, and a hello run from nothing to nothing. */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ProviderServer } from "../../test/support/provider-server.ts";
import type { Figure } from "./bench.ts";
import { median, ROOT } from "./our-kernel.ts";

const PROGRAM = join(ROOT, "dist/prime-agent");
const RUNS = 15;
const HELLO_RUNS = 9;

/** What a run of a process took. */
interface ProcessRun {
  ms: number;
  stdout: string;
}

/**
 * Runs argv and prints its peak memory in KiB on stderr. From a small process, since a fork inherits its
 * parent's peak.
 */
const MEASURE = `
import resource, subprocess, sys
code = subprocess.call(sys.argv[1:], stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss, file=sys.stderr)
sys.exit(code)
`;

/** `--version` and `--help` beside an empty program, and the way to the first request byte. */
export async function startup(): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
  try {
    const empty = compileEmpty(dir);
    const times = {
      version: [] as ProcessRun[],
      help: [] as ProcessRun[],
      empty: [] as ProcessRun[],
    };
    for (let index = 0; index < RUNS; index += 1) {
      times.version.push(await runProcess([PROGRAM, "--version"], dir));
      times.empty.push(await runProcess([empty], dir));
      times.help.push(await runProcess([PROGRAM, "--help"], dir));
    }
    const base = medianMs(times.empty);
    return [
      processFigure(
        "--version, beside an empty compiled program",
        times.version,
        base,
        1.3,
        peakMb([PROGRAM, "--version"], dir),
      ),
      processFigure(
        "--help, beside an empty compiled program",
        times.help,
        base,
        undefined,
        peakMb([PROGRAM, "--help"], dir),
      ),
      await firstByte(dir, base),
    ];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** A prompt, a cell, an answer, beside `cell 'print(1)'` from cold. */
export async function hello(): Promise<Figure[]> {
  const dir = mkdtempSync(join(tmpdir(), "prime-agent-bench-"));
  try {
    await runProcess([PROGRAM, "setup"], dir);
    const runs: ProcessRun[] = [];
    const cells: ProcessRun[] = [];
    for (let index = 0; index < HELLO_RUNS; index += 1) {
      await using server = await ProviderServer.start([
        { toolCalls: [{ name: "ipython", arguments: { code: "print(6*7)" } }] },
        { text: "It is 42." },
      ]);
      const run = await runProcess([PROGRAM, "-p", ...modelFlags(server), "What is 6*7?"], dir);
      if (run.stdout !== "It is 42.\n")
        throw new Error(`the hello run said ${JSON.stringify(run.stdout)}`);
      runs.push(run);
      cells.push(await runProcess([PROGRAM, "cell", "print(1)"], dir));
    }
    return [
      processFigure("hello run, beside a cold `cell 'print(1)'`", runs, medianMs(cells), 1.4),
    ];
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

/** From the start of the process to the arrival of its request. */
async function firstByte(dir: string, base: number): Promise<Figure> {
  const times: number[] = [];
  for (let index = 0; index < HELLO_RUNS; index += 1) {
    let arrived = 0;
    await using server = await ProviderServer.start([
      () => {
        arrived = performance.now();
        return { text: "hello" };
      },
    ]);
    const begin = performance.now();
    await runProcess([PROGRAM, "-p", "--no-session", ...modelFlags(server), "hi"], dir);
    times.push(arrived - begin);
  }
  return {
    name: "exec to the first request, beside an empty compiled program",
    ours: `${median(times).toFixed(0)} ms`,
    peer: `${base.toFixed(1)} ms`,
    ratio: median(times) / base,
    bar: "reported",
    holds: true,
  };
}

function modelFlags(server: ProviderServer): string[] {
  const url = server.baseUrl("openai-completions");
  return [
    "-m",
    "bench/model",
    "--base-url",
    url,
    "--api",
    "openai-completions",
    "--api-key-env",
    "BENCH_KEY",
  ];
}

async function runProcess(command: readonly string[], home: string): Promise<ProcessRun> {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home, BENCH_KEY: "a-key-for-benchmarks" };
  const begin = performance.now();
  const child = Bun.spawn([...command], { cwd: home, env, stdio: ["ignore", "pipe", "ignore"] });
  const stdout = await child.stdout.text();
  const code = await child.exited;
  const ms = performance.now() - begin;
  if (code !== 0) throw new Error(`${command.slice(0, 3).join(" ")} exited with ${code}`);
  return { ms, stdout };
}

/** The peak memory of a command that needs no provider, in MB. */
function peakMb(command: readonly string[], home: string): string {
  const env = { PATH: process.env["PATH"] ?? "", HOME: home };
  const { stderr } = Bun.spawnSync(["python3", "-c", MEASURE, ...command], { cwd: home, env });
  return `${(Number(stderr.toString().trim()) / 1024).toFixed(0)} MB`;
}

function compileEmpty(dir: string): string {
  const source = join(dir, "empty.ts");
  const out = join(dir, "empty");
  mkdirSync(dir, { recursive: true });
  writeFileSync(source, "");
  const flags = ["--compile", "--minify", "--bytecode", "--outfile", out];
  Bun.spawnSync([process.execPath, "build", ...flags, source]);
  return out;
}

function medianMs(runs: readonly ProcessRun[]): number {
  return median(runs.map(({ ms }) => ms));
}

function processFigure(
  name: string,
  runs: readonly ProcessRun[],
  base: number,
  bar: number | undefined,
  peak = "",
): Figure {
  const ms = medianMs(runs);
  const ratio = ms / base;
  return {
    name,
    ours: `${ms.toFixed(1)} ms${peak ? `, peak ${peak}` : ""}`,
    peer: `${base.toFixed(1)} ms`,
    ratio,
    bar: bar === undefined ? "reported" : `≤ ${bar}`,
    holds: bar === undefined || ratio <= bar,
  };
}
