/**
 * When a kernel's namespace is saved and revived. The work itself is done in
 * Python (`kernel/rlm/snapshot.py`), in a forked child of the kernel, so that
 * no cell waits for it.
 */

import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import contract from "../../kernel/rlm/contract.json";
import { TIMED_OUT, within } from "../async.ts";
import { debug } from "../log.ts";
import type { Kernel } from "./kernel.ts";

/** The file that holds the saved values, beside `kernel-state.json`. */
export const SNAPSHOT_FILE = "kernel-state.dill";
const MANIFEST_FILE = "kernel-state.json";

/** How long after a cell the namespace is saved, so that quick cells share one snapshot. */
const DEBOUNCE_MS = 400;
const CALL_TIMEOUT_MS = 10_000;
/** How long leaving waits for the last snapshot to be on disk. */
const FLUSH_TIMEOUT_MS = 10_000;
const RESTORE_TIMEOUT_MS = 120_000;
/** A saver keeps to `snapshot_seconds` itself; whoever waits for it allows a little more. */
const SAVER_GRACE_MS = 20_000;

/** A name that was not saved or not revived, and why. */
export interface NameProblem {
  name: string;
  reason: string;
}

/** What came back of an earlier namespace. */
export interface RestoreReport {
  restored: string[];
  failed: NameProblem[];
}

/** One name of the user's namespace, with a short description of its value. */
export interface NamespaceName {
  name: string;
  description: string;
}

/** What pruning removed. */
export interface PruneReport {
  pruned: string[];
}

/** Saves one kernel's namespace after its cells; see the head of this file. */
export class SnapshotScheduler {
  readonly #kernel: Kernel;
  readonly #dir: string;
  readonly #debounceMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dirty = false;
  /** The time came while a cell ran: the next moment between two cells is taken. */
  #overdue = false;
  #enabled = true;

  constructor(kernel: Kernel, dir: string, debounceMs = DEBOUNCE_MS) {
    this.#kernel = kernel;
    this.#dir = dir;
    this.#debounceMs = debounceMs;
  }

  /** A cell has ended; after a successful one a snapshot is due. */
  onCellEnded(ok: boolean): void {
    if (!ok || !this.#enabled) return;
    this.#dirty = true;
    if (this.#overdue) void this.#save();
    else this.#schedule();
  }

  /** Saves what is due now and waits, bounded, until it is on disk. */
  async flush(): Promise<void> {
    this.#unschedule();
    if ((await within(this.#flush(), FLUSH_TIMEOUT_MS)) === TIMED_OUT)
      debug("snapshot", `the last snapshot took more than ${FLUSH_TIMEOUT_MS} ms`);
  }

  /** No more snapshots: the kernel is about to be thrown away. */
  stop(): void {
    this.#unschedule();
    this.#enabled = false;
  }

  /** Persists, then removes oversized variables from the namespace; undefined when that was not possible. */
  async prune(): Promise<PruneReport | undefined> {
    this.#unschedule();
    if (!this.#canSave) return undefined;
    this.#dirty = false;
    const timeoutMs = contract.limits.snapshot_seconds * 1000 * 2 + SAVER_GRACE_MS;
    return (await this.#call("prune", this.#args(), { timeoutMs })) as PruneReport | undefined;
  }

  /** Whether the kernel can be asked now; after a cell that still runs the next snapshot is due anyway. */
  get #canSave(): boolean {
    return this.#enabled && !this.#kernel.goneReason && !this.#kernel.busy;
  }

  /** From the first cell of several on, so that cells that never pause are saved too. */
  #schedule(): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#overdue = this.#kernel.busy;
      void this.#save();
    }, this.#debounceMs);
  }

  #unschedule(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#overdue = false;
  }

  async #flush(): Promise<void> {
    if (!this.#canSave) return;
    // A snapshot that is being written may be older than the last cell.
    await this.#wait();
    if (this.#dirty && (await this.#save())) await this.#wait();
  }

  /** Begins a snapshot; false when that was not possible now. */
  async #save(): Promise<boolean> {
    if (!this.#canSave) return false;
    this.#dirty = false;
    this.#overdue = false;
    const answer = await this.#call("snapshot", this.#args(), { timeoutMs: CALL_TIMEOUT_MS });
    const { started, pid } = (answer ?? {}) as { started?: boolean; pid?: number };
    if (started || pid === undefined) return started === true;
    // The one before is still being written: what this one was for is due when that is done.
    this.#dirty = true;
    void this.#wait().then(() => {
      if (this.#dirty && this.#enabled) this.#schedule();
    });
    return false;
  }

  /** Until no snapshot is being written. On control, where it keeps nobody waiting. */
  async #wait(): Promise<void> {
    const seconds = contract.limits.snapshot_seconds;
    const timeoutMs = seconds * 1000 + SAVER_GRACE_MS;
    await this.#call("snapshot_wait", { seconds }, { timeoutMs, channel: "control" });
  }

  #args(): object {
    const { snapshot_variable_bytes, snapshot_total_bytes, snapshot_seconds } = contract.limits;
    return {
      dir: this.#dir,
      max_variable_bytes: snapshot_variable_bytes,
      max_total_bytes: snapshot_total_bytes,
      seconds: snapshot_seconds,
    };
  }

  async #call(
    op: string,
    args: object,
    options: { timeoutMs: number; channel?: "control" },
  ): Promise<unknown> {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      return await this.#kernel.call(op, args, options);
    } catch (error) {
      debug("snapshot", `"${op}" failed`, error);
      return undefined;
    }
  }
}

/**
 * Revives the namespace that is saved in `dir`, name by name; never throws. Undefined when nothing was
 * saved there, or when the kernel could not answer: the saved file is left alone then.
 */
export async function restoreNamespace(
  kernel: Kernel,
  dir: string,
): Promise<RestoreReport | undefined> {
  try {
    const report = (await kernel.call("restore", { dir }, { timeoutMs: RESTORE_TIMEOUT_MS })) as
      (Partial<RestoreReport> & { error?: string }) | null;
    if (!report) return undefined;
    const { restored = [], failed = [], error } = report;
    // A file that is damaged from its beginning names nothing that could be missing.
    if (error !== undefined && failed.length === 0)
      failed.push({ name: SNAPSHOT_FILE, reason: error });
    const told = new Set([...restored, ...failed.map(({ name }) => name)]);
    return {
      restored,
      failed: [...failed, ...readSkipped(dir).filter(({ name }) => !told.has(name))],
    };
  } catch (error) {
    debug("snapshot", "restoring failed", error);
    return undefined;
  }
}

/** The names that were there when the snapshot was written, but could not be saved. */
function readSkipped(dir: string): NameProblem[] {
  try {
    const manifest = JSON.parse(readFileSync(join(dir, MANIFEST_FILE), "utf8")) as {
      skipped?: NameProblem[];
    };
    return (manifest.skipped ?? []).filter(({ name, reason }) => name && reason);
  } catch (error) {
    debug("snapshot", "the manifest can't be read", error);
    return [];
  }
}

/** The user's names in the kernel's namespace; undefined when the kernel can't say. */
export async function listNamespaceNames(kernel: Kernel): Promise<NamespaceName[] | undefined> {
  if (kernel.goneReason || kernel.busy) return undefined;
  try {
    const result = (await kernel.call("list_names", {}, { timeoutMs: CALL_TIMEOUT_MS })) as {
      names?: NamespaceName[];
    };
    return result.names ?? [];
  } catch (error) {
    debug("snapshot", "listing names failed", error);
    return undefined;
  }
}
