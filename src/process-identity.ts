/**
 * Tells whether a process that was seen before is still the same one. A pid alone does not say so:
 * it is reused. The pid together with its start time does. Lock files record both.
 */

import { readFileSync } from "node:fs";
import { debug } from "./log.ts";

/** What {@link processStartTime} gives where the system tells only that the process exists. */
const UNKNOWN_START = "unknown";

/**
 * When process `pid` started, as an opaque text that is only good for comparing, or `undefined`
 * when there is no such process. A zombie counts as gone: it holds nothing any more. The text
 * differs between two boots of the machine.
 */
export function processStartTime(pid: number): string | undefined {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  return process.platform === "linux" ? startFromProc(pid) : startFromPs(pid);
}

/** Whether process `pid` runs now and is the one whose {@link processStartTime} was `startTime`. */
export function isSameProcess(pid: number, startTime: string): boolean {
  return processStartTime(pid) === startTime;
}

function startFromProc(pid: number): string | undefined {
  const stat = readProc(`/proc/${pid}/stat`);
  if (stat === undefined) {
    // A system without /proc must not make every owner look dead.
    return readProc("/proc/self/stat") === undefined ? startFromSignal(pid) : undefined;
  }
  // proc(5): the command, in parentheses, may itself hold spaces and parentheses. After it come
  // the state (field 3) and, at field 22, the start in clock ticks since boot.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  const boot = readProc("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
  return `${boot}/${fields[19]}`;
}

function startFromPs(pid: number): string | undefined {
  const ps = Bun.spawnSync(["ps", "-o", "stat=,lstart=", "-p", String(pid)], {
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
    stderr: "ignore",
  });
  const [state, ...start] = ps.stdout.toString().trim().split(/\s+/);
  if (!state || state.startsWith("Z")) return undefined;
  return start.join(" ");
}

function startFromSignal(pid: number): string | undefined {
  try {
    process.kill(pid, 0);
    return UNKNOWN_START;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM" ? UNKNOWN_START : undefined;
  }
}

function readProc(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    debug("process-identity", `cannot read ${path}`, error);
    return undefined;
  }
}
