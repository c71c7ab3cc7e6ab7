/** Runs the benchmarks that are asked for (all without arguments) and prints one table row for each figure. */

import { cpus } from "node:os";
import { join } from "node:path";
import { version } from "../../package.json";
import { abort } from "./abort.ts";
import { delegation } from "./delegation.ts";
import { cold, flood, roundTrip } from "./kernel-client.ts";
import { firstCell } from "./first-cell.ts";
import { fork, many } from "./fork.ts";
import { memory, snapshot } from "./load.ts";
import { ROOT } from "./our-kernel.ts";
import { publisherFlood } from "./publisher.ts";
import { hello, startup } from "./startup.ts";
import { turns } from "./turns.ts";

/** One measured figure: ours, the peer's, the bar, and whether it holds. */
export interface Figure {
  name: string;
  ours: string;
  peer: string;
  ratio?: number;
  bar: string;
  holds: boolean;
}

const BENCHMARKS: Record<string, (python: string) => Promise<Figure[]>> = {
  cold,
  "round-trip": roundTrip,
  flood,
  publisher: publisherFlood,
  startup,
  "first-cell": firstCell,
  hello,
  turns,
  fork,
  many,
  delegation,
  abort,
  snapshot,
  memory,
};

const python = join(ROOT, ".cache/python/newest/bin/python");
const asked = process.argv.slice(2);
const unknown = asked.filter((name) => !(name in BENCHMARKS));
if (unknown.length > 0) {
  console.error(
    `unknown benchmark ${unknown.join(", ")}; there are ${Object.keys(BENCHMARKS).join(", ")}`,
  );
  process.exit(2);
}
const { stdout } = Bun.spawnSync([
  python,
  "-c",
  "import sys, ipykernel, IPython, jupyter_client, zmq; print(f'Python {sys.version.split()[0]}, ipykernel {ipykernel.__version__}, IPython {IPython.__version__}, jupyter_client {jupyter_client.__version__}, pyzmq {zmq.__version__}')",
]);
console.log(
  `prime-agent ${version}, Bun ${Bun.version}, ${cpus().length} × ${cpus()[0]?.model.trim()}`,
);
console.log(`${stdout.toString().trim()}\n`);
console.log("| measured | prime-agent | peer | ratio | bar | holds |\n|---|---|---|---|---|---|");
let missed = 0;
for (const [name, measure] of Object.entries(BENCHMARKS)) {
  if (asked.length > 0 && !asked.includes(name)) continue;
  for (const figure of await measure(python)) {
    if (!figure.holds) missed += 1;
    const ratio = figure.ratio === undefined ? "" : figure.ratio.toFixed(2);
    console.log(
      `| ${figure.name} | ${figure.ours} | ${figure.peer} | ${ratio} | ${figure.bar} | ${figure.holds ? "yes" : "**no**"} |`,
    );
  }
}
process.exit(missed > 0 ? 1 : 0);
