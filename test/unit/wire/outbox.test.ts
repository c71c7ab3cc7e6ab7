import { expect, test } from "bun:test";
import { SendQueueFullError } from "../../../src/wire/errors.ts";
import { Outbox } from "../../../src/wire/outbox.ts";

function drain(outbox: Outbox): number[] {
  const sizes: number[] = [];
  for (let first = outbox.first; first; first = outbox.first) {
    sizes.push(first.length);
    outbox.shift();
  }
  return sizes;
}

test("messages come out in the order they went in, also many and interleaved", () => {
  const outbox = new Outbox(Number.MAX_SAFE_INTEGER);
  const taken: number[] = [];
  for (let size = 1; size <= 5000; size += 1) {
    outbox.push(new Uint8Array(size % 7));
    if (size % 3 === 0) {
      taken.push(outbox.first?.length ?? -1);
      outbox.shift();
    }
  }
  const expected = Array.from({ length: 5000 }, (_, index) => (index + 1) % 7);
  expect([...taken, ...drain(outbox)]).toEqual(expected);
  expect(outbox.bytes).toBe(0);
});

test("what does not fit is refused, and what is there stays", () => {
  const outbox = new Outbox(10);
  outbox.push(new Uint8Array(6));
  outbox.push(new Uint8Array(4));
  expect(() => outbox.push(new Uint8Array(1))).toThrow(SendQueueFullError);
  expect(outbox.bytes).toBe(10);
  expect(drain(outbox)).toEqual([6, 4]);
  outbox.push(new Uint8Array(10));
  outbox.clear();
  expect({ bytes: outbox.bytes, first: outbox.first }).toEqual({ bytes: 0, first: undefined });
});

test("removing from an empty queue changes nothing", () => {
  const outbox = new Outbox(10);
  outbox.shift();
  outbox.push(new Uint8Array(3));
  expect(drain(outbox)).toEqual([3]);
});
