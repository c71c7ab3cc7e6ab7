/** The saved sessions of the program's folder: listing, finding, forking and deleting them. */

import { constants, copyFileSync, existsSync, readdirSync, realpathSync, rmSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { UsageError } from "../errors.ts";
import { debug } from "../log.ts";
import { nearest } from "../nearest.ts";
import { SessionLockedError } from "./errors.ts";
import { activeBranch } from "./session-context.ts";
import type { SessionEntry, SessionHeader } from "./session-entry.ts";
import { faultWarnings, readSessionFile } from "./session-file.ts";
import {
  artifactsPath,
  lostHeader,
  removeSessionFiles,
  type SessionCreateOptions,
} from "./session-header.ts";
import { lockPathOf, sessionOwner } from "./session-lock.ts";
import { summarizeSession, type SessionSummary } from "./session-summary.ts";
import { Session } from "./session.ts";

/** The sessions of `home` in which something was said, latest first; with `cwd`, only those started there. */
export function listSessions(home: string, filter: { cwd?: string } = {}): SessionSummary[] {
  const cwd = filter.cwd === undefined ? undefined : realPath(filter.cwd);
  return sessionIds(home)
    .map((id) => summarizeSession(join(home, "sessions", `${id}.jsonl`)))
    .filter((summary) => summary !== undefined)
    .filter((summary) => summary.messageCount > 0)
    .filter((summary) => cwd === undefined || realPath(summary.cwd) === cwd)
    .sort((a, b) => b.modifiedAt.getTime() - a.modifiedAt.getTime());
}

/** The session of `home` that was used last in `cwd`, if any. */
export function latestSession(home: string, cwd: string): SessionSummary | undefined {
  return listSessions(home, { cwd })[0];
}

/**
 * The file of the session that `query` means: a path (relative to `cwd`), an id, the beginning of
 * one, or a name. Throws {@link UsageError} that lists the nearest when there is none, or all
 * when there are several.
 */
export function findSession(home: string, query: string, cwd: string): string {
  if (query.endsWith(".jsonl") || query.includes("/")) {
    const path = isAbsolute(query) ? query : resolve(cwd, query);
    if (existsSync(path)) return path;
    throw new UsageError(`there is no session file ${path}`, { hint: LIST_HINT });
  }
  const ids = sessionIds(home);
  const byId = ids.includes(query)
    ? [query]
    : ids.filter((id) => query !== "" && id.startsWith(query));
  const found = byId.length > 0 ? byId : idsByName(home, query);
  if (found.length === 1) return join(home, "sessions", `${found[0]}.jsonl`);
  if (found.length > 1) {
    throw new UsageError(`${found.length} sessions match "${query}": ${listed(found)}`, {
      hint: "Give more of the id.",
    });
  }
  const near = nearest(query, ids);
  throw new UsageError(
    near.length > 0
      ? `there is no session "${query}"; the nearest: ${listed(near)}`
      : `there is no session "${query}"`,
    { hint: LIST_HINT },
  );
}

const LIST_HINT = "`prime-agent sessions list` shows what is saved.";

/**
 * A new session with the whole history of the one at `source`, which stays as it is and may be in
 * use. Its kernel snapshot comes along. Throws what {@link Session.create} and
 * {@link readSessionFile} throw.
 */
export function forkSession(
  source: string,
  options: Omit<SessionCreateOptions, "parent" | "depth">,
): Session {
  const content = readSessionFile(source);
  const fork = Session.create({ ...options, name: undefined, parent: source });
  fork.warnings.push(...faultWarnings(content));
  fork.adopt(content.entries);
  if (options.name) fork.append({ type: "session_info", name: options.name });
  const artifacts = artifactsPath(source);
  if (existsSync(artifacts) && fork.artifactsDir) copyFiles(artifacts, fork.artifactsDir);
  return fork;
}

/** Removes a session and its artifacts. Throws {@link SessionLockedError} while a process uses it. */
export function deleteSession(path: string): void {
  const owner = sessionOwner(path);
  if (owner !== undefined) throw new SessionLockedError(path, owner);
  removeSessionFiles(path);
  rmSync(lockPathOf(path), { force: true });
}

/** A session read for showing or exporting, without its lock and without repair. */
export interface StoredConversation {
  header: SessionHeader;
  /** From the root to the active leaf, compacted entries included. */
  entries: SessionEntry[];
}

/** Reads the session at `path` for showing or exporting. Throws {@link SessionUnreadableError}. */
export function readConversation(path: string): StoredConversation {
  const content = readSessionFile(path);
  return {
    header: content.header ?? lostHeader(path, content),
    entries: activeBranch(content.entries),
  };
}

function sessionIds(home: string): string[] {
  try {
    return readdirSync(join(home, "sessions"))
      .filter((name) => name.endsWith(".jsonl"))
      .map((name) => name.slice(0, -".jsonl".length));
  } catch (error) {
    debug("session-store", "no sessions folder", error);
    return [];
  }
}

function idsByName(home: string, name: string): string[] {
  return listSessions(home)
    .filter((summary) => summary.name === name)
    .map((summary) => summary.id);
}

function listed(ids: readonly string[]): string {
  const shown = ids.slice(0, 5).join(", ");
  return ids.length > 5 ? `${shown}, …` : shown;
}

function copyFiles(from: string, to: string): void {
  for (const entry of readdirSync(from, { withFileTypes: true })) {
    if (!entry.isFile()) continue;
    copyFileSync(join(from, entry.name), join(to, entry.name), constants.COPYFILE_FICLONE);
  }
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    debug("session-store", `${path} is gone`, error);
    return path;
  }
}
