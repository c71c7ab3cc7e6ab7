/**
 * One cell in flight: collects what the kernel says about it until the kernel
 * is done with it. Knows no sockets: the queue feeds it messages and events.
 *
 * A cell is over for the kernel when its `execute_reply` (shell) AND its idle
 * status (iopub) have arrived, in either order; it is over for the caller at
 * the same moment, or earlier when it was aborted and the grace ran out.
 */

import { defer, delay } from "../async.ts";
import type { AbortCause } from "../errors.ts";
import type { JupyterMessage } from "../jupyter/message.ts";
import {
  errorOf,
  outputOf,
  pagesOf,
  unnamedError,
  type CellError,
  type CellOutput,
  type MimeBundle,
} from "./cell-output.ts";

export type { CellError, CellOutput, MimeBundle } from "./cell-output.ts";

/** A kernel whose output trails behind its idle status is not listened to for ever. */
const MAX_LINGER_MS = 2_000;

/** How a cell ended. */
export interface ExecutionOutcome {
  status: "ok" | "error" | "aborted";
  /** Why it was aborted; only with status "aborted". */
  abortCause?: AbortCause;
  /** The cell's own time limit in milliseconds, when that aborted it. */
  timedOutMs?: number;
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
  /** Resolves at the first sign that the kernel has taken the cell up. */
  readonly begun: Promise<void>;
  /** Resolves when either the reply or the idle status is there: the other should follow at once. */
  readonly halfDone: Promise<void>;
  msgId = "";
  #ran = false;
  #reply: JupyterMessage | undefined;
  #idle = false;
  #isSettled = false;
  #error: CellError | undefined;
  /** What came after the error: a value is shown once the cell has run to its end, so what failed was only one of its representations. */
  #afterError: "nothing" | "display" | "result" = "nothing";
  #abortCause: AbortCause | undefined;
  #timedOutMs: number | undefined;
  #note: string | undefined;
  #lastActivity = performance.now();
  readonly #settle = defer<ExecutionOutcome>();
  readonly #finish = defer<void>();
  readonly #begin = defer<void>();
  readonly #half = defer<void>();
  readonly #onOutput: (output: CellOutput) => void;
  readonly #lingerMs: number;
  #isOver = false;

  /** `lingerMs`: how much silence after its end shows that a cell has nothing more to say. */
  constructor(onOutput: (output: CellOutput) => void, lingerMs = 0) {
    this.#onOutput = onOutput;
    this.#lingerMs = lingerMs;
    this.settled = this.#settle.promise;
    this.finished = this.#finish.promise;
    this.begun = this.#begin.promise;
    this.halfDone = this.#half.promise;
  }

  get replied(): boolean {
    return this.#reply !== undefined;
  }

  get abortCause(): AbortCause | undefined {
    return this.#abortCause;
  }

  /** Milliseconds since the kernel last said something about this cell. */
  quietMs(): number {
    return performance.now() - this.#lastActivity;
  }

  /** Takes an iopub message whose parent is this cell; false when it comes too late for the caller. */
  onIopub(message: JupyterMessage): boolean {
    this.#lastActivity = performance.now();
    this.#begin.resolve();
    if (message.header.msg_type === "status") {
      if (message.content["execution_state"] === "idle") {
        this.#idle = true;
        this.#advance();
      }
      return true;
    }
    this.#ran = true;
    // That the interrupt ended it at last is no news to whoever was told of the interrupt.
    if (this.#isSettled) return message.header.msg_type === "error";
    const output = outputOf(message);
    if (!output) return true;
    this.#noteError(output);
    this.#onOutput(output);
    return true;
  }

  /** Takes the cell's `execute_reply`. */
  onReply(message: JupyterMessage): void {
    this.#lastActivity = performance.now();
    this.#begin.resolve();
    this.#reply ??= message;
    this.#advance();
  }

  /** Whether the kernel answered that it never ran the cell, although nobody aborted it. */
  get wasDropped(): boolean {
    const status = this.#reply?.content["status"];
    const dropped = status === "aborted" || status === "abort";
    return dropped && !this.#ran && this.#abortCause === undefined;
  }

  /** Records that we abort the cell, and the limit when it is its own. The first cause stays the cause. */
  markAborted(cause: AbortCause, timedOutMs?: number): void {
    if (this.#abortCause) return;
    this.#abortCause = cause;
    this.#timedOutMs = timedOutMs;
  }

  /** Gives the caller its result now, although the kernel is not done with the cell. */
  settleAborted(): void {
    this.#resolveAborted("The cell has not ended yet; the next call waits for it.");
  }

  /**
   * The kernel is done with the cell, but its idle status or its reply can't come any more. `note` tells
   * about output that may be lost with the idle status of a cell that ran.
   */
  completeWithout(missing: "idle" | "reply", note?: string): void {
    if (missing === "reply") this.#reply ??= NO_REPLY;
    else if (this.#ran) this.#note = note;
    this.#idle = true;
    this.#advance();
  }

  /** The kernel is gone, or never got the cell; the caller gets `error`, unless we aborted the cell before. */
  fail(error: Error): void {
    if (this.#abortCause) this.#resolveAborted(error.message);
    this.#isSettled = true;
    this.#settle.reject(error);
    this.#finish.resolve();
  }

  #noteError(output: CellOutput): void {
    if (output.kind === "error") {
      this.#error = output.error;
      this.#afterError = "nothing";
    } else if (this.#error && (output.kind === "result" || output.kind === "display")) {
      this.#afterError = output.kind;
    }
  }

  #advance(): void {
    this.#half.resolve();
    if (!this.#reply || !this.#idle || this.#isOver) return;
    this.#isOver = true;
    if (this.#lingerMs > 0) void this.#linger(this.#reply);
    else this.#complete(this.#reply);
  }

  async #linger(reply: JupyterMessage): Promise<void> {
    const deadline = performance.now() + MAX_LINGER_MS;
    while (this.quietMs() < this.#lingerMs && performance.now() < deadline)
      await delay(this.#lingerMs - this.quietMs());
    this.#complete(reply);
  }

  #complete(reply: JupyterMessage): void {
    this.#resolve(this.#outcome(reply));
    this.#finish.resolve();
  }

  #resolveAborted(note: string): void {
    this.#resolve({ ...this.#aborted(), pages: [], note });
  }

  #aborted() {
    return {
      status: "aborted" as const,
      abortCause: this.#abortCause ?? "user",
      ...(this.#timedOutMs !== undefined && { timedOutMs: this.#timedOutMs }),
    };
  }

  #resolve(outcome: ExecutionOutcome): void {
    this.#isSettled = true;
    this.#settle.resolve(outcome);
  }

  #outcome(reply: JupyterMessage): ExecutionOutcome {
    const content = reply.content as Record<string, unknown>;
    const base = {
      pages: pagesOf(content["payload"]),
      ...(typeof content["execution_count"] === "number" && {
        executionCount: content["execution_count"],
      }),
      ...(this.#note !== undefined && { note: this.#note }),
    };
    const failure = this.#error ?? errorOf(content);
    // Whoever interrupted a cell says so, whatever the reply says: shells report success on SIGINT.
    if (this.#abortCause) {
      const error = failure && { error: failure };
      return { ...base, ...this.#aborted(), ...error };
    }
    if (reply === NO_REPLY) {
      const evalue = "The kernel finished this cell without reporting how it ended.";
      return {
        ...base,
        status: "error",
        error: failure ?? { ename: "NoReply", evalue, traceback: [] },
      };
    }
    if (this.#afterError === "result") return { ...base, status: "ok" };
    if (content["status"] !== "ok")
      return { ...base, status: "error", error: failure ?? unnamedError(content) };
    // A failing __repr__ is an error on iopub, but "ok" in the reply of older kernels.
    if (this.#error && this.#afterError === "nothing")
      return { ...base, status: "error", error: this.#error };
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
