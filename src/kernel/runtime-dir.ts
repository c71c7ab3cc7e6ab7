/** The private folder of one kernel: its sockets, connection file and list of shell sessions. */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { debug } from "../log.ts";
import { KernelStartError } from "./errors.ts";

/** Socket paths have at most 107 bytes; our longest name below the folder is `/k-5` or `/stderr`. */
const MAX_DIR_BYTES = 107 - "/stderr".length;

const live = new Set<string>();
let hooked = false;

/**
 * Makes a new 0700 folder below the first of `bases` (then the system's own places) where one can be
 * made with a path short enough for unix sockets. It is removed when this process exits, whatever
 * happens before; when the process is killed, the kernel's parent watch removes it.
 *
 * @throws KernelStartError when no folder can be made.
 */
export function makeRuntimeDir(bases: readonly string[] = []): string {
  let cause: unknown;
  for (const base of [...bases, tmpdir(), "/tmp", "/dev/shm"]) {
    if (!base || Buffer.byteLength(base) + "/pa-XXXXXX".length > MAX_DIR_BYTES) continue;
    try {
      const dir = mkdtempSync(join(base, "pa-"));
      live.add(dir);
      if (!hooked) {
        hooked = true;
        process.on("exit", () => {
          for (const left of live) removeRuntimeDir(left);
        });
      }
      return dir;
    } catch (error) {
      cause = error;
    }
  }
  throw new KernelStartError("No folder for the kernel's sockets could be made.", {
    hint: "set TMPDIR to a writable folder with a short path",
    cause,
  });
}

/** Removes a folder made by {@link makeRuntimeDir} with all that is in it; idempotent. */
export function removeRuntimeDir(dir: string): void {
  live.delete(dir);
  try {
    rmSync(dir, { recursive: true, force: true });
  } catch (error) {
    debug("kernel", `could not remove ${dir}`, error);
  }
}
