/** Where a session's files lie, and the first record of its file. */

import { rmSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { UsageError } from "../errors.ts";
import { SessionUnreadableError } from "./errors.ts";
import { SESSION_VERSION, type SessionHeader } from "./session-entry.ts";
import type { SessionContent } from "./session-file.ts";

/** What a new session is made of. */
export interface SessionCreateOptions {
  /** The program's folder (`~/.prime/agent`); for a sub-agent, its parent's artifact folder. */
  home: string;
  cwd: string;
  /** Default: a new UUID. Used as the file's name. */
  id?: string;
  name?: string;
  /** File of the session that this one comes from. */
  parent?: string;
  /** Sub-agent levels above this one; kept in the header when given. */
  depth?: number;
}

/** Where the session `id` of the program's folder `home` lies. */
export function sessionPath(home: string, id: string): string {
  return join(home, "sessions", `${id}.jsonl`);
}

/**
 * The artifact folder of the session file at `path`: `session-artifacts/<id>` beside the
 * `sessions` folder, or a folder beside a file that lies elsewhere.
 */
export function artifactsPath(path: string): string {
  const stem = basename(path, ".jsonl");
  const folder = dirname(path);
  return basename(folder) === "sessions"
    ? join(dirname(folder), "session-artifacts", stem)
    : join(folder, `${stem}.artifacts`);
}

/** Removes the session file at `path` and its artifacts, not its lock. */
export function removeSessionFiles(path: string): void {
  rmSync(path, { force: true });
  rmSync(artifactsPath(path), { recursive: true, force: true });
}

/** Whether `id` can serve as a file name. */
export function isSafeId(id: string): boolean {
  return SAFE_ID.test(id);
}

const SAFE_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** The header of a new session. Throws {@link UsageError} when its id is unusable. */
export function newHeader(options: Omit<SessionCreateOptions, "home">): SessionHeader {
  const id = options.id ?? crypto.randomUUID();
  if (!isSafeId(id)) {
    throw new UsageError(`the session id ${JSON.stringify(id)} can't be a file name`, {
      hint: "Use letters, digits, dots and hyphens; a UUID is best.",
    });
  }
  return {
    type: "session",
    version: SESSION_VERSION,
    id,
    timestamp: new Date().toISOString(),
    cwd: options.cwd,
    ...(options.parent === undefined ? {} : { parentSession: options.parent }),
    ...(options.depth === undefined ? {} : { rlmDepth: options.depth }),
  };
}

/**
 * A header for a file that lost its own: the entries are worth more than the missing line. Throws
 * {@link SessionUnreadableError} when there are none.
 */
export function lostHeader(path: string, content: SessionContent): SessionHeader {
  const first = content.entries[0];
  if (!first) throw new SessionUnreadableError(path, "it holds no record of a session");
  return {
    type: "session",
    version: SESSION_VERSION,
    id: basename(path, ".jsonl"),
    timestamp: first.timestamp,
    cwd: "",
  };
}
