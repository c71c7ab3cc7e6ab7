/**
 * The execution queue: cells go to the kernel one at a time, and the next one
 * only when the kernel is done with the one before. This file also owns what
 * happens around a cell: interrupts, the nudges that wake a kernel, and the
 * fences that tell a lost message from a slow one.
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
import type { KernelClient, PendingRequest } from "../jupyter/channels.ts";
import { debug } from "../log.ts";
import { KernelBusyAfterInterruptError } from "./errors.ts";
import { Execution, type CellOutput, type ExecutionOutcome } from "./execution.ts";

/** How long a new cell waits for an interrupted one to end before the kernel counts as busy. */
export const KERNEL_BUSY_REUSE_WAIT_MS = 5_000;
/** How often that wait repeats the interrupt. */
export const KERNEL_BUSY_INTERRUPT_INTERVAL_MS = 500;
/** How long an aborted cell may take to end by itself before its call settles. */
export const ABORT_GRACE_MS = 1_000;
/** When the kernel's silence about a cell is tested with a fence. */
const FENCE_AFTER_MS = 300;
/** When a fence that got no answer counts as lost. */
const FENCE_TIMEOUT_MS = 5_000;
/** When a request that the kernel has not taken up is followed by one that wakes it (ipykernel #1529). */
const WAKE_AFTER_MS = 2_000;
const MAX_RESENDS = 5;

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
  /** Makes the kernel interrupt what it runs; resolves when it has acknowledged, or after a bounded wait. */
  interrupt(): Promise<void>;
  /** Ends the processes that the running cell started; called when an interrupt alone did not end the cell. */
  endChildren(): void;
}

/** See the head of this file. */
export class ExecutionQueue {
  readonly #host: QueueHost;
  readonly #turns = new Semaphore(1);
  readonly #fences = new Map<string, () => void>();
  #active: Execution | undefined;
  #interrupting: Promise<void> = Promise.resolve();
  #closed: Error | undefined;

  constructor(host: QueueHost) {
    this.#host = host;
  }

  /** The cell that the kernel works on, if any; it may be one whose caller already has its result. */
  get active(): Execution | undefined {
    return this.#active;
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
        const execution = new Execution(options.onOutput);
        const outcome = await this.#runOnce(execution, code, options);
        // "Aborted" without our doing means that the kernel threw the request away unread, as it does
        // right after an error or an interrupt: sending it again can't run it twice.
        if (!execution.wasDropped || attempt >= MAX_RESENDS) return outcome;
        debug("kernel", "a cell was dropped unread; sending it again");
      }
    } finally {
      release();
    }
  }

  /** Routes an iopub message to the active cell or a fence; false when it belongs to neither. */
  onIopub(parentId: string, message: Parameters<Execution["onIopub"]>[0]): boolean {
    const fence = this.#fences.get(parentId);
    if (fence) {
      if (message.header.msg_type === "status" && message.content["execution_state"] === "idle")
        fence();
      return true;
    }
    if (!this.#active || this.#active.msgId !== parentId) return false;
    this.#active.onIopub(message);
    return true;
  }

  /** The kernel is gone: the active cell and all that wait fail with `error`. */
  close(error: Error): void {
    this.#closed ??= error;
    this.#active?.fail(this.#closed);
    this.#active = undefined;
  }

  async #untilFree(signal: AbortSignal | undefined): Promise<void> {
    throwIfAborted(signal);
    // An interrupt that is still on its way must not hit the cell that comes next.
    await this.#interrupting;
    const deadline = performance.now() + KERNEL_BUSY_REUSE_WAIT_MS;
    while (this.#active) {
      const left = deadline - performance.now();
      if (left <= 0) throw new KernelBusyAfterInterruptError(KERNEL_BUSY_REUSE_WAIT_MS);
      const wait = Math.min(left, KERNEL_BUSY_INTERRUPT_INTERVAL_MS);
      const ended = await within(raceWithAbort(this.#active.finished, signal), wait);
      if (ended === TIMED_OUT && this.#active) await this.#interrupt(this.#active);
    }
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
      (error) => debug("kernel", "an execute_request will not be answered", error),
    );
    const watch = new AbortController();
    void execution.finished.then(() => {
      watch.abort();
      request.forget();
      if (this.#active === execution) this.#active = undefined;
    });
    void this.#watchSilence(execution, watch.signal);
    const stopWatchingAborts = this.#watchAborts(execution, options);
    try {
      return await execution.settled;
    } finally {
      stopWatchingAborts();
    }
  }

  /** Aborts the execution when the signal fires or its time is over. */
  #watchAborts(execution: Execution, options: ExecuteOptions): () => void {
    const abort = (cause: AbortCause) => {
      if (execution.abortCause) return;
      execution.markAborted(cause);
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
        : setTimeout(() => abort("timeout"), options.timeoutMs);
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
    void this.#interrupt(execution);
    const half = ABORT_GRACE_MS / 2;
    if ((await within(done, half)) !== TIMED_OUT) return;
    // A process that ignores the interrupt keeps the cell waiting for it.
    this.#host.endChildren();
    if ((await within(done, half)) === TIMED_OUT) execution.settleAborted();
  }

  /** Interrupts the kernel, then wakes its shell: a parked `await` only notices when its loop turns. */
  #interrupt(execution: Execution): Promise<void> {
    const work = async () => {
      try {
        await this.#host.interrupt();
        if (execution === this.#active && !execution.replied) this.#nudge();
      } catch (error) {
        debug("kernel", "an interrupt was not acknowledged", error);
      }
    };
    this.#interrupting = this.#interrupting.then(work);
    return this.#interrupting;
  }

  /** Sends a harmless request on shell, whose only effect is that the kernel's loop turns. */
  #nudge(): void {
    const { request, idle } = this.#sendFence();
    void within(Promise.allSettled([request.reply, idle]), FENCE_TIMEOUT_MS).then(() =>
      this.#dropFence(request),
    );
  }

  /**
   * Watches a cell that the kernel should be done with. The shell answers in order and iopub publishes
   * in order, so a fence that has come back proves that what is still missing will never come.
   */
  async #watchSilence(execution: Execution, over: AbortSignal): Promise<void> {
    try {
      await delay(WAKE_AFTER_MS, over);
      if (!execution.started && !execution.replied) this.#nudge();
      for (;;) {
        const halfDone = execution.replied !== execution.idle;
        if (halfDone && execution.quietMs() >= FENCE_AFTER_MS) await this.#fence(execution, over);
        await delay(FENCE_AFTER_MS, over);
      }
    } catch (error) {
      if (!over.aborted) debug("kernel", "the watch over a cell failed", error);
    }
  }

  async #fence(execution: Execution, over: AbortSignal): Promise<void> {
    const { request, idle } = this.#sendFence();
    try {
      const missing = execution.replied ? "idle" : "reply";
      const proof = missing === "idle" ? idle : request.reply.then(() => undefined);
      const answered = await within(raceWithAbort(proof, over), FENCE_TIMEOUT_MS);
      // Some kernels publish no idle at all for what they drop; then silence has to do.
      const silent = answered === TIMED_OUT && execution.quietMs() >= FENCE_TIMEOUT_MS;
      if (answered !== TIMED_OUT || (missing === "idle" && silent))
        execution.completeWithout(missing);
    } catch (error) {
      if (!over.aborted) debug("kernel", "a fence was not answered", error);
    } finally {
      this.#dropFence(request);
    }
  }

  #sendFence(): { request: PendingRequest; idle: Promise<void> } {
    const request = this.#host.client.request("shell", "kernel_info_request", {});
    request.reply.catch(() => undefined);
    const idle = new Promise<void>((resolve) => this.#fences.set(request.msgId, resolve));
    return { request, idle };
  }

  #dropFence(request: PendingRequest): void {
    request.forget();
    // Its status messages may still be on their way; keep the id known, but bounded.
    if (this.#fences.size > 64) this.#fences.delete(this.#fences.keys().next().value as string);
  }
}
