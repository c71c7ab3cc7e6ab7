/**
 * A host with three kernels, two of them forked, each with children; says their pids as one JSON line and
 * waits to be killed. Arguments: the interpreter, and the folder for the kernels' sockets.
 */

import { resolve } from "node:path";
import { Semaphore } from "../../src/async.ts";
import { bootKernel, type BootOptions } from "../../src/kernel/boot.ts";
import { ForkServers } from "../../src/kernel/fork-servers.ts";

const [python = "", runtimeDir = ""] = process.argv.slice(2);
const forkServers = new ForkServers(true);
const options: BootOptions = {
  prepare: async () => ({ python, root: resolve(import.meta.dir, "../../kernel") }),
  permits: new Semaphore(4),
  forkServers,
  cwd: runtimeDir,
  paths: [],
  env: { PATH: process.env["PATH"] ?? "", HOME: runtimeDir },
  transport: "ipc",
  runtimeDirs: [runtimeDir],
  handlers: {},
  bootstrap: { skills: [], depth: 0, max_depth: 1 },
};
const pids: number[] = [];
for (let index = 0; index < 3; index += 1) {
  const { signal } = new AbortController();
  const { kernel } = await bootKernel(options, () => undefined, signal);
  let printed = "";
  await kernel.execute(
    "import subprocess\nprint(subprocess.Popen(['sleep', '1000']).pid, flush=True)",
    { onOutput: (output) => (printed += output.kind === "stream" ? output.text : "") },
  );
  pids.push(kernel.pid as number, Number(printed));
}
console.log(JSON.stringify(pids));
await Bun.sleep(600_000);
