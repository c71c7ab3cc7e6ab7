/** Cold start, round trip and throughput beside jupyter_client on the same interpreter. */

import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Figure } from "./bench.ts";
import { JupyterPeer } from "./jupyter-peer.ts";
import { boot, bootOptions, coldStart, median, run } from "./our-kernel.ts";

const COLD_RUNS = 7;
const CELLS = 300;
const FLOOD_RUNS = 5;
/** 64 MB in lines of 1,000 characters. */
const FLOOD_CELL = "line = 'x' * 999 + '\\n'\nfor _ in range(64_000): print(line, end='')";

/** From nothing to the first result. */
export async function cold(python: string): Promise<Figure[]> {
  const peer = new JupyterPeer(python);
  const ours: number[] = [];
  const theirs: number[] = [];
  await coldStart(python);
  for (let index = 0; index < COLD_RUNS; index += 1) {
    ours.push(await coldStart(python));
    theirs.push(((await peer.ask("cold")) as number) * 1000);
  }
  await peer.close();
  return [figure("cold start to first result", median(ours), median(theirs), "ms", 0.6)];
}

/** `1+1`, both reply and idle, over many cells. */
export async function roundTrip(python: string): Promise<Figure[]> {
  const peer = new JupyterPeer(python);
  await peer.ask("start");
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  const ours: number[] = [];
  const theirs: number[] = [];
  // In slices by turns, so that a noisy moment hits both.
  for (let slice = 0; slice < 10; slice += 1) {
    for (let index = 0; index < CELLS / 10; index += 1) {
      const begin = performance.now();
      await run(kernel, "1+1");
      ours.push(performance.now() - begin);
    }
    const times = (await peer.ask(`round-trip ${CELLS / 10}`)) as number[];
    theirs.push(...times.map((seconds) => seconds * 1000));
  }
  await peer.ask("stop");
  await peer.close();
  await kernel.kill();
  return [
    figure(`round trip of 1+1, p50 of ${CELLS} cells`, median(ours), median(theirs), "ms", 1),
  ];
}

/** Bytes a second of one flooding cell. */
export async function flood(python: string): Promise<Figure[]> {
  const peer = new JupyterPeer(python);
  await peer.ask("start");
  const kernel = await boot(bootOptions(python, new ForkServers(false)));
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let index = 0; index < FLOOD_RUNS; index += 1) {
    const begin = performance.now();
    const chars = await run(kernel, FLOOD_CELL);
    if (chars !== 64_000_000) throw new Error(`${chars} of 64,000,000 characters arrived`);
    ours.push(chars / 1000 / (performance.now() - begin));
    const answer = (await peer.ask(`flood ${JSON.stringify(FLOOD_CELL)}`)) as {
      chars: number;
      seconds: number;
    };
    theirs.push(answer.chars / 1e6 / answer.seconds);
  }
  await peer.ask("stop");
  await peer.close();
  await kernel.kill();
  const ratio = median(ours) / median(theirs);
  return [
    {
      name: "throughput of one flooding cell (64 MB)",
      ours: `${median(ours).toFixed(0)} MB/s`,
      peer: `${median(theirs).toFixed(0)} MB/s`,
      ratio,
      bar: "≥ 1.0",
      holds: ratio >= 1,
    },
  ];
}

function figure(name: string, ours: number, peer: number, unit: string, bar: number): Figure {
  const ratio = ours / peer;
  return {
    name,
    ours: `${ours.toFixed(1)} ${unit}`,
    peer: `${peer.toFixed(1)} ${unit}`,
    ratio,
    bar: `≤ ${bar}`,
    holds: ratio <= bar,
  };
}
