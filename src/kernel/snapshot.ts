/**
 * When a kernel's namespace is saved and revived. The work itself is done in
 * Python (`kernel/rlm/snapshot.py`), in a forked child of the kernel, so that
 * no cell waits for it.
 */

import { mkdirSync } from "node:fs";
import contract from "../../kernel/rlm/contract.json";
import { debug } from "../log.ts";
import type { Kernel } from "./kernel.ts";

/** The file that holds the saved values, beside `kernel-state.json`. */
export const SNAPSHOT_FILE = "kernel-state.dill";

/** How long after a cell the namespace is saved, so that quick cells share one snapshot. */
const DEBOUNCE_MS = 400;
const CALL_TIMEOUT_MS = 10_000;
/** How long leaving waits for a snapshot that is being written. */
const FLUSH_TIMEOUT_MS = 10_000;
const RESTORE_TIMEOUT_MS = 120_000;

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
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dirty = false;
  #enabled = true;

  constructor(kernel: Kernel, dir: string) {
    this.#kernel = kernel;
    this.#dir = dir;
  }

  /** A cell has ended; after a successful one a snapshot is due. */
  onCellEnded(ok: boolean): void {
    if (!ok || !this.#enabled) return;
    this.#dirty = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#save(), DEBOUNCE_MS);
  }

  /** Saves what is due now and waits, bounded, until it is on disk. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer);
    if (!this.#enabled || this.#kernel.goneReason || this.#kernel.busy) return;
    if (this.#dirty) await this.#save();
    await this.#call(
      "snapshot_wait",
      { seconds: FLUSH_TIMEOUT_MS / 1000 },
      FLUSH_TIMEOUT_MS + CALL_TIMEOUT_MS,
    );
  }

  /** No more snapshots: the kernel is about to be thrown away, or its restore failed. */
  stop(): void {
    clearTimeout(this.#timer);
    this.#enabled = false;
  }

  /** Persists, then removes oversized variables from the namespace; undefined when that was not possible. */
  async prune(): Promise<PruneReport | undefined> {
    clearTimeout(this.#timer);
    if (this.#kernel.goneReason || this.#kernel.busy) return undefined;
    this.#dirty = false;
    return (await this.#call("prune", this.#args(), RESTORE_TIMEOUT_MS)) as PruneReport | undefined;
  }

  async #save(): Promise<void> {
    // A cell that runs now schedules the next snapshot itself when it ends.
    if (this.#kernel.goneReason || this.#kernel.busy) return;
    this.#dirty = false;
    await this.#call("snapshot", this.#args(), CALL_TIMEOUT_MS);
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

  async #call(op: string, args: object, timeoutMs: number): Promise<unknown> {
    try {
      mkdirSync(this.#dir, { recursive: true, mode: 0o700 });
      return await this.#kernel.call(op, args, { timeoutMs });
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
      Partial<RestoreReport> | undefined;
    if (!report) return undefined;
    return { restored: report.restored ?? [], failed: report.failed ?? [] };
  } catch (error) {
    debug("snapshot", "restoring failed", error);
    return undefined;
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
