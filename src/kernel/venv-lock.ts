/**
 * One builder at a time for a virtual environment, across processes. The lock
 * is a file that names its owner; an owner that is gone, a zombie or another
 * process with a reused pid is no owner, and its lock is taken over at once.
 * The environment is put in place by a rename, so that even two builders would
 * only do the work twice.
 */

import {
  closeSync,
  existsSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeSync,
} from "node:fs";
import { hostname } from "node:os";
import { delay } from "../async.ts";
import { debug } from "../log.ts";
import { isSameProcess, processStartTime } from "../process-identity.ts";
import { EnvironmentLockedError } from "./environment-errors.ts";

const POLL_MS = 100;
const REMIND_MS = 15_000;
const HEARTBEAT_MS = 5_000;
/** An owner that can't be looked at (another container or host) is gone when its file is this old. */
const SILENT_MS = 60_000;

/** How to wait for the lock. */
export interface LockOptions {
  /** The longest wait for a live owner. */
  readonly waitMs: number;
  readonly signal?: AbortSignal | undefined;
  /** Told whom we wait for, at once and then now and again. */
  onProgress?(line: string): void;
}

/** A lock that is held; `using` gives it back. */
export interface VenvLock extends Disposable {
  readonly path: string;
}

interface Owner {
  readonly pid: number;
  readonly startTime: string;
  /** Where that pid means something: one host and pid namespace. */
  readonly scope: string;
}

/**
 * Creates the lock file at `path`, waiting for a live owner to remove its own.
 *
 * @throws EnvironmentLockedError after `waitMs`, AbortedError, or the error of a folder that can't be written to.
 */
export async function acquireVenvLock(path: string, options: LockOptions): Promise<VenvLock> {
  const started = performance.now();
  let nextReminder = 0;
  while (!tryCreate(path)) {
    const text = readLock(path);
    if (text === undefined) continue;
    const owner = parseOwner(text);
    if (isGone(path, owner)) {
      takeOver(path, text);
      continue;
    }
    const waited = performance.now() - started;
    if (waited >= options.waitMs) throw new EnvironmentLockedError(path, describe(owner), waited);
    if (waited >= nextReminder) {
      options.onProgress?.(`Waiting for ${describe(owner)}, which is building the environment…`);
      nextReminder = waited + REMIND_MS;
    }
    await delay(POLL_MS, options.signal);
  }
  return hold(path);
}

function tryCreate(path: string): boolean {
  try {
    const file = openSync(path, "wx", 0o600);
    try {
      writeSync(file, ownerText());
    } finally {
      closeSync(file);
    }
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

function hold(path: string): VenvLock {
  const heartbeat = setInterval(() => {
    try {
      utimesSync(path, new Date(), new Date());
    } catch (error) {
      debug("kernel", `cannot touch ${path}`, error);
    }
  }, HEARTBEAT_MS);
  heartbeat.unref();
  return {
    path,
    [Symbol.dispose]() {
      clearInterval(heartbeat);
      if (readLock(path) === ownerText()) rmSync(path, { force: true });
    },
  };
}

/** Renaming is atomic, so of several that find the same dead owner only one gets its file. */
function takeOver(path: string, judged: string): void {
  const aside = `${path}.${process.pid}`;
  try {
    renameSync(path, aside);
  } catch (error) {
    debug("kernel", `somebody else took over ${path}`, error);
    return;
  }
  // Between our look and the rename a new owner may have come: its file goes back.
  if (readLock(aside) !== judged && !existsSync(path)) renameSync(aside, path);
  else rmSync(aside, { force: true });
}

function isGone(path: string, owner: Owner | undefined): boolean {
  if (owner?.scope === scope()) return !isSameProcess(owner.pid, owner.startTime);
  try {
    return Date.now() - statSync(path).mtimeMs > SILENT_MS;
  } catch (error) {
    debug("kernel", `${path} went away`, error);
    return false;
  }
}

/** Undefined while the owner has only created the file, and for a file that is not a lock of ours. */
function parseOwner(text: string): Owner | undefined {
  try {
    return JSON.parse(text) as Owner;
  } catch (error) {
    debug("kernel", "the lock names no owner", error);
    return undefined;
  }
}

function describe(owner: Owner | undefined): string {
  if (owner === undefined) return "another process";
  if (owner.scope !== scope()) return `pid ${owner.pid} of another container or host`;
  return owner.pid === process.pid ? "another start in this process" : `pid ${owner.pid}`;
}

function ownerText(): string {
  const owner: Owner = {
    pid: process.pid,
    startTime: processStartTime(process.pid) ?? "",
    scope: scope(),
  };
  return JSON.stringify(owner);
}

function scope(): string {
  try {
    return `${hostname()} ${readlinkSync("/proc/self/ns/pid")}`;
  } catch (error) {
    debug("kernel", "no pid namespaces here", error);
    return hostname();
  }
}

function readLock(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    debug("kernel", `${path} can't be read`, error);
    return undefined;
  }
}
