/**
 * One cell in flight: collects what the kernel says about it until the kernel
 * is done with it. Knows no sockets: the queue feeds it messages and events.
 *
 * A cell is over for the kernel when its `execute_reply` (shell) AND its idle
 * status (iopub) have arrived, in either order; it is over for the caller at
 * the same moment, or earlier when it was aborted and the grace ran out.
 */

import { defer } from "../async.ts";
import type { AbortCause } from "../errors.ts";
import type { JupyterMessage } from "../jupyter/message.ts";

/** A MIME bundle: media type to data (text as strings, JSON types as objects). */
export type MimeBundle = Record<string, unknown>;

/** One piece of output of a cell, in the order of its arrival. */
export type CellOutput =
  | { kind: "stream"; name: "stdout" | "stderr"; text: string }
  | { kind: "display"; data: MimeBundle; displayId?: string; update: boolean }
  | { kind: "result"; data: MimeBundle; displayId?: string }
  | { kind: "error"; error: CellError }
  | { kind: "clear"; wait: boolean };

/** A Python exception as the kernel reports it; `traceback` may hold terminal colours. */
export interface CellError {
  ename: string;
  evalue: string;
  traceback: string[];
}

/** How a cell ended. */
export interface ExecutionOutcome {
  status: "ok" | "error" | "aborted";
  /** Why it was aborted; only with status "aborted". */
  abortCause?: AbortCause;
  error?: CellError;
  executionCount?: number;
  /** What `?` and other pager magics wanted to show. */
  pages: MimeBundle[];
  /** Something odd about how it ended that the reader should know. */
  note?: string;
}

/** See the head of this file. */
export class Execution {
  /** What the caller waits for. Rejects with the error of a kernel that died or was lost. */
  readonly settled: Promise<ExecutionOutcome>;
  /** Resolves when the kernel is done with the cell, however that came about. */
  readonly finished: Promise<void>;
  msgId = "";
  #started = false;
  #reply: JupyterMessage | undefined;
  #idle = false;
  #error: CellError | undefined;
  /** A result that comes after an error: the cell ran to its end, only one of several representations failed. */
  #resultAfterError = false;
  #abortCause: AbortCause | undefined;
  #lastActivity = performance.now();
  readonly #settle = defer<ExecutionOutcome>();
  readonly #finish = defer<void>();
  readonly #onOutput: (output: CellOutput) => void;

  constructor(onOutput: (output: CellOutput) => void) {
    this.#onOutput = onOutput;
    this.settled = this.#settle.promise;
    this.finished = this.#finish.promise;
  }

  /** Whether the kernel has reported that it works on this cell. */
  get started(): boolean {
    return this.#started;
  }

  get replied(): boolean {
    return this.#reply !== undefined;
  }

  get idle(): boolean {
    return this.#idle;
  }

  get abortCause(): AbortCause | undefined {
    return this.#abortCause;
  }

  /** Milliseconds since the kernel last said something about this cell. */
  quietMs(): number {
    return performance.now() - this.#lastActivity;
  }

  /** Takes an iopub message whose parent is this cell. */
  onIopub(message: JupyterMessage): void {
    this.#lastActivity = performance.now();
    const content = message.content as Record<string, unknown>;
    if (message.header.msg_type === "status") {
      this.#started = true;
      if (content["execution_state"] === "idle") {
        this.#idle = true;
        this.#completeIfOver();
      }
      return;
    }
    const output = outputOf(message);
    if (!output) return;
    if (output.kind === "error") this.#error = output.error;
    if (output.kind === "result") this.#resultAfterError = this.#error !== undefined;
    this.#onOutput(output);
  }

  /** Takes the cell's `execute_reply`. */
  onReply(message: JupyterMessage): void {
    this.#lastActivity = performance.now();
    this.#reply = message;
    this.#completeIfOver();
  }

  /** Whether the kernel answered that it never ran the cell, although nobody aborted it. */
  get wasDropped(): boolean {
    const status = this.#reply?.content["status"];
    const dropped = status === "aborted" || status === "abort";
    return dropped && !this.#started && this.#abortCause === undefined;
  }

  /** Records that we abort the cell. The first cause stays the cause. */
  markAborted(cause: AbortCause): void {
    this.#abortCause ??= cause;
  }

  /** Gives the caller its result now, although the kernel is not done with the cell. */
  settleAborted(): void {
    this.#settle.resolve({ status: "aborted", abortCause: this.#abortCause ?? "user", pages: [] });
  }

  /** The kernel is done with the cell, but its idle status or its reply can't come any more. */
  completeWithout(missing: "idle" | "reply"): void {
    if (missing === "idle") this.#idle = true;
    else this.#reply ??= NO_REPLY;
    this.#completeIfOver();
  }

  /** The kernel is gone; the caller gets `error`. */
  fail(error: Error): void {
    this.#settle.reject(error);
    this.#finish.resolve();
  }

  #completeIfOver(): void {
    if (!this.#reply || !this.#idle) return;
    this.#settle.resolve(this.#outcome(this.#reply));
    this.#finish.resolve();
  }

  #outcome(reply: JupyterMessage): ExecutionOutcome {
    const content = reply.content as Record<string, unknown>;
    const base = {
      pages: pagesOf(content["payload"]),
      ...(typeof content["execution_count"] === "number" && {
        executionCount: content["execution_count"],
      }),
    };
    const failure = this.#error ?? errorOf(content);
    // Whoever interrupted a cell says so, whatever the reply says: shells report success on SIGINT.
    if (this.#abortCause) {
      return {
        ...base,
        status: "aborted",
        abortCause: this.#abortCause,
        ...(failure && { error: failure }),
      };
    }
    if (reply === NO_REPLY) {
      const note = "The kernel finished this cell without reporting how it ended.";
      return {
        ...base,
        status: "error",
        error: failure ?? { ename: "NoReply", evalue: note, traceback: [] },
        note,
      };
    }
    if (this.#resultAfterError) return { ...base, status: "ok" };
    if (content["status"] !== "ok")
      return { ...base, status: "error", error: failure ?? unnamedError(content) };
    // A failing __repr__ is an error on iopub, but "ok" in the reply of older kernels.
    if (this.#error) return { ...base, status: "error", error: this.#error };
    return { ...base, status: "ok" };
  }
}

const NO_REPLY: JupyterMessage = {
  identities: [],
  header: { msg_id: "", session: "", username: "", msg_type: "execute_reply", version: "" },
  parent_header: {},
  metadata: {},
  content: {},
  buffers: [],
};

/** The output that an iopub message carries, or undefined when it carries none. Accepts any content. */
export function outputOf(message: JupyterMessage): CellOutput | undefined {
  const content = message.content as Record<string, unknown>;
  const transient = content["transient"] as { display_id?: unknown } | undefined;
  const displayId =
    typeof transient?.display_id === "string" ? { displayId: transient.display_id } : {};
  switch (message.header.msg_type) {
    case "stream":
      return {
        kind: "stream",
        name: content["name"] === "stderr" ? "stderr" : "stdout",
        text: String(content["text"] ?? ""),
      };
    case "display_data":
    case "update_display_data":
      return {
        kind: "display",
        data: bundleOf(content["data"]),
        ...displayId,
        update: message.header.msg_type === "update_display_data",
      };
    case "execute_result":
    case "pyout":
      return { kind: "result", data: bundleOf(content["data"]), ...displayId };
    case "error":
      return { kind: "error", error: errorOf(content) ?? unnamedError(content) };
    case "clear_output":
      return { kind: "clear", wait: content["wait"] === true };
    default:
      return undefined;
  }
}

function bundleOf(value: unknown): MimeBundle {
  return typeof value === "object" && value !== null ? (value as MimeBundle) : {};
}

function errorOf(content: Record<string, unknown>): CellError | undefined {
  if (typeof content["ename"] !== "string") return undefined;
  const traceback = Array.isArray(content["traceback"]) ? content["traceback"].map(String) : [];
  return { ename: content["ename"], evalue: String(content["evalue"] ?? ""), traceback };
}

/** Some kernels report a failure without saying which (xeus: aborted cells; tslab: "abort"). */
function unnamedError(content: Record<string, unknown>): CellError {
  return {
    ename: "KernelError",
    evalue: String(
      content["evalue"] ?? `the kernel reported status "${String(content["status"])}"`,
    ),
    traceback: [],
  };
}

function pagesOf(payload: unknown): MimeBundle[] {
  if (!Array.isArray(payload)) return [];
  return payload
    .filter((item) => item?.source === "page")
    .map((item) => bundleOf(item.data ?? { "text/plain": item.text }));
}
