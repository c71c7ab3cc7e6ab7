import { describe, expect, test } from "bun:test";
import { SseOverflow, SseParser } from "../../../src/providers/sse.ts";
import type { SseEvent } from "../../../src/providers/sse.ts";

const encoder = new TextEncoder();

function message(data: string, event = "message"): SseEvent {
  return { event, data };
}

function parse(chunks: Iterable<Uint8Array>, limit?: number): SseEvent[] {
  const parser = new SseParser(limit);
  return [...chunks].flatMap((chunk) => parser.push(chunk));
}

/** Streams as WHATWG HTML 9.2.6 describes and shows them, and as providers send them. */
const STREAMS: ReadonlyArray<readonly [string, string, SseEvent[]]> = [
  ["one event", "data: a\n\n", [message("a")]],
  [
    "lines that end with CRLF",
    "event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n",
    [message("a", "x"), message("b")],
  ],
  ["lines that end with CR", "event: x\rdata: a\r\rdata: b\r\r", [message("a", "x"), message("b")]],
  ["mixed line ends", "data: a\r\ndata: b\rdata: c\n\n", [message("a\nb\nc")]],
  ["several data lines", "data: YHOO\ndata: +2\ndata: 10\n\n", [message("YHOO\n+2\n10")]],
  ["a byte order mark", "\uFEFFdata: a\n\n", [message("a")]],
  ["a second byte order mark, which is text", "\uFEFF\uFEFFdata: a\n\ndata: b\n\n", [message("b")]],
  ["comments", ": keep\n\n:\ndata: a\n: in between\ndata: b\n\n: after\n\n", [message("a\nb")]],
  ["a field without a space", "data:a\n\ndata:  b\n\n", [message("a"), message(" b")]],
  ["a field without a colon", "data\ndata\n\n", [message("\n")]],
  ["an empty data field, which is no event", "data\n\ndata:\n\n", []],
  ["unknown fields", "foo: 1\nid: 7\nretry: 10\ndata: a\nData: no\n\n", [message("a")]],
  ["an event name without data", "event: done\n\ndata: a\n\n", [message("a")]],
  ["an empty event name", "event:\ndata: a\n\n", [message("a")]],
  ["characters of two, three and four bytes", "data: é€😀\n\n", [message("é€😀")]],
  [
    "U+2028 and U+0085, which end no line",
    "data: a\u2028b\u0085c\n\n",
    [message("a\u2028b\u0085c")],
  ],
  ["colons and JSON in data", 'data: {"a": "b:c"}\n\n', [message('{"a": "b:c"}')]],
  ["an event that is cut off", "data: a\n\ndata: b\n", [message("a")]],
  ["many blank lines", "\n\n\r\n\rdata: a\n\n\n\n", [message("a")]],
];

describe("a stream with", () => {
  test.each(STREAMS)("%s gives its events", (_, text, events) => {
    expect(parse([encoder.encode(text)])).toEqual(events);
  });

  test.each(STREAMS)("%s gives the same when it is split at any byte", (_, text, events) => {
    const bytes = encoder.encode(text);
    for (let at = 0; at <= bytes.length; at += 1) {
      expect(parse([bytes.subarray(0, at), bytes.subarray(at)])).toEqual(events);
    }
    expect(parse(Array.from(bytes, (byte) => Uint8Array.of(byte)))).toEqual(events);
  });
});

test("bytes that are no UTF-8 become replacement characters", () => {
  const bytes = Uint8Array.from([...encoder.encode("data: caf"), 0xe9, ...encoder.encode("!\n\n")]);
  expect(parse([bytes])).toEqual([message("caf\uFFFD!")]);
});

test("a line of a megabyte in small pieces arrives whole", () => {
  const data = "é".repeat(500_000);
  const bytes = encoder.encode(`data: ${data}\n\n`);
  const chunks: Uint8Array[] = [];
  for (let start = 0; start < bytes.length; start += 1_371) {
    chunks.push(bytes.subarray(start, start + 1_371));
  }
  expect(parse(chunks)).toEqual([message(data)]);
});

describe("an event beyond the limit", () => {
  const piece = encoder.encode("x".repeat(60));

  test("that is one endless line is refused", () => {
    expect(() => parse([encoder.encode("data: "), piece, piece], 100)).toThrow(SseOverflow);
  });

  test("that is many data lines is refused", () => {
    const line = encoder.encode(`data: ${"x".repeat(40)}\n`);
    expect(() => parse([line, line, line], 100)).toThrow(SseOverflow);
  });

  test("is not made of comments and earlier events", () => {
    const line = encoder.encode(`: ${"x".repeat(40)}\n`);
    const event = encoder.encode(`data: ${"x".repeat(40)}\n\n`);
    expect(parse([line, event, line, event, line, line, event], 100)).toHaveLength(3);
  });
});
