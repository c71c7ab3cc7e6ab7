import { describe, expect, test } from "bun:test";
import {
  describeReset,
  isRetryableStatus,
  parseRetryAfter,
  retryDelayMs,
} from "../../../src/providers/retry.ts";

const NOW = Date.parse("2026-03-01T12:00:00Z");

test.each([
  [400, false],
  [401, false],
  [402, false],
  [403, false],
  [404, false],
  [408, true],
  [409, true],
  [410, false],
  [413, false],
  [422, false],
  [429, true],
  [499, false],
  [500, true],
  [502, true],
  [503, true],
  [504, true],
  [520, true],
  [529, true],
])("status %d is tried again: %p", (status, retried) => {
  expect(isRetryableStatus(status)).toBe(retried);
});

describe("the asked-for wait", () => {
  test.each<[string, Record<string, string>, number | undefined]>([
    ["seconds", { "retry-after": "2" }, 2_000],
    ["fractions of seconds", { "retry-after": "0.25" }, 250],
    ["zero", { "retry-after": "0" }, 0],
    ["a date", { "retry-after": "Sun, 01 Mar 2026 12:00:30 GMT" }, 30_000],
    ["a date that is over", { "retry-after": "Sun, 01 Mar 2026 11:00:00 GMT" }, 0],
    ["milliseconds", { "retry-after-ms": "1500" }, 1_500],
    ["milliseconds before seconds", { "retry-after-ms": "10", "retry-after": "2" }, 10],
    ["nonsense", { "retry-after": "soon" }, undefined],
    ["a negative number", { "retry-after-ms": "-5" }, undefined],
    ["nothing", {}, undefined],
  ])("as %s", (_, headers, expected) => {
    expect(parseRetryAfter(new Headers(headers), NOW)).toBe(expected);
  });

  test("is kept to the millisecond", () => {
    expect(retryDelayMs(1, 2_000, () => 0.5)).toBe(2_000);
    expect(retryDelayMs(3, 0)).toBe(0);
  });
});

test("without a wish, the wait doubles up to fifteen seconds", () => {
  const waits = [1, 2, 3, 4, 5, 6].map((attempt) => retryDelayMs(attempt, undefined, () => 0));
  expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000]);
});

test("up to a quarter of the wait is left to chance", () => {
  expect(retryDelayMs(2, undefined, () => 1)).toBe(1_500);
});

test.each([
  [61_000, "it asks to wait 61 s, until 2026-03-01T12:01:01Z"],
  [3_600_000, "it asks to wait 60 min, until 2026-03-01T13:00:00Z"],
  [86_400_000, "it asks to wait 24 h, until 2026-03-02T12:00:00Z"],
])("a wait of %d ms is described with its end", (wait, text) => {
  expect(describeReset(wait, NOW)).toBe(text);
});
