/**
 * Starting a kernel's process: taken from the reserve or forked where a
 * template is at hand, else started directly.
 */

import { join } from "node:path";
import { throwIfAborted } from "../async.ts";
import {
  createIpcConnection,
  createTcpConnection,
  writeConnectionFile,
  type ChannelPorts,
} from "../jupyter/connection-file.ts";
import { debug } from "../log.ts";
import type { BootstrapOptions } from "./bootstrap.ts";
import { ForkServerUnavailableError } from "./errors.ts";
import type { ForkServer } from "./fork-server.ts";
import type { ForkServers } from "./fork-servers.ts";
import type { LaunchedKernel } from "./launched-kernel.ts";
import { spawnKernel, type KernelProcess, type LaunchConfig } from "./process.ts";
import { makeRuntimeDir, removeRuntimeDir } from "./runtime-dir.ts";

/** Everything that a kernel's process is started with; kernels of equal plans are interchangeable. */
export interface LaunchPlan {
  python: string;
  /** The folder that holds `launcher.py`. */
  root: string;
  cwd: string;
  paths: string[];
  env: Record<string, string>;
  transport: "ipc" | "tcp";
  runtimeDirs: string[];
  /** See {@link LaunchConfig}. */
  bootstrap?: BootstrapOptions;
}

/**
 * Starts a kernel. It may not be ready yet.
 *
 * @throws KernelStartError when it can't be started; AbortedError when `signal` has fired.
 */
export async function launchKernel(
  plan: LaunchPlan,
  forkServers: ForkServers,
  signal: AbortSignal,
): Promise<LaunchedKernel> {
  const launcher = join(plan.root, "launcher.py");
  const server = forkServers.next(plan.python, launcher, plan.env);
  const forked = server && (await forkKernel(plan, server, forkServers));
  if (forked) return forked;
  throwIfAborted(signal);
  return await start(plan, async (config) =>
    spawnKernel({ python: plan.python, launcher, config, env: plan.env }),
  );
}

/** The kernel in reserve, or a fork; undefined where forking is not possible. */
async function forkKernel(
  plan: LaunchPlan,
  server: ForkServer,
  { spare }: ForkServers,
): Promise<LaunchedKernel | undefined> {
  const key = JSON.stringify(plan);
  const fork = () => start(plan, (config) => server.fork(config, plan.env));
  try {
    const kernel = spare.take(key) ?? (await fork());
    spare.order(key, fork);
    return kernel;
  } catch (error) {
    if (!(error instanceof ForkServerUnavailableError)) throw error;
    debug("kernel", "starting directly instead of forking", error);
    return undefined;
  }
}

/** Makes the folder and its connection file, and starts the process on them. */
async function start(
  plan: LaunchPlan,
  begin: (config: LaunchConfig) => Promise<KernelProcess>,
): Promise<LaunchedKernel> {
  const dir = makeRuntimeDir(plan.runtimeDirs);
  try {
    const connection =
      plan.transport === "ipc" ? createIpcConnection(dir) : createTcpConnection(freePorts());
    const config: LaunchConfig = {
      connection_file: join(dir, "connection.json"),
      cwd: plan.cwd,
      paths: plan.paths,
      kernel_dir: dir,
      ...(plan.bootstrap && { bootstrap: plan.bootstrap }),
    };
    writeConnectionFile(config.connection_file, connection);
    return { process: await begin(config), connection, dir };
  } catch (error) {
    removeRuntimeDir(dir);
    throw error;
  }
}

/**
 * Five free ports on loopback. Another program could take one before the kernel binds it; the start
 * then fails and the next call tries again with others. Unix sockets, the default, have no such gap.
 */
export function freePorts(): ChannelPorts {
  const names = ["shell", "iopub", "stdin", "control", "hb"] as const;
  const listeners = names.map(() =>
    Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } }),
  );
  const ports = Object.fromEntries(names.map((name, index) => [name, listeners[index]?.port ?? 0]));
  for (const listener of listeners) listener.stop(true);
  return ports as Record<(typeof names)[number], number>;
}
