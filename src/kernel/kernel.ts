/**
 * A live kernel: its process (none for one that somebody else started), its
 * connection, the queue of cells, and how it ends. One object is one kernel
 * for good; a restart makes a new one.
 */

import contract from "../../kernel/rlm/contract.json";
import { defer, delay, raceWithAbort, TIMED_OUT, within } from "../async.ts";
import { KernelClient } from "../jupyter/channels.ts";
import type { ConnectionInfo } from "../jupyter/connection-file.ts";
import type { JupyterMessage } from "../jupyter/message.ts";
import { debug } from "../log.ts";
import { endProcess } from "./ending.ts";
import {
  KernelCallError,
  KernelConnectionLostError,
  KernelDiedError,
  KernelDisposedError,
} from "./errors.ts";
import type { ExecutionOutcome } from "./execution.ts";
import { HostBridge, type HostHandlers } from "./host-bridge.ts";
import { OutputPump, type LateOutput } from "./output-pump.ts";
import { endSessions, recordedSessions } from "./process-table.ts";
import type { KernelProcess } from "./process.ts";
import { ExecutionQueue, type ExecuteOptions, type QueueTimes } from "./queue.ts";
import { removeRuntimeDir } from "./runtime-dir.ts";

const INTERRUPT_REPLY_WAIT_MS = 1_000;
const END_CHILDREN_WAIT_MS = 5_000;
/** For the exit to be seen, and what the kernel left to be gone; a process stuck in the system is not waited for. */
const CLEAN_UP_WAIT_MS = 3_000;
/** After a channel is lost, how long the kernel may take to turn out to have died. */
const EXIT_AFTER_LOSS_MS = 1_000;
/** After a death, how long output that is still in the sockets is waited for. */
const DRAIN_MS = 100;

/** What a kernel is made of. */
export interface KernelParts {
  connection: ConnectionInfo;
  /** The process; absent for a kernel that somebody else started, which is never ended by us. */
  process?: KernelProcess;
  /** The private folder, removed when the kernel has ended. */
  dir?: string;
  handlers: HostHandlers;
  onLateReceipt?(receipt: unknown): void;
  signal?: AbortSignal;
  /** How long its sockets may take to be there; default as long as the whole start. */
  connectTimeoutMs?: number;
  /** Waits of the queue that differ from the usual. */
  times?: Partial<QueueTimes>;
}

/** See the head of this file. */
export class Kernel {
  readonly #process: KernelProcess | undefined;
  readonly #dir: string | undefined;
  readonly #queue: ExecutionQueue;
  readonly #pump: OutputPump;
  readonly #bridge: HostBridge;
  readonly #client: KernelClient;
  readonly #gone = defer<Error>();
  readonly #cleaned = defer<void>();
  #goneReason: Error | undefined;
  #ending = false;

  /** Connects to a kernel whose sockets are bound, and resolves when its output is proved to arrive. */
  static async connect(parts: KernelParts): Promise<Kernel> {
    let kernel: Kernel | undefined;
    let lost: { channel: string; error: Error } | undefined;
    const client = await KernelClient.connect(
      parts.connection,
      {
        onIopub: (message) => kernel?.onIopub(message),
        onLost: (channel, error) => {
          if (kernel) void kernel.onLost(channel, error);
          else lost = { channel, error };
        },
        onDropped: (error) => debug("kernel", "dropped a message", error),
      },
      {
        ...(parts.signal && { signal: parts.signal }),
        ...(parts.connectTimeoutMs !== undefined && { connectTimeoutMs: parts.connectTimeoutMs }),
      },
    );
    kernel = new Kernel(client, parts);
    if (lost) void kernel.onLost(lost.channel, lost.error);
    return kernel;
  }

  private constructor(client: KernelClient, parts: KernelParts) {
    this.#client = client;
    this.#process = parts.process;
    this.#dir = parts.dir;
    this.#bridge = new HostBridge(client, parts.handlers);
    const host = {
      client,
      interrupt: (cellId: string) => this.#interrupt(cellId),
      endChildren: (cellId: string) => this.#endChildren(cellId),
    };
    this.#queue = new ExecutionQueue(host, parts.times);
    this.#pump = new OutputPump({
      toActive: (parentId, message) => this.#queue.onIopub(parentId, message),
      isOurs: (parentId) => parentId.startsWith(client.session),
      // What the cells of somebody else's kernel ask is for its own host to answer.
      onComm: (message) => this.isOwn && this.#bridge.onComm(message),
      onLateReceipt: (receipt) => parts.onLateReceipt?.(receipt),
    });
    void parts.process?.exited.then((exit) => this.#onExit(exit));
  }

  /** Resolves with the reason when the kernel is gone, however that came about. */
  get gone(): Promise<Error> {
    return this.#gone.promise;
  }

  /** The reason, once the kernel is gone. */
  get goneReason(): Error | undefined {
    return this.#goneReason;
  }

  /** The process id, where the process is ours. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  /** Whether the kernel is one that we launched, and so has our Python side. */
  get isOwn(): boolean {
    return this.#process !== undefined;
  }

  /** What the kernel said about itself. */
  get info(): KernelClient["kernelInfo"] {
    return this.#client.kernelInfo;
  }

  /** Whether a cell runs, or has not ended although its caller already has its result. */
  get busy(): boolean {
    return this.#queue.active !== undefined;
  }

  /** Resolves when the cell that keeps it busy now has ended. */
  get free(): Promise<void> {
    return this.#queue.free;
  }

  /** Output that came since the last result and belongs to no running cell. */
  takeLate(): LateOutput | undefined {
    return this.#pump.takeLate();
  }

  /** Runs one cell; see {@link ExecutionQueue.run}. */
  execute(code: string, options: ExecuteOptions): Promise<ExecutionOutcome> {
    if (this.#goneReason) return Promise.reject(this.#goneReason);
    return this.#queue.run(code, options);
  }

  /**
   * Calls a function of the kernel's own Python side (`kernel/rlm/calls.py`). On "shell" it runs between
   * cells, on "control" beside a running one.
   *
   * @throws KernelCallError when Python raised, or when there was no answer in `timeoutMs`.
   */
  async call(
    op: string,
    args: object,
    options: { channel?: "shell" | "control"; timeoutMs: number; signal?: AbortSignal },
  ): Promise<unknown> {
    if (this.#goneReason) throw this.#goneReason;
    const request = this.#client.request(options.channel ?? "shell", contract.call.request, {
      op,
      args,
    });
    try {
      const reply = await within(raceWithAbort(request.reply, options.signal), options.timeoutMs);
      if (reply === TIMED_OUT)
        throw new KernelCallError(op, "TimeoutError", `no answer in ${options.timeoutMs} ms`);
      const content = reply.content as Record<string, unknown>;
      if (content["status"] === "ok") return content["result"];
      throw new KernelCallError(op, String(content["ename"]), String(content["evalue"]));
    } finally {
      request.forget();
    }
  }

  /**
   * Ends the kernel in an orderly way within 5 s: a shutdown request, then SIGTERM, then SIGKILL to the
   * group. A kernel that somebody else started is only disconnected from.
   */
  async shutdown(): Promise<void> {
    if (!this.#process) {
      this.#end(new KernelDisposedError());
      return;
    }
    if (!this.#ending && !this.#goneReason) {
      this.#ending = true;
      const ask = () =>
        this.#client.request("control", "shutdown_request", { restart: false }).reply;
      await endProcess(this.#process, ask);
    }
    await within(this.#cleaned.promise, CLEAN_UP_WAIT_MS);
  }

  /** Ends the kernel now: SIGKILL to its group. */
  async kill(): Promise<void> {
    if (!this.#process) return this.shutdown();
    this.#ending = true;
    this.#process.signal("SIGKILL", "group");
    await within(this.#cleaned.promise, CLEAN_UP_WAIT_MS);
  }

  /** Takes an iopub message. */
  onIopub(message: JupyterMessage): void {
    this.#pump.onIopub(message);
  }

  /** Takes the news that a channel is lost: the kernel is dying, or can't be trusted any more. */
  async onLost(channel: string, error: Error): Promise<void> {
    if (!this.#process) {
      this.#end(new KernelConnectionLostError(channel, error));
      return;
    }
    // A dying kernel closes its sockets before its parent can see that it has exited.
    if ((await within(this.#process.exited, EXIT_AFTER_LOSS_MS)) !== TIMED_OUT) return;
    if (this.#ending) return;
    this.#end(new KernelConnectionLostError(channel, error));
    this.#process.signal("SIGKILL", "group");
  }

  async #onExit(exit: { code: number | null; signal: string | null }): Promise<void> {
    if (!this.#ending) await delay(DRAIN_MS);
    const stderrTail = this.#ending ? "" : await this.#process?.stderrTail();
    this.#end(
      this.#ending ? new KernelDisposedError() : new KernelDiedError(exit, stderrTail ?? ""),
    );
    try {
      await endSessions([
        ...(this.#process ? [this.#process.pid] : []),
        ...(this.#dir ? recordedSessions(this.#dir) : []),
      ]);
    } finally {
      if (this.#dir) removeRuntimeDir(this.#dir);
      this.#process?.release();
      this.#cleaned.resolve();
    }
  }

  #end(reason: Error): void {
    if (this.#goneReason) return;
    this.#goneReason = reason;
    this.#bridge.close();
    this.#queue.close(reason);
    this.#client.close();
    this.#gone.resolve(reason);
  }

  /**
   * Asks the kernel to interrupt a cell. Resolves when it has acknowledged: before that the interrupt is
   * on its way and could hit a later cell. Rejects when the connection is lost.
   */
  async #interrupt(cellId: string): Promise<void> {
    // Our own kernels thus also interrupt a cell that they have yet to begin; others ignore that.
    const metadata = this.isOwn ? { [contract.interrupt.cell]: cellId } : {};
    const { reply } = this.#client.request("control", "interrupt_request", {}, { metadata });
    // The control thread needs the interpreter lock, the signal does not.
    if ((await within(reply, INTERRUPT_REPLY_WAIT_MS)) === TIMED_OUT)
      this.#process?.signal("SIGINT", "process");
    await reply;
  }

  async #endChildren(cellId: string): Promise<void> {
    if (!this.isOwn) return;
    const options = { channel: "control", timeoutMs: END_CHILDREN_WAIT_MS } as const;
    await this.call("end_children", { cell: cellId }, options);
  }
}
