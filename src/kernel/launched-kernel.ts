/** A kernel process that nobody has connected to yet, with what is needed to do so. */

import type { ConnectionInfo } from "../jupyter/connection-file.ts";
import type { KernelProcess } from "./process.ts";
import { removeRuntimeDir } from "./runtime-dir.ts";

/** See the head of this file. Whoever has it owns the process and the folder. */
export interface LaunchedKernel {
  readonly process: KernelProcess;
  readonly connection: ConnectionInfo;
  /** The private folder. */
  readonly dir: string;
}

/** Ends a kernel that is not wanted, and removes its folder. */
export function discardKernel({ process, dir }: LaunchedKernel): void {
  process.signal("SIGKILL", "group");
  process.release();
  removeRuntimeDir(dir);
}
