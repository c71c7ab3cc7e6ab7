/**
 * One line of a session file, as written by us, by another program of the format, or by a crash.
 * Records pass through as they were parsed, with fields that we do not know, so that they can be
 * written again without loss.
 */

import { debug } from "../log.ts";
import type { SessionEntry, SessionHeader } from "./session-entry.ts";

/**
 * The record that `text` is, or `undefined` when it is none. Old versions lack `id` and
 * `parentId`; the id is then made from the line number, the same at every load.
 */
export function readRecord(text: string, line: number): SessionHeader | SessionEntry | undefined {
  const value = parseObject(text);
  if (!value || typeof value.type !== "string") return undefined;
  if (value.type === "session") return completeHeader(value);
  if (!hasPayload(value)) return undefined;
  if (typeof value.id !== "string" || value.id === "") {
    value.id = line.toString(16).padStart(8, "0");
  }
  if (typeof value.timestamp !== "string") value.timestamp = new Date(0).toISOString();
  return value as unknown as SessionEntry;
}

/**
 * The intact records inside a damaged line: those between blocks of NUL bytes, and those that
 * were glued to a fragment because a line break is missing.
 */
export function salvageRecords(text: string, line: number): Array<SessionHeader | SessionEntry> {
  const records: Array<SessionHeader | SessionEntry> = [];
  for (const block of text.split(NUL_BLOCK)) {
    const starts = [...block.matchAll(RECORD_START)].map((match) => match.index);
    for (const [index, start] of starts.entries()) {
      const record = readRecord(block.slice(start, starts[index + 1]).trim(), line);
      if (record) records.push(record);
    }
  }
  return records;
}

const NUL_BLOCK = /\0+/;

/** Only a record starts so: the blocks inside a message have other types, quotes in text are escaped. */
const RECORD_START =
  /\{"type":"(?:session|message|model_change|thinking_level_change|compaction|branch_summary|session_info|custom|custom_message|label|child_usage_attributed)"/g;

type JsonObject = Record<string, unknown>;

function parseObject(text: string): JsonObject | undefined {
  if (!text.startsWith("{")) return undefined;
  try {
    // A text that starts with a brace parses to an object or not at all.
    return JSON.parse(text) as JsonObject;
  } catch (error) {
    debug("session-record", "not a record", error);
    return undefined;
  }
}

function completeHeader(value: JsonObject): SessionHeader {
  if (typeof value.version !== "number") value.version = 1;
  if (typeof value.id !== "string") value.id = "";
  if (typeof value.timestamp !== "string") value.timestamp = new Date(0).toISOString();
  if (typeof value.cwd !== "string") value.cwd = "";
  return value as unknown as SessionHeader;
}

/** Whether the entry has what the conversation is built from. Other types are only carried along. */
function hasPayload(value: JsonObject): boolean {
  switch (value.type) {
    case "message":
      return isObject(value.message) && typeof value.message.role === "string";
    case "compaction":
    case "branch_summary":
      return typeof value.summary === "string";
    case "custom_message":
      return typeof value.content === "string" || Array.isArray(value.content);
    case "child_usage_attributed":
      return isObject(value.childUsage);
    default:
      return true;
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
