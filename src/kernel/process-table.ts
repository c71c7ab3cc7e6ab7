/**
 * Ending what a kernel started: its own process group and the sessions of its
 * shell cells, as a closing terminal would. Reads `/proc` (proc(5)); where
 * there is none, process groups are signalled.
 */

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { delay } from "../async.ts";
import { debug } from "../log.ts";

const TERM_GRACE_MS = 500;
const POLL_MS = 25;

interface ProcessEntry {
  pid: number;
  session: number;
  startTime: string;
}

/**
 * Ends all processes of the given sessions: SIGTERM, then SIGKILL after a grace. Spared are those that
 * ignore SIGHUP (nohup) and, by construction, those that moved to a session of their own (setsid).
 */
export async function endSessions(sessions: Iterable<number>): Promise<void> {
  // 0 is what processes from outside of a container have; nobody of ours leads 0 or 1.
  const wanted = new Set([...sessions].filter((session) => session > 1));
  const members = () =>
    listProcesses().filter((entry) => wanted.has(entry.session) && !ignoresHangUp(entry.pid));
  if (!existsSync("/proc/self/stat")) {
    for (const session of wanted) send(-session, "SIGKILL");
    return;
  }
  let left = members();
  for (const { pid } of left) send(pid, "SIGTERM");
  for (let waited = 0; left.length > 0 && waited < TERM_GRACE_MS; waited += POLL_MS) {
    await delay(POLL_MS);
    left = members();
  }
  for (const { pid } of left) send(pid, "SIGKILL");
}

/**
 * The shell sessions that a kernel recorded in `<dir>/sessions`, one `sid start_time` a line. A session
 * whose leader's pid now belongs to another process is left out.
 */
export function recordedSessions(dir: string): number[] {
  let text: string;
  try {
    text = readFileSync(join(dir, "sessions"), "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT")
      debug("kernel", "the session list is unreadable", error);
    return [];
  }
  const sessions: number[] = [];
  for (const line of text.split("\n")) {
    const [sid, startTime] = line.split(" ");
    const pid = Number(sid);
    if (!Number.isInteger(pid) || pid <= 1) continue;
    const leader = readEntry(pid);
    if (!leader || leader.startTime === startTime) sessions.push(pid);
  }
  return sessions;
}

function listProcesses(): ProcessEntry[] {
  const entries: ProcessEntry[] = [];
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    const entry = Number.isInteger(pid) ? readEntry(pid) : undefined;
    if (entry) entries.push(entry);
  }
  return entries;
}

/** One process that is not a zombie; undefined when it is gone. */
function readEntry(pid: number): ProcessEntry | undefined {
  const stat = readProc(pid, "stat");
  if (!stat) return undefined;
  // The command name in parentheses may itself hold spaces and parentheses: count from its end.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  if (fields[0] === "Z" || fields[0] === "X") return undefined;
  return { pid, session: Number(fields[3]), startTime: fields[19] ?? "" };
}

function ignoresHangUp(pid: number): boolean {
  const mask = /^SigIgn:\s*([0-9a-f]+)$/m.exec(readProc(pid, "status") ?? "")?.[1];
  return mask !== undefined && (BigInt(`0x${mask}`) & 1n) === 1n;
}

function readProc(pid: number, file: string): string | undefined {
  try {
    return readFileSync(`/proc/${pid}/${file}`, "utf8");
  } catch (error) {
    // The process ended meanwhile: the normal end of a race that can't be avoided.
    const { code } = error as NodeJS.ErrnoException;
    if (code !== "ENOENT" && code !== "ESRCH")
      debug("kernel", `/proc/${pid}/${file} is unreadable`, error);
    return undefined;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    debug("kernel", `could not send ${signal} to ${pid}`, error);
  }
}
