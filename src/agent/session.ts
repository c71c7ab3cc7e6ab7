/**
 * One saved conversation: an append-only file (see session-entry.ts), the folder of its artifacts,
 * and the lock that keeps it to one process. The same class serves a run that is not saved.
 */

import { existsSync, mkdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { errorMessage, UsageError } from "../errors.ts";
import type { Message, Usage } from "../message.ts";
import { addUsage, emptyUsage } from "../message.ts";
import { SessionLockedError } from "./errors.ts";
import { activeBranch, contextItems, type ContextItem } from "./session-context.ts";
import {
  newEntryId,
  type EntryDraft,
  type SessionEntry,
  type SessionHeader,
} from "./session-entry.ts";
import { faultWarnings, readSessionFile, SessionWriter } from "./session-file.ts";
import {
  artifactsPath,
  isSafeId,
  lostHeader,
  newHeader,
  removeSessionFiles,
  sessionPath,
  type SessionCreateOptions,
} from "./session-header.ts";
import { lockSession, type SessionLock } from "./session-lock.ts";
import { lostResult, openCalls, repairTranscript } from "./session-repair.ts";

/** A session for appending and for reading the model's context. Owns a file handle and a lock: close it. */
export class Session {
  /** The session's first record. */
  readonly header: SessionHeader;
  /** The file, or `undefined` when nothing is saved. */
  readonly path: string | undefined;
  /**
   * What the person should be told once: what was damaged, and what could not be saved. The
   * session appends to it; the caller shows what is new.
   */
  readonly warnings: string[] = [];
  /** The id as a file name: the header's, or the file's name when that one is unusable. */
  readonly id: string;
  readonly #branch: SessionEntry[] = [];
  readonly #ids = new Set<string>();
  #context: { items: ContextItem[]; messages: Message[] } | undefined;
  #writer: SessionWriter | undefined;
  #lock: SessionLock | undefined;
  /** Whether this object made the file, so that it may remove it when nothing was said. */
  #isNew = false;

  private constructor(header: SessionHeader, path: string | undefined) {
    this.header = header;
    this.path = path;
    this.id = isSafeId(header.id) ? header.id : basename(path ?? "session", ".jsonl");
  }

  /**
   * Starts a session in `<home>/sessions/<id>.jsonl`. A folder that can't be written gives a
   * session in memory with a warning. Throws {@link UsageError} when the id is taken or unusable.
   */
  static create(options: SessionCreateOptions): Session {
    const header = newHeader(options);
    const path = sessionPath(options.home, header.id);
    const session = new Session(header, path);
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
      session.#lock = lockSession(path);
      session.#writer = SessionWriter.create(path, header);
      session.#isNew = true;
    } catch (error) {
      session.close();
      if (
        error instanceof SessionLockedError ||
        ((error as NodeJS.ErrnoException).code === "EEXIST" && existsSync(path))
      ) {
        throw new UsageError(`a session with the id ${header.id} exists already`, {
          hint: `Resume it with -r ${header.id}, or leave out --session-id.`,
          cause: error,
        });
      }
      return Session.#unsaved(header, options.name, error);
    }
    if (options.name) session.append({ type: "session_info", name: options.name });
    return session;
  }

  /**
   * Continues the session in the file at `path`, repaired. A file that can't be written is
   * continued in memory with a warning. Throws {@link SessionUnreadableError} and
   * {@link SessionLockedError}.
   */
  static open(path: string): Session {
    let lock: SessionLock | undefined;
    let lockFailure: unknown;
    try {
      lock = lockSession(path);
    } catch (error) {
      if (error instanceof SessionLockedError) throw error;
      lockFailure = error;
    }
    try {
      return Session.#load(path, lock, lockFailure);
    } catch (error) {
      lock?.release();
      throw error;
    }
  }

  /** Starts a session that is not saved anywhere. */
  static inMemory(options: Omit<SessionCreateOptions, "home">): Session {
    const session = new Session(newHeader(options), undefined);
    if (options.name) session.append({ type: "session_info", name: options.name });
    return session;
  }

  static #unsaved(header: SessionHeader, name: string | undefined, cause: unknown): Session {
    const session = new Session(header, undefined);
    session.warnings.push(`this session is not saved: ${errorMessage(cause)}`);
    if (name) session.append({ type: "session_info", name });
    return session;
  }

  static #load(path: string, lock: SessionLock | undefined, lockFailure: unknown): Session {
    const content = readSessionFile(path);
    const header = content.header ?? lostHeader(path, content);
    let failure = lockFailure;
    let writer: SessionWriter | undefined;
    if (lock) {
      try {
        writer = SessionWriter.open(path, content.endsOnFreshLine);
      } catch (error) {
        failure = error;
      }
    }
    const session = new Session(header, writer ? path : undefined);
    session.#lock = lock;
    session.#writer = writer;
    if (!writer) {
      session.warnings.push(`what follows is not saved to ${path}: ${errorMessage(failure)}`);
    }
    session.warnings.push(...faultWarnings(content));
    session.#take(content.entries);
    return session;
  }

  /** The working directory that the session was started in. */
  get cwd(): string {
    return this.header.cwd;
  }

  /** The latest name that was given, if any. */
  get name(): string | undefined {
    return this.#branch.findLast((entry) => entry.type === "session_info")?.name;
  }

  /** Sub-agent levels above this session, if the header says so in a usable way. */
  get depth(): number | undefined {
    const depth = this.header.rlmDepth;
    return Number.isSafeInteger(depth) && (depth as number) >= 0 ? depth : undefined;
  }

  /** The model that was chosen last, or else the one that answered last. */
  get model(): { provider: string; modelId: string } | undefined {
    for (const entry of this.#branch.toReversed()) {
      if (entry.type === "model_change")
        return { provider: entry.provider, modelId: entry.modelId };
      if (entry.type === "message" && entry.message.role === "assistant") {
        return { provider: entry.message.provider, modelId: entry.message.model };
      }
    }
    return undefined;
  }

  /** The effort level that was chosen last, if any. */
  get thinkingLevel(): string | undefined {
    return this.#branch.findLast((entry) => entry.type === "thinking_level_change")?.thinkingLevel;
  }

  /** The folder for what belongs to the session, made on first use; `undefined` when nothing is saved. */
  get artifactsDir(): string | undefined {
    if (this.path === undefined) return undefined;
    const folder = artifactsPath(this.path);
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 });
      return folder;
    } catch (error) {
      this.#warnOnce(`the session's files are not saved: ${errorMessage(error)}`);
      return undefined;
    }
  }

  /** The entries from the root to the active leaf, compacted ones included. */
  get entries(): readonly SessionEntry[] {
    return this.#branch;
  }

  /** The context that the next request carries, valid for every provider. Do not change it. */
  messages(): readonly Message[] {
    return this.#currentContext().messages;
  }

  /** The same context before repair, each message with its entry; for choosing a compaction's cut. */
  contextItems(): readonly ContextItem[] {
    return this.#currentContext().items;
  }

  /** Appends an entry below the active leaf and saves it. Never throws for the disk's sake: see {@link warnings}. */
  append(draft: EntryDraft): SessionEntry {
    const base = {
      id: newEntryId(this.#ids),
      parentId: this.#branch.at(-1)?.id ?? null,
      timestamp: new Date().toISOString(),
    };
    const { type, ...payload } = draft;
    const entry = { type, ...base, ...payload } as SessionEntry;
    this.#ids.add(entry.id);
    this.#branch.push(entry);
    this.#context = undefined;
    this.#save(entry);
    return entry;
  }

  /** Copies the history of another session, ids and all, into this empty one. */
  adopt(entries: readonly SessionEntry[]): void {
    for (const entry of entries) this.#save(entry);
    this.#take(entries);
  }

  /** Appends a message of the transcript; returns its entry's id. */
  appendMessage(message: Message): string {
    return this.append({ type: "message", message }).id;
  }

  /**
   * Charges what a sub-agent used to the assistant message in entry `targetId`, on top of what
   * was charged to it before.
   */
  attributeChildUsage(targetId: string, childUsage: Usage): void {
    const aggregateUsage = emptyUsage();
    for (const entry of this.#branch) {
      if (entry.type === "message" && entry.id === targetId) {
        if (entry.message.role === "assistant") addUsage(aggregateUsage, entry.message.usage);
      } else if (entry.type === "child_usage_attributed" && entry.targetId === targetId) {
        addUsage(aggregateUsage, entry.childUsage);
      }
    }
    addUsage(aggregateUsage, childUsage);
    this.append({ type: "child_usage_attributed", targetId, childUsage, aggregateUsage });
  }

  /**
   * Saves what is left to save and gives the file and the lock back; harmless when repeated. A new
   * session in which nothing was said is removed.
   */
  close(): void {
    this.#writer?.close();
    this.#writer = undefined;
    if (this.#isNew && this.path && !this.#branch.some((entry) => entry.type === "message")) {
      removeSessionFiles(this.path);
    }
    this.#isNew = false;
    this.#lock?.release();
    this.#lock = undefined;
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #currentContext(): { items: ContextItem[]; messages: Message[] } {
    if (!this.#context) {
      const items = contextItems(this.#branch);
      this.#context = { items, messages: repairTranscript(items.map((item) => item.message)) };
    }
    return this.#context;
  }

  /** Makes `entries`, which are saved already, the history, and answers calls that were lost. */
  #take(entries: readonly SessionEntry[]): void {
    for (const entry of entries) this.#ids.add(entry.id);
    for (const entry of activeBranch(entries)) this.#branch.push(entry);
    this.#context = undefined;
    const lost = openCalls(this.contextItems().map((item) => item.message));
    for (const call of lost) this.appendMessage(lostResult(call, Date.now()));
    if (lost.length > 0) {
      this.warnings.push(`${lost.length} tool call(s) never finished; the model is told so`);
    }
  }

  #save(record: SessionEntry): void {
    const failure = this.#writer?.append(record);
    if (failure) this.#warnOnce(`the session can't be saved at present: ${failure.message}`);
  }

  #warnOnce(warning: string): void {
    if (!this.warnings.includes(warning)) this.warnings.push(warning);
  }
}
