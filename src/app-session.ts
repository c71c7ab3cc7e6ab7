/** Which session a run belongs to. */

import { findSession, forkSession, latestSession, listSessions } from "./agent/session-store.ts";
import { readSessionFile } from "./agent/session-file.ts";
import { Session } from "./agent/session.ts";
import type { Config } from "./config.ts";
import { UsageError } from "./errors.ts";

/** The session that the flags ask for. @throws UsageError, SessionLockedError, SessionUnreadableError. */
export function openSession(config: Config): Session {
  const { session, cwd, environment } = config;
  const options = {
    cwd,
    ...(session.id !== undefined && { id: session.id }),
    ...(session.name !== undefined && { name: session.name }),
  };
  const path = savedSession(config);
  if (!session.save) return unsavedSession(path, options);
  if (path === undefined) return Session.create({ ...options, home: environment.home });
  if (session.fork) return forkSession(path, { ...options, home: environment.home });
  if (session.id !== undefined) {
    throw new UsageError("--session-id is for a new session; a resumed one keeps its id", {
      hint: "With --fork, the copy gets the id.",
    });
  }
  return renamed(Session.open(path), session.name);
}

/** A session that leaves no trace; one that is gone on with stays as it was. */
function unsavedSession(
  path: string | undefined,
  options: Parameters<typeof Session.inMemory>[0],
): Session {
  const session = Session.inMemory(options);
  if (path !== undefined) session.adopt(readSessionFile(path).entries);
  return session;
}

/** A session that goes on under another name, if one is given. */
function renamed(session: Session, name: string | undefined): Session {
  if (name !== undefined && name !== session.name) session.append({ type: "session_info", name });
  return session;
}

/** The file of the session to go on with; undefined for a new one. */
function savedSession({ session, cwd, environment }: Config): string | undefined {
  if (session.resume) return findSession(environment.home, session.resume, cwd);
  const latest = session.resume === "" ? listSessions(environment.home)[0] : undefined;
  if (session.resume === "" && !latest) throw new UsageError("there is no saved session yet");
  if (latest) return latest.path;
  if (!session.continueLatest) return undefined;
  // Like the tools that people know: nothing to go on with means a new session.
  return latestSession(environment.home, cwd)?.path;
}
