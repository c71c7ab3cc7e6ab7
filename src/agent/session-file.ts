/**
 * A session file's bytes: reading whatever a crash, a full disk or another program left behind,
 * and appending one record with one write. Nothing here rewrites a file.
 */

import { closeSync, fsyncSync, openSync, readFileSync, statSync, writeSync } from "node:fs";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";
import { SessionUnreadableError } from "./errors.ts";
import {
  encodeRecord,
  SESSION_VERSION,
  type SessionEntry,
  type SessionHeader,
} from "./session-entry.ts";
import { readRecord, salvageRecords } from "./session-record.ts";

/** A line that could not be used whole. `line` counts from 1. */
export interface SessionFault {
  line: number;
  bytes: number;
  /** `torn`: the last line, cut by a crash. */
  kind: "torn" | "damaged";
}

/** What a session file holds. `header` is absent when its line is lost. */
export interface SessionContent {
  header: SessionHeader | undefined;
  entries: SessionEntry[];
  faults: SessionFault[];
  /** False when the last line lacks its line break: the next record must start on a fresh one. */
  endsOnFreshLine: boolean;
}

/** Reads a session file and takes every intact record out of it. Throws {@link SessionUnreadableError}. */
export function readSessionFile(path: string): SessionContent {
  requireFile(path);
  try {
    return parseSession(readFileSync(path));
  } catch (error) {
    throw new SessionUnreadableError(path, errorMessage(error), { cause: error });
  }
}

/** Throws {@link SessionUnreadableError} unless `path` is a regular file: a pipe or device may never end. */
function requireFile(path: string): void {
  let isFile: boolean;
  try {
    isFile = statSync(path).isFile();
  } catch (error) {
    throw new SessionUnreadableError(path, errorMessage(error), { cause: error });
  }
  if (!isFile) throw new SessionUnreadableError(path, "it is not a file");
}

/** Takes every intact record out of `bytes`, in order; never throws. */
export function parseSession(bytes: Buffer): SessionContent {
  const content: SessionContent = {
    header: undefined,
    entries: [],
    faults: [],
    endsOnFreshLine: bytes.length === 0 || bytes.at(-1) === LINE_FEED,
  };
  let line = 0;
  for (let start = 0; start < bytes.length;) {
    const lineFeed = bytes.indexOf(LINE_FEED, start);
    const end = lineFeed < 0 ? bytes.length : lineFeed;
    line += 1;
    const fault = { line, bytes: end - start, kind: lineFeed < 0 ? "torn" : "damaged" } as const;
    takeLine(content, bytes.toString("utf8", start, end).trim(), fault);
    start = end + 1;
  }
  return content;
}

/** What a person is told about a file that was not whole. */
export function faultWarnings(content: SessionContent): string[] {
  const warnings: string[] = [];
  const torn = content.faults.find((fault) => fault.kind === "torn");
  if (torn) warnings.push(`the last record was cut off and is dropped (${torn.bytes} bytes)`);
  const damaged = content.faults.filter((fault) => fault.kind === "damaged");
  if (damaged.length > 0) {
    const lines = damaged.slice(0, 5).map((fault) => fault.line);
    const more = damaged.length > 5 ? ", …" : "";
    warnings.push(
      `${damaged.length} damaged line(s) are skipped (line ${lines.join(", ")}${more})`,
    );
  }
  if (!content.header) warnings.push("the session's first line is lost; its folder is unknown");
  const version = content.header?.version ?? SESSION_VERSION;
  if (version > SESSION_VERSION) {
    warnings.push(`the session has format version ${version}; parts of it may not be understood`);
  }
  return warnings;
}

const LINE_FEED = 0x0a;

function takeLine(content: SessionContent, text: string, fault: SessionFault): void {
  if (text === "") return;
  const record = readRecord(text, fault.line);
  if (!record) content.faults.push(fault);
  for (const found of record ? [record] : salvageRecords(text, fault.line)) {
    if (found.type === "session") content.header ??= found;
    else content.entries.push(found);
  }
}

/**
 * Appends records to one file that was opened with O_APPEND. Each record is one write of whole
 * lines, so a crash of the program leaves complete records. There is no fsync per record, since
 * that would cost each turn a disk round trip to survive only a power cut; {@link close} syncs.
 */
export class SessionWriter {
  #fd: number | undefined;
  /** What a failed write left to be written, in order. */
  #pending: string[] = [];
  /** The file ends inside a line; the next write begins with a line break. */
  #midLine: boolean;

  private constructor(fd: number, midLine: boolean) {
    this.#fd = fd;
    this.#midLine = midLine;
  }

  /** Makes a new file, mode 0600, that starts with `header`. Throws the system's error, EEXIST among them. */
  static create(path: string, header: SessionHeader): SessionWriter {
    const writer = new SessionWriter(openSync(path, "ax", 0o600), false);
    const failure = writer.append(header);
    if (failure) {
      writer.close();
      throw failure;
    }
    return writer;
  }

  /** Opens an existing file. Throws the system's error. */
  static open(path: string, endsOnFreshLine: boolean): SessionWriter {
    return new SessionWriter(openSync(path, "a", 0o600), !endsOnFreshLine);
  }

  /** Writes one record. A failure (disk full) is returned; the record is written by the next call that succeeds. */
  append(record: SessionHeader | SessionEntry): Error | undefined {
    this.#pending.push(encodeRecord(record));
    return this.#flush();
  }

  /** Tries once more what is left to write, syncs and closes the file; harmless when repeated. */
  close(): void {
    if (this.#fd === undefined) return;
    const failure = this.#flush();
    if (failure) debug("session-file", "records are lost", failure);
    try {
      fsyncSync(this.#fd);
    } catch (error) {
      debug("session-file", "cannot sync", error);
    }
    closeSync(this.#fd);
    this.#fd = undefined;
  }

  #flush(): Error | undefined {
    try {
      while (this.#pending.length > 0) {
        this.#write(this.#pending[0] as string);
        this.#pending.shift();
      }
      return undefined;
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    }
  }

  #write(line: string): void {
    if (this.#fd === undefined) throw new Error("the session is closed");
    const bytes = Buffer.from(this.#midLine ? `\n${line}` : line);
    const written = writeSync(this.#fd, bytes);
    this.#midLine = written < bytes.length;
    if (this.#midLine) throw new Error("the disk took only a part of the record");
  }
}
