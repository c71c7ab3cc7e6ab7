/** How a kernel process of ours is ended in an orderly way, in bounded time. */

import { TIMED_OUT, within } from "../async.ts";
import { debug } from "../log.ts";
import type { KernelProcess } from "./process.ts";

/** How long each step may take, in milliseconds. */
export interface EndingTimes {
  /** For the answer to the shutdown request; without one the kernel is stuck. */
  answer: number;
  /** For the exit of a kernel that has answered: it ends what its cells started. */
  exit: number;
  /** For the exit after SIGTERM, before SIGKILL. */
  term: number;
}

/** Together below the 5 s that leaving may take. */
const TIMES: EndingTimes = { answer: 2_000, exit: 2_000, term: 500 };

/**
 * Ends the process: `ask` sends the shutdown request and resolves when it is answered; then SIGTERM,
 * then SIGKILL go to the group, as far as needed. Resolves when the process has exited, or when even
 * SIGKILL has not been followed by an exit in time.
 */
export async function endProcess(
  process: KernelProcess,
  ask: () => Promise<unknown>,
  times: EndingTimes = TIMES,
): Promise<void> {
  if (await isAnswered(process, ask, times.answer)) await exits(process, times.exit);
  for (const signal of ["SIGTERM", "SIGKILL"] as const) {
    if (await exits(process, 0)) return;
    process.signal(signal, "group");
    await exits(process, times.term);
  }
}

async function isAnswered(
  process: KernelProcess,
  ask: () => Promise<unknown>,
  ms: number,
): Promise<boolean> {
  try {
    return (await within(Promise.race([ask(), process.exited]), ms)) !== TIMED_OUT;
  } catch (error) {
    debug("kernel", "the shutdown request was not answered", error);
    return false;
  }
}

async function exits(process: KernelProcess, ms: number): Promise<boolean> {
  return (await within(process.exited, ms)) !== TIMED_OUT;
}
