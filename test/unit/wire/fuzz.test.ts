import { expect, test } from "bun:test";
import { WireError } from "../../../src/wire/errors.ts";
import { DEFAULT_LIMITS, type WireLimits } from "../../../src/wire/frame.ts";
import { Session } from "../../../src/wire/session.ts";
import {
  command,
  frame,
  greeting,
  message,
  octets,
  property,
  readFrames,
  ready,
} from "../../support/zmtp-peer.ts";
import { type Reading, readStream } from "../../support/zmtp-reference.ts";
import { vectors } from "../../support/zmtp-vectors.ts";

/** `FUZZ_SEED` and `FUZZ_STREAMS` choose other streams, or a failed one again. */
const SEED = Number(process.env.FUZZ_SEED ?? 1);
const STREAMS = Number(process.env.FUZZ_STREAMS ?? 200_000);
const TIMEOUT_MS = 120_000;

/** Small, so that mutated streams meet every limit. */
const LIMITS: WireLimits = {
  ...DEFAULT_LIMITS,
  maxFrameBytes: 700,
  maxMessageBytes: 1000,
  maxFrames: 6,
  maxCommandBytes: 300,
};
/** The greeting ends, and READY begins. */
const HANDSHAKE_STARTS = 64;
/** A READY with the socket type only has ended. */
const HANDSHAKE_ENDS = 92;
const SEED_STREAM_BYTES = 1500;
/** Octets that mean something somewhere: flags, sizes, versions, lengths of names. */
const TELLING_OCTETS = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0x7f, 0x80, 0xf8, 0xff];

/** A small generator of pseudo-random numbers (mulberry32): the same seed gives the same stream. */
class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = Math.imul(seed, 0x9e3779b1);
  }

  /** A whole number from 0 to `bound` - 1. */
  below(bound: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((((mixed ^ (mixed >>> 14)) >>> 0) * bound) / 0x1_0000_0000) | 0;
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T;
  }

  octets(count: number): Uint8Array {
    return Uint8Array.from({ length: count }, () => this.below(256));
  }
}

const vectorStreams = vectors
  .map(({ steps }) =>
    octets(...steps.flatMap((step) => (step.kind === "send" ? [step.bytes] : []))),
  )
  .filter((stream) => stream.length > 64 && stream.length <= SEED_STREAM_BYTES);

/** A valid stream: handshake, then commands and messages of all forms. */
function validStream(random: Random): Uint8Array {
  if (random.below(4) === 0) return random.pick(vectorStreams).slice();
  const properties =
    random.below(3) === 0 ? [property("X-Y", random.octets(random.below(20)))] : [];
  const parts = [
    greeting({ minor: random.below(3) }),
    ready(random.pick(["PUB", "XPUB"]), ...properties),
  ];
  const body = () => random.octets(random.pick([0, 1, 5, 40, 100, 255, 256, 300]));
  for (let count = random.below(8); count > 0; count -= 1) {
    parts.push(
      random.pick([
        () => message(...Array.from({ length: 1 + random.below(8) }, body)),
        () => frame(random.below(2) === 0 ? 2 : 3, body()),
        () => command("PING", random.octets(random.pick([0, 1, 2, 6, 18, 20]))),
        () => octets(frame(1, body()), command("PING", random.octets(4)), frame(0, body())),
        () =>
          command(
            random.pick(["FOO", "READY", "PONG", "SUBSCRIBE"]),
            random.octets(random.below(9)),
          ),
      ])(),
    );
  }
  return octets(...parts);
}

/** Where to change a stream: mostly behind the handshake, in which a change is soon fatal. */
function position(random: Random, stream: Uint8Array): number {
  const from = random.pick([0, HANDSHAKE_STARTS, HANDSHAKE_ENDS, HANDSHAKE_ENDS, HANDSHAKE_ENDS]);
  const start = Math.min(from, stream.length);
  return start + random.below(stream.length - start + 1);
}

function mutate(random: Random, stream: Uint8Array): Uint8Array {
  const at = position(random, stream);
  const until = Math.min(at + 1 + random.below(12), stream.length);
  const splice = (cut: number, insert: Uint8Array) =>
    octets(stream.subarray(0, at), insert, stream.subarray(cut));
  return random.pick([
    () =>
      splice(
        Math.min(at + 1, stream.length),
        Uint8Array.of((stream[at] ?? 0) ^ (1 << random.below(8))),
      ),
    () => splice(Math.min(at + 1, stream.length), Uint8Array.of(random.pick(TELLING_OCTETS))),
    () => splice(until, random.octets(until - at)),
    () => splice(at, random.octets(1 + random.below(9))),
    () => splice(until, new Uint8Array(0)),
    () => splice(at, stream.slice(at, until)),
    () => stream.slice(0, at),
    () =>
      splice(
        at,
        frame(
          2 | random.below(8),
          new Uint8Array(0),
          BigInt(random.below(0xffff)) << BigInt(random.below(48)),
        ),
      ),
    () => splice(stream.length, random.pick(vectorStreams).subarray(64)),
  ])();
}

/** What our session makes of the stream in chunks of random sizes. */
function readBySession(random: Random, stream: Uint8Array): Reading {
  const reading: Reading = { ready: false, messages: [], pongs: [], error: undefined };
  const sent: Uint8Array[] = [];
  const session = new Session(
    { socketType: "SUB", limits: LIMITS },
    {
      onSend: (bytes) => sent.push(bytes),
      onReady: () => undefined,
      onMessage: (frames) => reading.messages.push(frames.map((body) => body.toHex())),
    },
  );
  const mostBytes = random.pick([1, 3, 20, 100, 3000]);
  try {
    for (let at = 0; at < stream.length;) {
      const end = at + 1 + random.below(mostBytes);
      session.receive(stream.subarray(at, end));
      at = end;
    }
  } catch (error) {
    if (!(error instanceof WireError)) throw error;
    reading.error = error.code;
  }
  for (const { body } of readFrames(octets(...sent))) {
    if (body.subarray(0, 5).toHex() === "04504f4e47") reading.pongs.push(body.subarray(5).toHex());
  }
  reading.ready = session.ready;
  return reading;
}

test(
  `${STREAMS} mutated streams are read as the specification says, whatever their chunks`,
  () => {
    const seen = new Map<string, number>();
    for (let index = 0; index < STREAMS; index += 1) {
      const random = new Random(SEED + index);
      let stream = validStream(random);
      for (let count = random.below(4); count >= 0; count -= 1) stream = mutate(random, stream);
      const expected = readStream(stream, LIMITS);
      const actual = readBySession(random, stream);
      if (!Bun.deepEquals(actual, expected)) {
        const again = `FUZZ_SEED=${SEED + index} FUZZ_STREAMS=1`;
        expect({ again, stream: stream.toHex(), ...actual }).toEqual({
          again,
          stream: stream.toHex(),
          ...expected,
        });
      }
      const outcome = expected.error ?? (expected.messages.length > 0 ? "delivered" : "waiting");
      seen.set(outcome, (seen.get(outcome) ?? 0) + 1);
    }
    // The streams are worth their time only if they get everywhere.
    if (STREAMS >= 200_000) {
      expect([...seen.keys()].sort()).toEqual([
        "command_too_large",
        "delivered",
        "early_message",
        "frame_flags",
        "frame_too_large",
        "malformed_command",
        "malformed_ready",
        "message_too_large",
        "not_zmtp",
        "peer_refused",
        "socket_type",
        "too_many_frames",
        "unexpected_command",
        "waiting",
        "zmtp_mechanism",
        "zmtp_version",
      ]);
    }
  },
  TIMEOUT_MS,
);
