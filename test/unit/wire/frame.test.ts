import { describe, expect, test } from "bun:test";
import {
  CommandTooLargeError,
  EarlyMessageError,
  FrameFlagsError,
  FrameTooLargeError,
  MessageTooLargeError,
  TooManyFramesError,
} from "../../../src/wire/errors.ts";
import {
  DEFAULT_LIMITS,
  FrameDecoder,
  type WireLimits,
  encodeCommandFrame,
  encodeMessage,
} from "../../../src/wire/frame.ts";
import { ascii, frame, hex, message, octets } from "../../support/zmtp-peer.ts";

const EMPTY = new Uint8Array(0);

class Sink {
  readonly messages: Uint8Array[][] = [];
  readonly commands: Uint8Array[] = [];
  readonly decoder: FrameDecoder;

  constructor(limits: Partial<WireLimits> = {}) {
    this.decoder = new FrameDecoder(
      { ...DEFAULT_LIMITS, ...limits },
      {
        onMessage: (frames) => this.messages.push(frames),
        onCommand: (body) => this.commands.push(body),
      },
    );
    this.decoder.allowMessages();
  }
}

function pattern(size: number): Uint8Array {
  return Uint8Array.from({ length: size }, (_, at) => at * 31 + (at >> 8));
}

describe("encoding", () => {
  // "A short frame has a body of 0 to 255 octets."
  for (const [size, header] of [
    [0, "0000"],
    [1, "0001"],
    [255, "00ff"],
    [256, "020000000000000100"],
    [65536, "020000000000010000"],
  ] as const) {
    test(`a frame of ${size} octets has the header ${header}`, () => {
      const body = pattern(size);
      expect(encodeMessage([body])).toEqual(octets(hex(header), body));
    });
  }

  test("all frames of a message but the last have MORE", () => {
    const frames = [EMPTY, ascii("a"), pattern(300), EMPTY];
    expect(encodeMessage(frames)).toEqual(
      octets(frame(1, EMPTY), frame(1, ascii("a")), frame(3, pattern(300)), frame(0, EMPTY)),
    );
  });

  test("a command frame has COMMAND, and LONG above 255 octets", () => {
    expect(encodeCommandFrame(ascii("a"))).toEqual(hex("040161"));
    expect(encodeCommandFrame(pattern(256))).toEqual(frame(6, pattern(256)));
  });

  test("a message without frames is a mistake of the caller", () => {
    expect(() => encodeMessage([])).toThrow(RangeError);
  });
});

describe("decoding", () => {
  test("what we encode comes back, cut at every octet", () => {
    const sent = [[EMPTY], [pattern(255), pattern(256)], [ascii("a"), EMPTY, pattern(3)]];
    const stream = octets(...sent.map(encodeMessage), hex("0403464f4f"));
    for (let cut = 0; cut <= stream.length; cut += 1) {
      const sink = new Sink();
      sink.decoder.push(stream.subarray(0, cut));
      sink.decoder.push(stream.subarray(cut));
      if (!Bun.deepEquals(sink.messages, sent))
        expect({ cut, got: sink.messages }).toEqual({ cut, got: sent });
      expect(sink.commands).toEqual([ascii("FOO")]);
      expect(sink.decoder.midMessage).toBe(false);
    }
  });

  test("a command between two frames of a message leaves the message whole", () => {
    const sink = new Sink();
    sink.decoder.push(octets(frame(1, ascii("a")), frame(4, ascii("cmd")), frame(0, ascii("b"))));
    expect(sink.messages).toEqual([[ascii("a"), ascii("b")]]);
    expect(sink.commands).toEqual([ascii("cmd")]);
  });

  test("a body that spans chunks or not, it is a copy with a buffer of its own", () => {
    const sink = new Sink();
    const first = octets(message(ascii("whole")), frame(0, ascii("split")).subarray(0, 4));
    const second = frame(0, ascii("split")).slice(4);
    sink.decoder.push(first);
    sink.decoder.push(second);
    first.fill(0);
    second.fill(0);
    expect(sink.messages).toEqual([[ascii("whole")], [ascii("split")]]);
    for (const [body] of sink.messages) expect(body?.buffer.byteLength).toBe(5);
  });

  test("nothing of the chunk is delivered after stop", () => {
    const messages: Uint8Array[][] = [];
    const decoder: FrameDecoder = new FrameDecoder(DEFAULT_LIMITS, {
      onCommand: () => undefined,
      onMessage: (frames) => {
        messages.push(frames);
        decoder.stop();
      },
    });
    decoder.allowMessages();
    decoder.push(octets(message(ascii("a")), message(ascii("b"))));
    expect(messages).toEqual([[ascii("a")]]);
  });

  for (const [name, bytes, expected] of [
    ["nothing", "", false],
    ["a whole message", "000161", false],
    ["half a header", "00", true],
    ["half a body", "000261", true],
    ["a frame with MORE", "010161", true],
  ] as const) {
    test(`after ${name} the stream ${expected ? "is" : "is not"} within a message`, () => {
      const sink = new Sink();
      sink.decoder.push(hex(bytes));
      expect(sink.decoder.midMessage).toBe(expected);
    });
  }
});

describe("a frame that breaks a rule", () => {
  const limits = { maxFrameBytes: 1000, maxMessageBytes: 1500, maxFrames: 3, maxCommandBytes: 100 };
  const long = (flags: number, size: bigint) => frame(flags, EMPTY, size);
  const cases: ReadonlyArray<
    readonly [string, Uint8Array, abstract new (...args: never[]) => Error]
  > = [
    // "Bits 7-3 are reserved for future use and MUST be zero."
    ...[0x08, 0x10, 0x20, 0x40, 0x80, 0xf8, 0xff].map(
      (flags) => [`flags ${flags.toString(16)}`, Uint8Array.of(flags), FrameFlagsError] as const,
    ),
    // "This bit SHALL be zero on command frames."
    ["MORE on a short command", hex("05"), FrameFlagsError],
    ["MORE on a long command", hex("07"), FrameFlagsError],
    ["one octet over the limit", long(2, 1001n), FrameTooLargeError],
    ["2^32, whose low half is 0", long(2, 1n << 32n), FrameTooLargeError],
    ["2^32 + 1, whose low half is small", long(2, (1n << 32n) + 1n), FrameTooLargeError],
    ["2^53 + 1, which no double holds", long(2, (1n << 53n) + 1n), FrameTooLargeError],
    ["2^63", long(2, 1n << 63n), FrameTooLargeError],
    ["2^64 - 1", long(2, (1n << 64n) - 1n), FrameTooLargeError],
    ["a command over its own, smaller limit", long(6, 101n), CommandTooLargeError],
    ["a command of 2^64 - 1", long(6, (1n << 64n) - 1n), CommandTooLargeError],
    [
      "frames that are too much together",
      octets(frame(3, pattern(1000)), long(2, 501n)),
      MessageTooLargeError,
    ],
    [
      "one frame too many",
      octets(frame(1, EMPTY), frame(1, EMPTY), frame(1, EMPTY), frame(0, EMPTY)),
      TooManyFramesError,
    ],
  ];

  for (const [name, bytes, expected] of cases) {
    test(`${name}: refused at its header, however it is cut`, () => {
      expect(() => new Sink(limits).decoder.push(bytes)).toThrow(expected as never);
      const split = new Sink(limits);
      const pushEach = () => {
        for (const octet of bytes) split.decoder.push(Uint8Array.of(octet));
      };
      expect(pushEach).toThrow(expected as never);
      expect(split.messages).toEqual([]);
    });
  }

  test("at the limits it is delivered", () => {
    const sink = new Sink(limits);
    sink.decoder.push(message(pattern(1000), pattern(500), EMPTY));
    sink.decoder.push(frame(6, pattern(100)));
    expect(sink.messages).toEqual([[pattern(1000), pattern(500), EMPTY]]);
    expect(sink.commands).toEqual([pattern(100)]);
  });

  test("the limits are those of one message, not of the connection", () => {
    const sink = new Sink(limits);
    for (let round = 0; round < 5; round += 1) sink.decoder.push(message(pattern(900), EMPTY));
    expect(sink.messages.length).toBe(5);
  });

  test("the exact size is named, also above 2^53", () => {
    expect(() => new Sink().decoder.push(frame(2, EMPTY, (1n << 53n) + 1n))).toThrow(
      "9007199254740993",
    );
  });

  test("a message frame during the handshake is refused at its first octet", () => {
    const decoder = new FrameDecoder(DEFAULT_LIMITS, {
      onCommand: () => undefined,
      onMessage: () => undefined,
    });
    decoder.push(hex("0403464f4f"));
    expect(() => decoder.push(hex("00"))).toThrow(EarlyMessageError);
  });
});

test("the work grows with the octets, not with the chunks they come in", () => {
  // 16 MiB in 16,384 chunks: joining the chunks anew each time would copy 128 GiB, and time out.
  const chunk = new Uint8Array(1024);
  const sink = new Sink();
  sink.decoder.push(hex("020000000001000000"));
  for (let sent = 0; sent < 1 << 24; sent += chunk.length) sink.decoder.push(chunk);
  expect(sink.messages.map((frames) => frames.map((body) => body.length))).toEqual([[1 << 24]]);
});
