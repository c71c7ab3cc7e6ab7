/** The processes that a run left, found by the home folder in their environment. */

import { readdirSync, readFileSync } from "node:fs";

/** The command lines of live processes whose environment names this home. */
export function processesOf(home: string): string[] {
  return pidsOf(home).map((pid) => read(`/proc/${pid}/cmdline`).replaceAll("\0", " "));
}

/** The ids of live processes whose environment names this home. */
export function pidsOf(home: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      const state = /^State:\s+(\S)/m.exec(read(`/proc/${name}/status`))?.[1];
      return state !== "Z" && read(`/proc/${name}/environ`).includes(`HOME=${home}\0`);
    })
    .map(Number);
}

/** Resolves when none is left. */
export async function untilGone(home: string): Promise<void> {
  while (pidsOf(home).length > 0) await Bun.sleep(20);
}

/** A file of /proc; "" for a process that ended while we looked. */
function read(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
