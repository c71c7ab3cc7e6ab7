/** What a list of sessions shows of a file, found without parsing the whole of it. */

import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { basename } from "node:path";
import { debug } from "../log.ts";
import { messageText } from "../message.ts";
import { entryMessage } from "./session-context.ts";
import type { SessionEntry, SessionHeader } from "./session-entry.ts";
import { isSafeId } from "./session-header.ts";
import { readRecord } from "./session-record.ts";

/** One line of a list of sessions. */
export interface SessionSummary {
  id: string;
  path: string;
  cwd: string;
  name: string | undefined;
  /** What the person said first; `undefined` when nothing was said. */
  firstPrompt: string | undefined;
  /** Entries of type `message`: prompts, replies and tool results. */
  messageCount: number;
  createdAt: Date;
  modifiedAt: Date;
  bytes: number;
}

/** Past this size a later name and later messages are not seen; the list stays quick. */
const MAX_SCAN_BYTES = 32 * 1024 * 1024;

/** The summary of the session file at `path`, or `undefined` when it is none. */
export function summarizeSession(path: string): SessionSummary | undefined {
  let file: { bytes: Buffer; size: number; modifiedAt: Date };
  try {
    file = readStart(path);
  } catch (error) {
    debug("session-summary", `cannot read ${path}`, error);
    return undefined;
  }
  const { bytes } = file;
  const header = readFirstHeader(bytes);
  if (!header) return undefined;
  return {
    id: isSafeId(header.id) ? header.id : basename(path, ".jsonl"),
    path,
    cwd: header.cwd,
    name: readLastName(bytes),
    firstPrompt: readFirstPrompt(bytes),
    messageCount: [...recordsWith(bytes, MESSAGE_START)].length,
    createdAt: new Date(header.timestamp),
    modifiedAt: file.modifiedAt,
    bytes: file.size,
  };
}

// Every writer of the format puts the type first, and a quote inside a record's text is escaped.
const HEADER_START = '{"type":"session",';
const MESSAGE_START = '{"type":"message",';
const NAME_START = '{"type":"session_info",';

function readStart(path: string): { bytes: Buffer; size: number; modifiedAt: Date } {
  const fd = openSync(path, "r");
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw new Error("not a file");
    const bytes = Buffer.alloc(Math.min(stat.size, MAX_SCAN_BYTES));
    const length = readSync(fd, bytes, 0, bytes.length, 0);
    return { bytes: bytes.subarray(0, length), size: stat.size, modifiedAt: stat.mtime };
  } finally {
    closeSync(fd);
  }
}

function readFirstHeader(bytes: Buffer): SessionHeader | undefined {
  for (const start of recordsWith(bytes, HEADER_START)) {
    const record = recordAt(bytes, start);
    if (record?.type === "session") return record;
  }
  return undefined;
}

function readFirstPrompt(bytes: Buffer): string | undefined {
  for (const start of recordsWith(bytes, MESSAGE_START)) {
    const record = recordAt(bytes, start);
    if (record?.type !== "message" || record.message.role !== "user") continue;
    const message = entryMessage(record);
    if (message) return messageText(message);
  }
  return undefined;
}

function readLastName(bytes: Buffer): string | undefined {
  for (const start of [...recordsWith(bytes, NAME_START)].reverse()) {
    const record = recordAt(bytes, start);
    if (record?.type === "session_info" && record.name) return record.name;
  }
  return undefined;
}

/** Where the records that begin with `prefix` start, also those glued to a damaged line. */
function* recordsWith(bytes: Buffer, prefix: string): Generator<number> {
  let start = bytes.indexOf(prefix);
  while (start >= 0) {
    yield start;
    start = bytes.indexOf(prefix, start + prefix.length);
  }
}

function recordAt(bytes: Buffer, start: number): SessionHeader | SessionEntry | undefined {
  const end = bytes.indexOf("\n", start);
  return readRecord(bytes.toString("utf8", start, end < 0 ? bytes.length : end).trim(), 0);
}
