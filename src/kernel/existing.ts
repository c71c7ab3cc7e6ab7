/**
 * A kernel that somebody else started (`--existing`): connected to by its
 * connection file, used with its own habits, and never shut down.
 */

import { existsSync } from "node:fs";
import { UsageError } from "../errors.ts";
import { readConnectionFile } from "../jupyter/connection-file.ts";
import { Kernel } from "./kernel.ts";
import type { ProvisionerOptions } from "./provisioner.ts";

const READ_TIMEOUT_MS = 5_000;
/** It runs already, so its sockets are there or never will be. */
const CONNECT_TIMEOUT_MS = 5_000;
/** Foreign kernels may report idle before their last output is out, as Deno's does. */
const LINGER_MS = 50;

/** How the provisioner gets at the kernel of a connection file. @throws UsageError when there is no such file. */
export function connectExistingKernel(path: string): ProvisionerOptions["boot"] {
  if (!existsSync(path)) {
    throw new UsageError(`there is no connection file ${path}`, {
      hint: "`jupyter --runtime-dir` names the folder of those of running kernels",
    });
  }
  return async (report, signal) => {
    const started = performance.now();
    report("Connecting to the running kernel…");
    const connection = await readConnectionFile(path, { signal, timeoutMs: READ_TIMEOUT_MS });
    const kernel = await Kernel.connect({
      connection,
      handlers: {},
      signal,
      connectTimeoutMs: CONNECT_TIMEOUT_MS,
      times: { linger: LINGER_MS },
    });
    return { kernel, bootMs: Math.round(performance.now() - started) };
  };
}
