/** Which session a run belongs to. */

import { findSession, forkSession, latestSession, listSessions } from "./agent/session-store.ts";
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
  if (path !== undefined && session.fork)
    return forkSession(path, { ...options, home: environment.home });
  if (path !== undefined) return renamed(Session.open(path), session.name);
  return session.save
    ? Session.create({ ...options, home: environment.home })
    : Session.inMemory(options);
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
