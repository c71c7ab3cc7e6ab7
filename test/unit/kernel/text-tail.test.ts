/** The end of a stream, in bounded memory. */

import { describe, expect, test } from "bun:test";
import { drainInto, TextTail } from "../../../src/kernel/text-tail.ts";

describe("a tail of ten characters", () => {
  const LONG = "abcdefghijklmnopqrstuvwxyz";

  test("keeps the last ten, however the text is cut", () => {
    for (let at = 0; at <= LONG.length; at += 1) {
      const tail = new TextTail(10);
      tail.push(LONG.slice(0, at));
      tail.push(LONG.slice(at));
      expect(tail.text).toBe("qrstuvwxyz");
      expect(tail.pushed).toBe(26);
    }
    const tail = new TextTail(10);
    for (const unit of LONG) tail.push(unit);
    expect(tail.text).toBe("qrstuvwxyz");
  });

  test("keeps what is shorter, and nothing once it is cleared", () => {
    const tail = new TextTail(10);
    tail.push("abc");
    expect(tail.text).toBe("abc");
    tail.clear();
    expect([tail.text, tail.pushed]).toEqual(["", 0]);
  });
});

test("lines come without the last line break, and only so many", () => {
  const tail = new TextTail();
  tail.push("one\ntwo\nthree\n\n");
  expect(tail.lines(9)).toBe("one\ntwo\nthree");
  expect(tail.lines(2)).toBe("two\nthree");
});

test("a stream is drained to its end, also when it breaks and cuts a character", async () => {
  const bytes = new TextEncoder().encode("caf\u00e9");
  let sent = 0;
  const stream = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (sent < bytes.length) controller.enqueue(bytes.subarray(sent, (sent += 1)));
      else controller.error(new Error("broken pipe"));
    },
  });
  const tail = new TextTail();
  await drainInto(tail, stream);
  expect(tail.text).toBe("caf\u00e9");
});
