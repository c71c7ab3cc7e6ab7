/** Forking beside spawning: one kernel, and many at once on a busy machine. */

import { ForkServers } from "../../src/kernel/fork-servers.ts";
import type { Figure } from "./bench.ts";
import { JupyterPeer } from "./jupyter-peer.ts";
import { boot, bootOptions, coldStart, median, run } from "./our-kernel.ts";

const RUNS = 7;
/** Between two measurements: what goes on in the background is over, and the next kernel is in reserve. */
const QUIET_MS = 400;
const KERNELS = 16;

/** A warm fork to its first result, beside a cold spawn of ours and one of jupyter_client. */
export async function fork(python: string): Promise<Figure[]> {
  const servers = new ForkServers(true);
  const options = bootOptions(python, servers);
  // The first kernel is spawned and the second starts the template; neither is a warm fork.
  for (let index = 0; index < 2; index += 1) await (await boot(options)).kill();
  await Bun.sleep(QUIET_MS);
  const peer = new JupyterPeer(python);
  const forked: number[] = [];
  const spawned: number[] = [];
  const theirs: number[] = [];
  for (let index = 0; index < RUNS; index += 1) {
    const begin = performance.now();
    const kernel = await boot(options);
    await run(kernel, "1+1");
    forked.push(performance.now() - begin);
    await kernel.kill();
    await Bun.sleep(QUIET_MS);
    spawned.push(await coldStart(python));
    theirs.push(((await peer.ask("cold")) as number) * 1000);
  }
  servers.dispose();
  await peer.close();
  const ours = median(forked);
  return [
    ratioFigure(
      "warm fork to first result, beside our own cold spawn",
      ours,
      median(spawned),
      0.15,
    ),
    ratioFigure("the same, beside jupyter_client's cold spawn", ours, median(theirs), 0.15),
  ];
}

/** Sixteen kernels at once, all to their first result. */
export async function many(python: string): Promise<Figure[]> {
  const servers = new ForkServers(true);
  await startMany(python, servers, 2);
  const forked = await startMany(python, servers, KERNELS);
  servers.dispose();
  const spawned = await startMany(python, new ForkServers(false), KERNELS);
  return [
    ratioFigure(`${KERNELS} kernels at once to first result, beside spawns`, forked, spawned, 0.5),
  ];
}

/** Milliseconds until all have answered. */
async function startMany(python: string, servers: ForkServers, count: number): Promise<number> {
  const options = bootOptions(python, servers);
  const begin = performance.now();
  const kernels = await Promise.all(
    Array.from({ length: count }, async () => {
      const kernel = await boot(options);
      await run(kernel, "1+1");
      return kernel;
    }),
  );
  const ms = performance.now() - begin;
  await Promise.all(kernels.map((kernel) => kernel.kill()));
  return ms;
}

function ratioFigure(name: string, ours: number, peer: number, bar: number): Figure {
  const ratio = ours / peer;
  const ms = (value: number) => `${value.toFixed(0)} ms`;
  return { name, ours: ms(ours), peer: ms(peer), ratio, bar: `≤ ${bar}`, holds: ratio <= bar };
}
