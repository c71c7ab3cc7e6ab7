/**
 * What a session remembers of its sub-agents, which end with the program: who was started, and whether
 * the agent has heard of it since. A resumed session tells the model whom it waits for in vain.
 */

import type { InboxMessage } from "./inbox.ts";
import type { SessionEntry } from "./session-entry.ts";
import type { Session } from "./session.ts";

/** A sub-agent as the session remembers it. */
export interface SubagentRecord {
  id: string;
  sessionId: string;
  name: string;
  /** Null when nothing was saved. */
  sessionFile: string | null;
  /** Whether its work has begun, or has ended with nothing left to report. */
  state: "working" | "settled";
}

const RECORD_TYPE = "subagent";
const MAX_LISTED = 20;

/** Remembers a sub-agent's state in its parent's session. */
export function recordSubagent(session: Session, record: SubagentRecord): void {
  session.append({ type: "custom", customType: RECORD_TYPE, data: record });
}

/** What a resumed session's agent must be told of sub-agents that it has not heard of; undefined for nothing. */
export function unreportedNotice(entries: readonly SessionEntry[]): InboxMessage | undefined {
  const lost = unreported(entries);
  if (lost.length === 0) return undefined;
  const lines = lost
    .slice(0, MAX_LISTED)
    .map(({ name, id, sessionFile }) => `- ${name} (${id}), transcript: ${sessionFile ?? "none"}`);
  if (lost.length > MAX_LISTED) lines.push(`- and ${lost.length - MAX_LISTED} more`);
  return {
    source: "agent-notice",
    content: [
      "<subagents_ended>",
      "The program ended before these sub-agents had reported. They are gone; start new ones where their work is still needed.",
      ...lines,
      "</subagents_ended>",
    ].join("\n"),
    details: { children: lost.map(({ id }) => id) },
  };
}

/** The sub-agents that had work and of which nothing reached the transcript since their last piece of work began. */
function unreported(entries: readonly SessionEntry[]): SubagentRecord[] {
  const open = new Map<string, SubagentRecord>();
  for (const entry of entries) {
    const record = recordOf(entry);
    if (record?.state === "working") open.set(record.id, record);
    else if (record) open.delete(record.id);
    for (const id of reportedIn(entry)) {
      for (const { id: known, sessionId } of [...open.values()]) {
        if (known === id || sessionId === id) open.delete(known);
      }
    }
  }
  return [...open.values()];
}

/** The ids, of sub-agents or their sessions, that an entry tells of. */
function reportedIn(entry: SessionEntry): string[] {
  if (entry.type !== "custom_message") return [];
  const details = entry.details as
    { child?: unknown; children?: unknown; from?: { sessionId?: unknown } } | null | undefined;
  const children = Array.isArray(details?.children) ? details.children : [];
  return [details?.child, details?.from?.sessionId, ...children].filter(
    (id) => typeof id === "string",
  );
}

function recordOf(entry: SessionEntry): SubagentRecord | undefined {
  if (entry.type !== "custom" || entry.customType !== RECORD_TYPE) return undefined;
  const record = entry.data as Partial<SubagentRecord> | null | undefined;
  const { id, sessionId, name, state, sessionFile } = record ?? {};
  if (typeof id !== "string" || typeof sessionId !== "string" || typeof name !== "string")
    return undefined;
  return {
    id,
    sessionId,
    name,
    state: state === "working" ? state : "settled",
    sessionFile: typeof sessionFile === "string" ? sessionFile : null,
  };
}
