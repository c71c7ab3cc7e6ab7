/** What aborts a run: the first cause counts, and the time is one of them. */

import { afterEach, expect, jest, test } from "bun:test";
import { Interruption } from "../../../src/cli/signals.ts";
import { AbortedError } from "../../../src/errors.ts";

afterEach(() => jest.useRealTimers());

test("the first cause counts, and later ones relabel nothing", () => {
  const interruption = new Interruption();
  expect([interruption.signal.aborted, interruption.exitCode]).toEqual([false, undefined]);
  interruption.abort("timeout", 124);
  interruption.abort("user", 130);
  expect(interruption.exitCode).toBe(124);
  expect((interruption.signal.reason as AbortedError).abortCause).toBe("timeout");
});

test("the time limit aborts when it is over, unless the run ended before", () => {
  jest.useFakeTimers();
  const late = new Interruption();
  const early = new Interruption();
  for (const interruption of [late, early]) interruption.startTimeout(1_000);
  jest.advanceTimersByTime(999);
  early.stop();
  expect(late.signal.aborted).toBe(false);
  jest.advanceTimersByTime(1);
  expect([late.exitCode, early.exitCode]).toEqual([124, undefined]);
});
