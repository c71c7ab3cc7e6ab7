/** Delegation: many sub-agents at once on the compiled program, and what a host request costs a cell. */

import { readFileSync } from "node:fs";
import { ForkServers } from "../../src/kernel/fork-servers.ts";
import { TestFamily } from "../../test/support/agent-family.ts";
import { cell, FAMILY_ENV, FamilyProvider } from "../../test/support/family-provider.ts";
import { pidsOf } from "../../test/support/processes.ts";
import { UserHome } from "../../test/support/program.ts";
import type { Figure } from "./bench.ts";
import { boot, bootOptions, median } from "./our-kernel.ts";

const SUBAGENTS = 16;
const RUNS = 3;
const SAMPLE_MS = 25;
const ROUND_TRIPS = 300;
const MAX_BEYOND_MS = 10;

/** Sixteen sub-agents, each with a cell and a message, forked beside spawned; then the request's round trip. */
export async function delegation(python: string): Promise<Figure[]> {
  const forked: FamilyRun[] = [];
  const spawned: FamilyRun[] = [];
  for (let index = 0; index < RUNS; index += 1) {
    forked.push(await runFamily("1"));
    spawned.push(await runFamily("0"));
  }
  const what = `${SUBAGENTS} sub-agents at once, all answered, beside spawned kernels`;
  return [
    besideFigure(`${what}: time`, forked, spawned, ({ ms }) => ms, "ms"),
    besideFigure(`${what}: peak memory`, forked, spawned, ({ peakMb }) => peakMb, "MB"),
    await requestFigure(python),
  ];
}

/** What one run took; memory is that of the program and all its kernels, pages shared between them counted once. */
interface FamilyRun {
  ms: number;
  peakMb: number;
}

async function runFamily(forkServer: "0" | "1"): Promise<FamilyRun> {
  const names = Array.from({ length: SUBAGENTS }, (_, index) => `worker${index}`);
  const spawn = `for name in ${JSON.stringify(names)}: await rlm(f"Work as {name}", name=name)`;
  await using family = await FamilyProvider.start({
    root: [cell(spawn), { text: "noted" }],
    others: [
      cell(`r = await agent_message.send("here", receiver_role="parent")`),
      { text: "sent" },
    ],
  });
  using user = new UserHome();
  const env = { ...FAMILY_ENV, LANG: "C.UTF-8", PRIME_AGENT_KERNEL_FORKSERVER: forkServer };
  await user.run(["setup"], { env });
  const begin = performance.now();
  const program = user.start(["-p", "--json", ...family.flags, "Ask them"], { env });
  const memory = new MemoryPeak(user.home);
  const run = await program.finished;
  const ms = performance.now() - begin;
  const agents = run.events.at(-1)?.["agents"] as Array<{ state: string }>;
  if (run.code !== 0 || agents.some(({ state }) => state !== "completed"))
    throw new Error(`the run failed: ${run.stdout.slice(-2_000)}`);
  return { ms, peakMb: memory.stop() };
}

/** Watches the processes of a home until it is stopped. */
class MemoryPeak {
  readonly #timer: ReturnType<typeof setInterval>;
  #peakKb = 0;

  constructor(home: string) {
    this.#timer = setInterval(() => {
      const now = pidsOf(home).reduce((sum, pid) => sum + proportionalKb(pid), 0);
      this.#peakKb = Math.max(this.#peakKb, now);
    }, SAMPLE_MS);
  }

  /** Megabytes. */
  stop(): number {
    clearInterval(this.#timer);
    return this.#peakKb / 1024;
  }
}

function proportionalKb(pid: number): number {
  try {
    const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
    return Number(/^Pss:\s+(\d+)/m.exec(rollup)?.[1] ?? 0);
  } catch {
    // The process ended while we looked.
    return 0;
  }
}

/** A request that the agents answer, from a running cell, beside one with an empty answer. */
async function requestFigure(python: string): Promise<Figure> {
  const { handlers } = new TestFamily([]).root;
  const kernel = await boot({
    ...bootOptions(python, new ForkServers(false)),
    handlers: { ...handlers, empty: () => ({}) },
  });
  let printed = "";
  await kernel.execute(ROUND_TRIP_CELL, {
    onOutput: (output) => {
      if (output.kind === "stream") printed += output.text;
    },
  });
  await kernel.kill();
  const { empty, asked } = JSON.parse(printed) as { empty: number[]; asked: number[] };
  const beyond = median(asked) - median(empty);
  return {
    name: "host request from a running cell (agent_message.list_agents), beyond an empty comm round trip, p50",
    ours: `${median(asked).toFixed(2)} ms`,
    peer: `${median(empty).toFixed(2)} ms`,
    bar: `≤ ${MAX_BEYOND_MS} ms beyond`,
    holds: beyond <= MAX_BEYOND_MS,
  };
}

/** Both kinds take turns, so that what disturbs the machine disturbs both. */
const ROUND_TRIP_CELL = `
import json, time
async def ms(type):
    begin = time.perf_counter()
    await rlm.host_request(type)
    return (time.perf_counter() - begin) * 1000
for _ in range(20): await ms("empty"), await ms("agent_message.list_agents")
both = [(await ms("empty"), await ms("agent_message.list_agents")) for _ in range(${ROUND_TRIPS})]
print(json.dumps({"empty": [a for a, b in both], "asked": [b for a, b in both]}))
`;

function besideFigure(
  name: string,
  forked: readonly FamilyRun[],
  spawned: readonly FamilyRun[],
  value: (run: FamilyRun) => number,
  unit: string,
): Figure {
  const ours = median(forked.map(value));
  const peer = median(spawned.map(value));
  const ratio = ours / peer;
  const shown = (figure: number) => `${figure.toFixed(0)} ${unit}`;
  return { name, ours: shown(ours), peer: shown(peer), ratio, bar: "≤ 1", holds: ratio <= 1 };
}
