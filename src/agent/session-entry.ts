/**
 * The records of a session file: version 3 of the pi family's session format. A file is JSON
 * Lines: one header, then entries that form a tree through `id` and `parentId`. The last entry is
 * the active leaf; the path from it to the root is the conversation.
 */

import type { ImageBlock, Message, TextBlock, Usage } from "../message.ts";
import { escapeLineEnds } from "../printable.ts";

/** The format version that we write. */
export const SESSION_VERSION = 3;

/** First line of the file; not part of the tree. */
export interface SessionHeader {
  type: "session";
  version: number;
  id: string;
  /** ISO 8601. */
  timestamp: string;
  cwd: string;
  /** File of the session that this one was forked from or spawned by. */
  parentSession?: string;
  /** How many sub-agent levels lie above; 0 or absent for a root. */
  rlmDepth?: number;
}

/** What every entry has: 8 hex digits as id, the entry before it, and an ISO 8601 time. */
export interface EntryBase {
  id: string;
  parentId: string | null;
  timestamp: string;
}

/** One message of the transcript. */
export interface MessageEntry extends EntryBase {
  type: "message";
  message: Message;
}

/** From here on this model answers. */
export interface ModelChangeEntry extends EntryBase {
  type: "model_change";
  provider: string;
  modelId: string;
}

/** From here on the model thinks this hard. */
export interface ThinkingLevelChangeEntry extends EntryBase {
  type: "thinking_level_change";
  thinkingLevel: string;
}

/** What came before `firstKeptEntryId` is replaced by `summary` in the model's context. */
export interface CompactionEntry extends EntryBase {
  type: "compaction";
  summary: string;
  firstKeptEntryId: string;
  tokensBefore: number;
  details?: unknown;
}

/** Stands for a branch that was left for this one. */
export interface BranchSummaryEntry extends EntryBase {
  type: "branch_summary";
  fromId: string;
  summary: string;
  details?: unknown;
}

/** The session's name for people; the latest one counts. */
export interface SessionInfoEntry extends EntryBase {
  type: "session_info";
  name: string;
}

/** State of a part of the program; never shown to the model. */
export interface CustomEntry extends EntryBase {
  type: "custom";
  customType: string;
  data?: unknown;
}

/** A message by a part of the program; the model reads it as a user message. */
export interface CustomMessageEntry extends EntryBase {
  type: "custom_message";
  customType: string;
  content: string | Array<TextBlock | ImageBlock>;
  /** Whether people see it. */
  display: boolean;
  details?: unknown;
}

/** A bookmark of a person on an entry; absent `label` removes it. */
export interface LabelEntry extends EntryBase {
  type: "label";
  targetId: string;
  label?: string;
}

/**
 * What a sub-agent used, charged to the assistant message (`targetId`) that spawned it.
 * `aggregateUsage` is that message's own usage plus all its children's so far.
 */
export interface ChildUsageEntry extends EntryBase {
  type: "child_usage_attributed";
  targetId: string;
  childUsage: Usage;
  aggregateUsage: Usage;
}

/**
 * An entry. Files may hold types that are not listed here: they are carried along untouched, so a
 * switch over `type` needs a default.
 */
export type SessionEntry =
  | MessageEntry
  | ModelChangeEntry
  | ThinkingLevelChangeEntry
  | CompactionEntry
  | BranchSummaryEntry
  | SessionInfoEntry
  | CustomEntry
  | CustomMessageEntry
  | LabelEntry
  | ChildUsageEntry;

type WithoutBase<E> = E extends EntryBase ? Omit<E, keyof EntryBase> : never;

/** An entry before the session gives it its id, parent and time. */
export type EntryDraft = WithoutBase<SessionEntry>;

/** A random id of 8 hex digits that `taken` does not hold. */
export function newEntryId(taken: { has(id: string): boolean }): string {
  for (;;) {
    const id = crypto.getRandomValues(new Uint8Array(4)).toHex();
    if (!taken.has(id)) return id;
  }
}

/** One record as one line, whatever a reader takes for a line's end. */
export function encodeRecord(record: SessionHeader | SessionEntry): string {
  return `${escapeLineEnds(JSON.stringify(record))}\n`;
}
