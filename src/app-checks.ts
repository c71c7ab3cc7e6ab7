/** `--check CMD`: commands that must pass before a run counts as a success. */

import { drainCapped } from "./app-process.ts";
import type { EventSink } from "./agent/events.ts";
import { abortReason } from "./async.ts";
import type { Config } from "./config.ts";
import { debug } from "./log.ts";
import { stripTerminal } from "./tool/plain-text.ts";

/** How long output is waited for when the check itself has ended. */
const LATE_OUTPUT_MS = 500;
/** What of a failed check's output goes back to the model. */
const MAX_OUTPUT_CHARS = 8_192;

/**
 * Runs the checks in order, in the run's folder, with the kernel's environment. Stops at the first that
 * fails and returns what the model is told about it; undefined when all pass.
 */
export async function runChecks(
  config: Config,
  env: Record<string, string>,
  emit: EventSink,
  signal: AbortSignal,
): Promise<string | undefined> {
  for (const command of config.checks) {
    const { exitCode, output } = await runCheck(command, config.cwd, env, signal);
    emit({ type: "check", command, passed: exitCode === 0, exitCode, output });
    if (exitCode !== 0) {
      return `The check \`${command}\` failed with exit code ${exitCode}. Mend what it complains about.\n\n${output}`;
    }
  }
  return undefined;
}

async function runCheck(
  command: string,
  cwd: string,
  env: Record<string, string>,
  signal: AbortSignal,
): Promise<{ exitCode: number | null; output: string }> {
  const child = Bun.spawn(["/bin/sh", "-c", `exec 2>&1\n${command}`], {
    cwd,
    env,
    detached: true,
    stdio: ["ignore", "pipe", "ignore"],
  });
  const end = () => endGroup(child.pid);
  signal.addEventListener("abort", end, { once: true });
  try {
    // What it left in the background may keep the pipe open for ever.
    const over = child.exited.then(end).then(() => Bun.sleep(LATE_OUTPUT_MS));
    const output = stripTerminal(await drainCapped(child.stdout, MAX_OUTPUT_CHARS, over));
    const exitCode = await child.exited;
    if (signal.aborted) throw abortReason(signal);
    return { exitCode, output };
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** The check leads its own group: what it started ends with it. */
function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    debug("checks", `nothing is left of the check ${pid}`, error);
  }
}
