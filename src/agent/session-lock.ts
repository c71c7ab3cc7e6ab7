/**
 * Keeps two processes from writing one session. The lock is a file beside the session's that
 * names its owner by pid and start time, so that a lock left by a crash, by a zombie, or by an
 * owner whose pid was given to somebody else is recognised and taken over.
 */

import { readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { debug } from "../log.ts";
import { isSameProcess, processStartTime } from "../process-identity.ts";
import { SessionLockedError } from "./errors.ts";

/** A held lock. */
export interface SessionLock {
  /** Gives the lock back; harmless when repeated or when the lock was taken away. */
  release(): void;
}

/**
 * Takes the lock of the session file at `path` for this process. Throws {@link SessionLockedError}
 * when a live process holds it (this one included), and the system's error when the folder can't
 * be written.
 */
export function lockSession(path: string): SessionLock {
  const lockPath = lockPathOf(path);
  const own = JSON.stringify({ pid: process.pid, start_time: processStartTime(process.pid) });
  for (let attempt = 0; attempt < MAX_TAKEOVERS; attempt += 1) {
    if (createLock(lockPath, own)) return heldLock(lockPath, own);
    const found = readLock(lockPath);
    if (found !== undefined && isLive(found, lockPath)) {
      throw new SessionLockedError(path, found.pid);
    }
    if (found !== undefined) removeStale(lockPath, found.text);
  }
  throw new SessionLockedError(path, undefined);
}

/** The pid of the live process that holds the session at `path`, if any. */
export function sessionOwner(path: string): number | undefined {
  const found = readLock(lockPathOf(path));
  return found !== undefined && isLive(found, lockPathOf(path)) ? found.pid : undefined;
}

/** Where the lock of the session file at `path` lies. */
export function lockPathOf(path: string): string {
  return `${path}.lock`;
}

const MAX_TAKEOVERS = 8;

/** A lock without readable content is one that is being written, unless it is older than this. */
const UNWRITTEN_LOCK_MS = 5_000;

interface FoundLock {
  text: string;
  pid: number | undefined;
  startTime: string | undefined;
}

function createLock(lockPath: string, text: string): boolean {
  try {
    writeFileSync(lockPath, text, { flag: "wx", mode: 0o600 });
    return true;
  } catch (error) {
    if (isErrno(error, "EEXIST")) return false;
    throw error;
  }
}

function readLock(lockPath: string): FoundLock | undefined {
  let text: string;
  try {
    text = readFileSync(lockPath, "utf8");
  } catch (error) {
    if (isErrno(error, "ENOENT")) return undefined;
    throw error;
  }
  try {
    const { pid, start_time } = JSON.parse(text) as { pid?: unknown; start_time?: unknown };
    if (typeof pid === "number" && typeof start_time === "string") {
      return { text, pid, startTime: start_time };
    }
  } catch (error) {
    debug("session-lock", `no owner in ${lockPath}`, error);
  }
  return { text, pid: undefined, startTime: undefined };
}

function isLive(lock: FoundLock, lockPath: string): boolean {
  if (lock.pid !== undefined && lock.startTime !== undefined) {
    return isSameProcess(lock.pid, lock.startTime);
  }
  const written = statSync(lockPath, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  return Date.now() - written < UNWRITTEN_LOCK_MS;
}

/**
 * Moves a dead owner's lock away. Another process may have done so and locked meanwhile; then we
 * moved a live lock, which shows in its content, and goes back.
 */
function removeStale(lockPath: string, staleText: string): void {
  const aside = `${lockPath}.${process.pid}`;
  try {
    renameSync(lockPath, aside);
  } catch (error) {
    if (isErrno(error, "ENOENT")) return;
    throw error;
  }
  const moved = readFileSync(aside, "utf8");
  if (moved !== staleText) createLock(lockPath, moved);
  rmSync(aside, { force: true });
}

function heldLock(lockPath: string, own: string): SessionLock {
  return {
    release() {
      try {
        if (readLock(lockPath)?.text === own) rmSync(lockPath, { force: true });
      } catch (error) {
        // A lock that stays is recognised as stale by the next one who asks.
        debug("session-lock", `cannot remove ${lockPath}`, error);
      }
    },
  };
}

/** Whether `error` is a system error with this code. */
function isErrno(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === code;
}
