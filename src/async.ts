/** Small building blocks for asynchronous code; every wait here can be aborted. */

import { AbortedError } from "./errors.ts";

/** A promise together with the functions that settle it; settling twice is harmless. */
export interface Deferred<T> {
  readonly promise: Promise<T>;
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** Makes a {@link Deferred}. A rejection that nobody awaits is not reported as unhandled. */
export function defer<T>(): Deferred<T> {
  const { promise, resolve, reject } = Promise.withResolvers<T>();
  promise.catch(() => undefined);
  return { promise, resolve, reject };
}

/** The error that an aborted signal stands for: its reason if that is an error, else an {@link AbortedError}. */
export function abortReason(signal: AbortSignal): Error {
  return signal.reason instanceof AbortedError
    ? signal.reason
    : new AbortedError("user", "aborted", { cause: signal.reason });
}

/** Throws {@link abortReason} if the signal has fired. */
export function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted) throw abortReason(signal);
}

/**
 * Settles as `promise` does, or rejects with {@link abortReason} when `signal` fires first.
 *
 * An already aborted signal rejects at once without subscribing. `onAbort` runs
 * synchronously when the signal fires. Listeners are removed when either settles.
 */
export function raceWithAbort<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  onAbort?: () => void,
): Promise<T> {
  if (!signal) return promise;
  if (signal.aborted) {
    promise.catch(() => undefined);
    return Promise.reject(abortReason(signal));
  }
  return new Promise<T>((resolve, reject) => {
    const listener = () => {
      try {
        onAbort?.();
      } finally {
        reject(abortReason(signal));
      }
    };
    signal.addEventListener("abort", listener, { once: true });
    promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", listener));
  });
}

/** Waits `ms` milliseconds; rejects with {@link abortReason} when `signal` fires first. */
export function delay(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.reject(abortReason(signal));
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(abortReason(signal as AbortSignal));
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", onAbort);
      resolve();
    }, ms);
    signal?.addEventListener("abort", onAbort, { once: true });
  });
}

/** What {@link within} gives when the time is over. */
export const TIMED_OUT: unique symbol = Symbol("timed out");

/** Settles as `promise` does, or resolves with {@link TIMED_OUT} after `ms` milliseconds. Never cancels the work. */
export function within<T>(promise: Promise<T>, ms: number): Promise<T | typeof TIMED_OUT> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve(TIMED_OUT), ms);
    promise.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** Bounds how many holders work at once; waiters are served in order. */
export class Semaphore {
  #free: number;
  readonly #waiters: Array<() => void> = [];

  constructor(permits: number) {
    this.#free = Math.max(1, Math.floor(permits));
  }

  /** Whether a permit can be had without waiting. */
  get available(): boolean {
    return this.#free > 0;
  }

  /** Waits for a permit and resolves with the function that gives it back (idempotent). */
  async acquire(signal?: AbortSignal): Promise<() => void> {
    throwIfAborted(signal);
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      const turn = defer<void>();
      this.#waiters.push(turn.resolve);
      await raceWithAbort(turn.promise, signal, () => {
        const index = this.#waiters.indexOf(turn.resolve);
        if (index >= 0) this.#waiters.splice(index, 1);
        // The permit may have been handed over in the same tick as the abort.
        else this.#release();
      });
    }
    let released = false;
    return () => {
      if (released) return;
      released = true;
      this.#release();
    };
  }

  #release(): void {
    const next = this.#waiters.shift();
    if (next) next();
    else this.#free += 1;
  }
}
