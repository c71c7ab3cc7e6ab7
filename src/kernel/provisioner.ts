/**
 * Gives the tool its kernel: started on first need, shared by all that wait
 * for it, started anew after it died, and told to the model what a restart
 * cost.
 */

import { defer, raceWithAbort, throwIfAborted } from "../async.ts";
import { AbortedError } from "../errors.ts";
import { debug } from "../log.ts";
import { bootKernel, type BootedKernel, type BootOptions } from "./boot.ts";
import { KernelDisposedError } from "./errors.ts";
import type { Kernel } from "./kernel.ts";
import type { LateOutput } from "./output-pump.ts";
import type { ReadyLine } from "./process.ts";
import { listNamespaceNames, SnapshotScheduler } from "./snapshot.ts";
import type { NamespaceName, PruneReport, RestoreReport } from "./snapshot.ts";

/** Told once for each kernel that became ready. */
export interface KernelReadyEvent {
  /** False for the first kernel of this provisioner. */
  restarted: boolean;
  bootMs: number;
  ready?: ReadyLine;
  restore?: RestoreReport;
  /** Why the kernel before this one is gone. */
  reason?: string;
}

/** Options of {@link IpythonKernelProvisioner}; see CONTRACT "Lazy start". */
export interface ProvisionerOptions {
  /** Makes a kernel; the default boots one of our own. `--existing` connects to somebody else's. */
  boot(report: (stage: string) => void, signal: AbortSignal): Promise<BootedKernel>;
  /** Awaited before the first kernel starts, so that the last snapshot is on disk before it is read. */
  readyGate?: Promise<void>;
  /** Where snapshots go; omit it and there are none. */
  snapshotDir?: string;
  /** Fires once per kernel start when names were restored or failed to. */
  onRestore?(report: RestoreReport): void;
  onReady?(event: KernelReadyEvent): void;
  /** Fires when a kernel is gone that nobody ended on purpose. */
  onLost?(reason: Error): void;
}

/** A notice for the model about a kernel that took another one's place. */
export interface ResetNotice {
  reason: string;
  /** It was connected to again, not started: a kernel that somebody else runs. */
  reconnected?: boolean;
  restored: string[];
  failed: Array<{ name: string; reason: string }>;
}

type Listener = (stage: string) => void;

interface Start {
  promise: Promise<Kernel>;
  abort: AbortController;
  stage: string;
  listeners: Set<Listener>;
  /** How many calls wait for it. */
  waiting: number;
}

/** See the head of this file. Concurrent callers share one start; a failed start is forgotten. */
export class IpythonKernelProvisioner {
  readonly #options: ProvisionerOptions;
  #start: Start | undefined;
  #kernel: Kernel | undefined;
  #snapshots: SnapshotScheduler | undefined;
  #lostReason: string | undefined;
  #lateOfLost: LateOutput | undefined;
  #notice: ResetNotice | undefined;
  #disposal: Promise<void> | undefined;

  constructor(options: ProvisionerOptions) {
    this.#options = options;
  }

  /** The live kernel, if there is one. */
  get kernel(): Kernel | undefined {
    return this.#kernel?.goneReason ? undefined : this.#kernel;
  }

  /**
   * The kernel, started if need be. A caller that is aborted leaves the start to the others; when nobody
   * waits for it any more, it ends.
   *
   * @throws KernelStartError, EnvironmentError and others that the boot throws; AbortedError.
   */
  async ensure(onProgress?: Listener, signal?: AbortSignal): Promise<Kernel> {
    throwIfAborted(signal);
    if (this.#disposal) throw new KernelDisposedError();
    const live = this.kernel;
    if (live) return live;
    const start = (this.#start ??= this.#begin());
    start.waiting += 1;
    if (onProgress) {
      start.listeners.add(onProgress);
      if (start.stage) onProgress(start.stage);
    }
    try {
      return await raceWithAbort(start.promise, signal);
    } finally {
      start.waiting -= 1;
      if (onProgress) start.listeners.delete(onProgress);
      if (signal?.aborted && start.waiting === 0 && this.#start === start) this.#overtakeStart();
    }
  }

  /** Starts the kernel in the background; a failure is left for the call that needs it. */
  prewarm(): void {
    this.ensure().catch((error) => debug("kernel", "prewarming failed", error));
  }

  /** Tells the snapshot schedule that a cell has ended. */
  onCellEnded(ok: boolean): void {
    this.#snapshots?.onCellEnded(ok);
  }

  /** What the model must be told about a restart, once. */
  takeNotice(): ResetNotice | undefined {
    const notice = this.#notice;
    this.#notice = undefined;
    return notice;
  }

  /** Late output since the last call, also of a kernel that is gone by now. */
  takeLate(): LateOutput | undefined {
    const lost = this.#lateOfLost;
    const late = this.kernel?.takeLate();
    this.#lateOfLost = undefined;
    if (!lost || !late) return lost ?? late;
    return { text: lost.text + late.text, droppedChars: lost.droppedChars + late.droppedChars };
  }

  /** The user's names in the live kernel; undefined when there is none or it is busy. */
  async listNamespaceNames(): Promise<NamespaceName[] | undefined> {
    return this.kernel ? listNamespaceNames(this.kernel) : undefined;
  }

  /** Saves, then removes oversized variables; undefined when there is no kernel or nothing could be saved. */
  async prune(): Promise<PruneReport | undefined> {
    return this.kernel ? this.#snapshots?.prune() : undefined;
  }

  /** Ends the kernel at once and lets the next call start a fresh one. `reason` goes into the notice. */
  async kill(reason: string): Promise<void> {
    const start = this.#overtakeStart();
    const kernel = this.#kernel;
    this.#kernel = undefined;
    if (kernel) this.#forget(kernel, reason);
    await kernel?.kill();
    await settled(start);
  }

  /** Flushes the snapshot and ends the kernel; settles a start in flight. No kernel starts afterwards. */
  dispose(): Promise<void> {
    return (this.#disposal ??= this.#dispose());
  }

  async #dispose(): Promise<void> {
    // The kernel is kept until it has ended, so that a `kill` meanwhile hastens that.
    await settled(this.#overtakeStart());
    await this.#snapshots?.flush();
    this.#snapshots?.stop();
    await this.#kernel?.shutdown();
    this.#kernel = undefined;
  }

  /** Aborts a start in flight; whoever calls from now on does not join it. */
  #overtakeStart(): Start | undefined {
    const start = this.#start;
    this.#start = undefined;
    start?.abort.abort(new AbortedError("shutdown"));
    return start;
  }

  #begin(): Start {
    const abort = new AbortController();
    const done = defer<Kernel>();
    const start: Start = {
      promise: done.promise,
      abort,
      stage: "",
      listeners: new Set(),
      waiting: 0,
    };
    const report = (stage: string) => {
      start.stage = stage;
      for (const listener of start.listeners) listener(stage);
    };
    this.#boot(report, abort.signal)
      .then(done.resolve, done.reject)
      .finally(() => {
        if (this.#start === start) this.#start = undefined;
      });
    return start;
  }

  async #boot(report: Listener, signal: AbortSignal): Promise<Kernel> {
    await raceWithAbort(this.#gate(), signal);
    const booted = await this.#options.boot(report, signal);
    if (signal.aborted) {
      // Overtaken at the last moment: this kernel is nobody's.
      await booted.kernel.kill();
      throw new KernelDisposedError();
    }
    this.#adopt(booted);
    return booted.kernel;
  }

  /** The last kernel's clean-up may fail, and its kernel with it; that must not cost the next one. */
  async #gate(): Promise<void> {
    await this.#options.readyGate?.catch((error) =>
      debug("kernel", "the ready gate failed", error),
    );
  }

  #adopt({ kernel, restore, ready, bootMs }: BootedKernel): void {
    const reason = this.#lostReason;
    this.#lostReason = undefined;
    this.#kernel = kernel;
    const { snapshotDir } = this.#options;
    this.#snapshots =
      snapshotDir && kernel.isOwn ? new SnapshotScheduler(kernel, snapshotDir) : undefined;
    if (reason !== undefined) {
      this.#notice = {
        reason,
        ...(!kernel.isOwn && { reconnected: true }),
        restored: restore?.restored ?? [],
        failed: restore?.failed ?? [],
      };
    }
    if (restore && restore.restored.length + restore.failed.length > 0)
      this.#options.onRestore?.(restore);
    void kernel.gone.then((error) => this.#onGone(kernel, error));
    this.#options.onReady?.({
      restarted: reason !== undefined,
      bootMs,
      ...(ready && { ready }),
      ...(restore && { restore }),
      ...(reason !== undefined && { reason }),
    });
  }

  #onGone(kernel: Kernel, error: Error): void {
    if (this.#kernel !== kernel || this.#disposal) return;
    this.#kernel = undefined;
    this.#forget(kernel, error.message);
    this.#options.onLost?.(error);
  }

  /** Keeps what the next result must tell about a kernel that is gone. */
  #forget(kernel: Kernel, reason: string): void {
    this.#snapshots?.stop();
    this.#lostReason = reason;
    this.#lateOfLost = kernel.takeLate();
  }
}

async function settled(start: Start | undefined): Promise<void> {
  await start?.promise.catch((error) => debug("kernel", "a start ended early", error));
}

/** The usual way to boot: a kernel of our own. */
export function bootOwnKernel(options: BootOptions): ProvisionerOptions["boot"] {
  return (report, signal) => bootKernel(options, report, signal);
}
