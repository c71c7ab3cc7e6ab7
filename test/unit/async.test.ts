/** Waiting that can be aborted. */

import { afterEach, describe, expect, jest, test } from "bun:test";
import {
  abortReason,
  defer,
  delay,
  raceWithAbort,
  Semaphore,
  throwIfAborted,
  TIMED_OUT,
  within,
} from "../../src/async.ts";
import { AbortedError } from "../../src/errors.ts";

afterEach(() => jest.useRealTimers());

/** A signal that counts its listeners. */
function countedSignal() {
  const abort = new AbortController();
  const { signal } = abort;
  let listeners = 0;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => ((listeners += 1), add(...args));
  signal.removeEventListener = (...args: Parameters<typeof remove>) => (
    (listeners -= 1),
    remove(...args)
  );
  return { abort, signal, listeners: () => listeners };
}

describe("the reason of an abort", () => {
  test("is the signal's own error of ours, else one that has the reason as its cause", () => {
    const ours = new AbortedError("timeout");
    expect(abortReason(AbortSignal.abort(ours))).toBe(ours);
    const foreign = abortReason(AbortSignal.abort("because"));
    expect(foreign).toBeInstanceOf(AbortedError);
    expect(foreign.cause).toBe("because");
  });

  test("is thrown only when the signal has fired", () => {
    expect(() => throwIfAborted(undefined)).not.toThrow();
    expect(() => throwIfAborted(new AbortController().signal)).not.toThrow();
    expect(() => throwIfAborted(AbortSignal.abort(new AbortedError("user")))).toThrow("aborted");
  });
});

describe("raceWithAbort", () => {
  test("settles as the promise does, without a signal too, and leaves no listener", async () => {
    const { signal, listeners } = countedSignal();
    expect(await raceWithAbort(Promise.resolve(1), undefined)).toBe(1);
    expect(await raceWithAbort(Promise.resolve(2), signal)).toBe(2);
    await expect(raceWithAbort(Promise.reject(new Error("no")), signal)).rejects.toThrow("no");
    expect(listeners()).toBe(0);
  });

  test("rejects at once, without subscribing, when the signal has fired before", async () => {
    const { abort, signal, listeners } = countedSignal();
    abort.abort(new AbortedError("user"));
    let called = false;
    const race = raceWithAbort(defer().promise, signal, () => (called = true));
    await expect(race).rejects.toThrow("aborted");
    expect([called, listeners()]).toEqual([false, 0]);
  });

  test("runs onAbort synchronously when the signal fires, and then rejects", async () => {
    const { abort, signal, listeners } = countedSignal();
    const order: string[] = [];
    const race = raceWithAbort(defer().promise, signal, () => order.push("onAbort"));
    abort.abort(new AbortedError("user"));
    order.push("after");
    await expect(race).rejects.toThrow("aborted");
    expect(order).toEqual(["onAbort", "after"]);
    expect(listeners()).toBe(1);
  });
});

describe("delay", () => {
  test("waits, and ends early with the reason of an abort", async () => {
    jest.useFakeTimers();
    const waited = delay(1_000);
    jest.advanceTimersByTime(1_000);
    await waited;
    const { abort, signal, listeners } = countedSignal();
    const aborted = delay(1_000, signal);
    abort.abort(new AbortedError("user"));
    await expect(aborted).rejects.toThrow("aborted");
    await expect(delay(1, AbortSignal.abort())).rejects.toThrow("aborted");
    const kept = delay(1_000, countedSignal().signal);
    jest.advanceTimersByTime(1_000);
    await kept;
    expect(listeners()).toBe(1);
  });
});

describe("within", () => {
  test("settles as the promise does, or says that the time is over", async () => {
    expect(await within(Promise.resolve(1), 1_000)).toBe(1);
    await expect(within(Promise.reject(new Error("no")), 1_000)).rejects.toThrow("no");
    jest.useFakeTimers();
    const late = within(defer().promise, 1_000);
    jest.advanceTimersByTime(1_000);
    expect(await late).toBe(TIMED_OUT);
  });
});

test("a rejection that nobody awaits is not reported", async () => {
  const deferred = defer();
  deferred.reject(new Error("unheard"));
  deferred.resolve(undefined);
  await new Promise((resolve) => setImmediate(resolve));
  await expect(deferred.promise).rejects.toThrow("unheard");
});

describe("a semaphore", () => {
  test("lets so many work at once, and serves those who wait in order", async () => {
    const semaphore = new Semaphore(2);
    const order: string[] = [];
    const release = [await semaphore.acquire(), await semaphore.acquire()];
    expect(semaphore.available).toBe(false);
    const waiting = ["a", "b"].map(async (name) => {
      const done = await semaphore.acquire();
      order.push(name);
      done();
    });
    release[0]?.();
    release[0]?.();
    await Promise.all(waiting);
    expect(order).toEqual(["a", "b"]);
    release[1]?.();
    expect(semaphore.available).toBe(true);
  });

  test("loses no permit to somebody who stops waiting", async () => {
    const semaphore = new Semaphore(1);
    const release = await semaphore.acquire();
    const abort = new AbortController();
    const given = semaphore.acquire(abort.signal);
    abort.abort();
    await expect(given).rejects.toThrow("aborted");
    await expect(semaphore.acquire(AbortSignal.abort())).rejects.toThrow("aborted");
    release();
    expect(semaphore.available).toBe(true);
  });

  test.each([0, -1, 0.5])("of %d permits has one", async (permits) => {
    const semaphore = new Semaphore(permits);
    await semaphore.acquire();
    expect(semaphore.available).toBe(false);
  });
});
