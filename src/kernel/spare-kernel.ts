/**
 * One forked kernel in reserve: when a session makes kernels (for sub-agents,
 * after a restart), the next one of the same kind is there already. At most
 * one is kept; it ends with its template, and so with this process.
 */

import { debug } from "../log.ts";
import { discardKernel, type LaunchedKernel } from "./launched-kernel.ts";

/** How long after the last start the reserve is made, so that it takes nothing from starts that are wanted now. */
const MAKE_AFTER_MS = 100;

/** See the head of this file. */
export class SpareKernel {
  #spare: { key: string; kernel: LaunchedKernel } | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #making = false;
  #disposed = false;
  readonly #makeAfterMs: number;

  constructor(makeAfterMs = MAKE_AFTER_MS) {
    this.#makeAfterMs = makeAfterMs;
  }

  /** Whether there is a kernel in reserve. */
  get isReady(): boolean {
    return this.#spare !== undefined;
  }

  /** The kernel in reserve, if it is of this kind; it is the caller's from now on. */
  take(key: string): LaunchedKernel | undefined {
    if (this.#spare?.key !== key) return undefined;
    const { kernel } = this.#spare;
    this.#spare = undefined;
    return kernel;
  }

  /** Has a kernel of this kind made soon; one of another kind gives way to it. */
  order(key: string, make: () => Promise<LaunchedKernel>): void {
    if (this.#disposed || this.#spare?.key === key) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#make(key, make), this.#makeAfterMs);
    this.#timer.unref();
  }

  /** Ends the kernel in reserve; no other is made. */
  dispose(): void {
    this.#disposed = true;
    clearTimeout(this.#timer);
    this.#replace(undefined);
  }

  async #make(key: string, make: () => Promise<LaunchedKernel>): Promise<void> {
    if (this.#making) return;
    this.#making = true;
    try {
      const kernel = await make();
      // One that failed, or dies while it waits, is no reserve.
      void kernel.process.exited.then(() => this.#onExit(kernel));
      await kernel.process.ready;
      if (this.#disposed) discardKernel(kernel);
      else this.#replace({ key, kernel });
    } catch (error) {
      debug("fork-server", "no kernel in reserve", error);
    } finally {
      this.#making = false;
    }
  }

  #replace(next: { key: string; kernel: LaunchedKernel } | undefined): void {
    if (this.#spare) discardKernel(this.#spare.kernel);
    this.#spare = next;
  }

  #onExit(kernel: LaunchedKernel): void {
    if (this.#spare?.kernel === kernel) this.#replace(undefined);
  }
}
