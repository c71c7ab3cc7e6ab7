/**
 * The execution queue: cells go to the kernel one at a time, and the next one
 * only when the kernel is done with the one before and with the interrupts
 * that were meant for it.
 */

import {
  abortReason,
  delay,
  raceWithAbort,
  Semaphore,
  throwIfAborted,
  TIMED_OUT,
  within,
} from "../async.ts";
import { AbortedError, type AbortCause } from "../errors.ts";
import type { KernelClient } from "../jupyter/channels.ts";
import { ChannelClosedError, ChannelLostError } from "../jupyter/errors.ts";
import type { JupyterMessage } from "../jupyter/message.ts";
import { debug } from "../log.ts";
import { KernelBusyAfterInterruptError } from "./errors.ts";
import { Execution, type CellOutput, type ExecutionOutcome } from "./execution.ts";
import { Fences } from "./fences.ts";

/** How long a new cell waits for an interrupted one to end before the kernel counts as busy. */
export const KERNEL_BUSY_REUSE_WAIT_MS = 5_000;
/** How often that wait repeats the interrupt. */
export const KERNEL_BUSY_INTERRUPT_INTERVAL_MS = 500;

/** How long the queue waits for what; in milliseconds. */
export interface QueueTimes {
  /** See {@link KERNEL_BUSY_REUSE_WAIT_MS}. */
  reuseWait: number;
  /** See {@link KERNEL_BUSY_INTERRUPT_INTERVAL_MS}. */
  interruptInterval: number;
  /** How long an interrupt may go unacknowledged before the kernel's shell is woken all the same. */
  interruptPatience: number;
  /** How long an aborted cell may take to end by itself before its call settles. */
  abortGrace: number;
  /** How long the next cell waits for the acknowledgement of an interrupt once the interrupted cell is over. */
  acknowledgeWait: number;
  /** When the kernel's silence about a half-done cell is tested with a fence. */
  fenceAfter: number;
  /** When a fence that got no answer counts as lost. */
  fenceWait: number;
  /** How much silence after its end shows that a cell has nothing more to say. */
  linger: number;
  /** When a cell that the kernel has not taken up is followed by a request that wakes it (ipykernel #1529). */
  wakeAfter: number;
}

const TIMES: QueueTimes = {
  reuseWait: KERNEL_BUSY_REUSE_WAIT_MS,
  interruptInterval: KERNEL_BUSY_INTERRUPT_INTERVAL_MS,
  interruptPatience: 1_000,
  abortGrace: 1_000,
  acknowledgeWait: 2_000,
  fenceAfter: 300,
  fenceWait: 5_000,
  linger: 0,
  wakeAfter: 2_000,
};

/** A kernel that drops the same cell unread more often than this gets the blame. */
const MAX_RESENDS = 5;
const LOST_OUTPUT =
  "The kernel did not report the end of this cell's output; some of it may be missing.";

/** What a cell is run with. */
export interface ExecuteOptions {
  onOutput(output: CellOutput): void;
  /** Aborts the cell: it is interrupted, and the call settles as "aborted". */
  signal?: AbortSignal;
  /** Interrupts the cell after this many milliseconds; the outcome says "timeout". */
  timeoutMs?: number;
  /** Not counted and not kept in the kernel's history. */
  silent?: boolean;
}

/** What the queue needs of the kernel around it. */
export interface QueueHost {
  readonly client: KernelClient;
  /** Makes the kernel interrupt the cell of this id; resolves when it has acknowledged, so that no later cell can be hit. */
  interrupt(cellId: string): Promise<void>;
  /** Ends the processes that the cell of this id started; resolves when they are gone. */
  endChildren(cellId: string): Promise<void>;
}

/** See the head of this file. */
export class ExecutionQueue {
  readonly #host: QueueHost;
  readonly #times: QueueTimes;
  readonly #fences: Fences;
  readonly #turns = new Semaphore(1);
  /** Interrupts and clean-ups on their way; they must not reach the next cell. */
  readonly #aftermath = new Set<Promise<void>>();
  #active: Execution | undefined;
  #closed: Error | undefined;

  constructor(host: QueueHost, times: Partial<QueueTimes> = {}) {
    this.#host = host;
    this.#times = { ...TIMES, ...times };
    this.#fences = new Fences(host.client);
  }

  /** The cell that the kernel works on, if any; it may be one whose caller already has its result. */
  get active(): Execution | undefined {
    return this.#active;
  }

  /** Resolves when the kernel is done with the cell that it works on now, if any. */
  get free(): Promise<void> {
    return this.#active?.finished ?? Promise.resolve();
  }

  /**
   * Runs one cell.
   *
   * @throws AbortedError when `signal` fires before the cell was sent.
   * @throws KernelBusyAfterInterruptError when an earlier cell does not end; this cell was not sent.
   * @throws KernelDiedError | KernelConnectionLostError | KernelDisposedError when the kernel went away.
   */
  async run(code: string, options: ExecuteOptions): Promise<ExecutionOutcome> {
    const release = await this.#turns.acquire(options.signal);
    try {
      for (let attempt = 0; ; attempt += 1) {
        await this.#untilFree(options.signal);
        const execution = new Execution(options.onOutput, this.#times.linger);
        const outcome = await this.#runOnce(execution, code, options);
        // "Aborted" without our doing means that the kernel threw the request away unread, as some do
        // right after an error or an interrupt: sending it again can't run it twice.
        if (!execution.wasDropped || attempt >= MAX_RESENDS) return outcome;
        debug("kernel", "a cell was dropped unread; sending it again");
      }
    } finally {
      release();
    }
  }

  /** Routes an iopub message to the active cell or a fence; false when it is output that belongs to neither. */
  onIopub(parentId: string, message: JupyterMessage): boolean {
    if (this.#fences.onIopub(parentId, message)) return true;
    return this.#active?.msgId === parentId && this.#active.onIopub(message);
  }

  /** The kernel is gone: the active cell and all that wait fail with `error`. */
  close(error: Error): void {
    this.#closed ??= error;
    this.#active?.fail(this.#closed);
    this.#active = undefined;
  }

  async #untilFree(signal: AbortSignal | undefined): Promise<void> {
    throwIfAborted(signal);
    const { reuseWait, interruptInterval, acknowledgeWait } = this.#times;
    const deadline = performance.now() + reuseWait;
    while (this.#active) {
      const left = deadline - performance.now();
      if (left <= 0) throw new KernelBusyAfterInterruptError(reuseWait);
      const wait = Math.min(left, interruptInterval);
      const ended = await within(raceWithAbort(this.#active.finished, signal), wait);
      if (ended === TIMED_OUT && this.#active) this.#interrupt(this.#active);
    }
    // An interrupt that is still on its way must not hit the cell that comes next.
    const settled = Promise.all(this.#aftermath);
    if (this.#aftermath.size > 0) await within(raceWithAbort(settled, signal), acknowledgeWait);
    if (this.#closed) throw this.#closed;
    throwIfAborted(signal);
  }

  async #runOnce(
    execution: Execution,
    code: string,
    options: ExecuteOptions,
  ): Promise<ExecutionOutcome> {
    const request = this.#host.client.request("shell", "execute_request", {
      code,
      silent: options.silent ?? false,
      store_history: !(options.silent ?? false),
      user_expressions: {},
      allow_stdin: false,
      // Never let one failing cell abort a later one: they are sent one by one anyway.
      stop_on_error: false,
    });
    execution.msgId = request.msgId;
    this.#active = execution;
    request.reply.then(
      (reply) => execution.onReply(reply),
      (error) => this.#onUnanswerable(execution, error),
    );
    const watch = new AbortController();
    void execution.finished.then(() => {
      watch.abort();
      request.forget();
      if (this.#active === execution) this.#active = undefined;
      // Here, not after the call has settled: the next cell must find this to wait for.
      if (execution.abortCause) this.#endChildren(execution);
    });
    this.#watch(execution, watch.signal);
    const stopWatchingAborts = this.#watchAborts(execution, options);
    try {
      return await execution.settled;
    } finally {
      stopWatchingAborts();
    }
  }

  /** The request will get no reply: with a lost connection the kernel's owner knows more, else it was not sent. */
  #onUnanswerable(execution: Execution, error: unknown): void {
    debug("kernel", "an execute_request will not be answered", error);
    if (error instanceof ChannelLostError || error instanceof ChannelClosedError) return;
    execution.fail(error instanceof Error ? error : new Error(String(error)));
  }

  /** Aborts the execution when the signal fires or its time is over. */
  #watchAborts(execution: Execution, options: ExecuteOptions): () => void {
    const abort = (cause: AbortCause, timedOutMs?: number) => {
      if (execution.abortCause) return;
      execution.markAborted(cause, timedOutMs);
      void this.#abort(execution);
    };
    const onSignal = () => {
      const reason = abortReason(options.signal as AbortSignal);
      abort(reason instanceof AbortedError ? reason.abortCause : "user");
    };
    if (options.signal?.aborted) onSignal();
    options.signal?.addEventListener("abort", onSignal, { once: true });
    const timer =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => abort("timeout", options.timeoutMs), options.timeoutMs);
    return () => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", onSignal);
    };
  }

  async #abort(execution: Execution): Promise<void> {
    const done = execution.settled.then(
      () => undefined,
      () => undefined,
    );
    this.#interrupt(execution);
    const half = this.#times.abortGrace / 2;
    if ((await within(done, half)) === TIMED_OUT) {
      // A process that ignores the interrupt keeps the cell waiting for it.
      this.#endChildren(execution);
      if ((await within(done, half)) === TIMED_OUT) execution.settleAborted();
    }
  }

  /** Interrupts the kernel, then wakes its shell. */
  #interrupt(execution: Execution): void {
    const acknowledged = this.#follow(
      "an interrupt was not acknowledged",
      this.#host.interrupt(execution.msgId),
    );
    void within(acknowledged, this.#times.interruptPatience).then(() => {
      if (execution === this.#active && !execution.replied)
        this.#fences.nudge(this.#times.fenceWait);
    });
  }

  #endChildren(execution: Execution): void {
    if (this.#closed) return;
    this.#follow("could not end the cell's processes", this.#host.endChildren(execution.msgId));
  }

  /** Keeps the next cell waiting for `work`; the result never rejects. */
  #follow(failure: string, work: Promise<void>): Promise<void> {
    const settled = work
      .catch((error) => debug("kernel", failure, error))
      .finally(() => this.#aftermath.delete(settled));
    this.#aftermath.add(settled);
    return settled;
  }

  /** Wakes a kernel that does not take the cell up, and tells a lost message from a slow one. */
  #watch(execution: Execution, over: AbortSignal): void {
    const guard = (work: Promise<void>) =>
      work.catch((error) => {
        if (!over.aborted) debug("kernel", "the watch over a cell failed", error);
      });
    void guard(this.#wakeUntilBegun(execution, over));
    void guard(this.#completeHalfDone(execution, over));
  }

  async #wakeUntilBegun(execution: Execution, over: AbortSignal): Promise<void> {
    // By and by more seldom: the kernel may be busy with another client's long cell.
    for (let wait = this.#times.wakeAfter; ; wait *= 2) {
      const begun = raceWithAbort(execution.begun, over);
      if ((await within(begun, wait)) !== TIMED_OUT) return;
      this.#fences.nudge(this.#times.fenceWait);
    }
  }

  async #completeHalfDone(execution: Execution, over: AbortSignal): Promise<void> {
    await raceWithAbort(execution.halfDone, over);
    for (;;) {
      const silence = this.#times.fenceAfter - execution.quietMs();
      if (silence > 0) await delay(silence, over);
      else await this.#fence(execution, over);
    }
  }

  async #fence(execution: Execution, over: AbortSignal): Promise<void> {
    const fence = this.#fences.send();
    const missing = execution.replied ? "idle" : "reply";
    const { fenceWait } = this.#times;
    try {
      const proof = missing === "idle" ? fence.idle : fence.replied;
      const proved = (await within(raceWithAbort(proof, over), fenceWait)) !== TIMED_OUT;
      if (proved) execution.completeWithout(missing, LOST_OUTPUT);
      // Some kernels publish no idle at all for what they drop; then silence has to do.
      else if (missing === "idle" && execution.quietMs() >= fenceWait)
        execution.completeWithout(missing);
    } finally {
      fence.drop();
    }
  }
}
