import { describe, expect, test } from "bun:test";
import { decodeCommand } from "../../../src/wire/command.ts";
import { WireError } from "../../../src/wire/errors.ts";
import { DEFAULT_LIMITS } from "../../../src/wire/frame.ts";
import { Session, type SocketType } from "../../../src/wire/session.ts";
import { octets, readFrames } from "../../support/zmtp-peer.ts";
import { type Vector, type VectorOutcome, showBody, vectors } from "../../support/zmtp-vectors.ts";

/** Streams up to this size are cut at every octet; longer ones only near both ends. */
const CUT_EVERYWHERE_BYTES = 2048;
const CUT_NEAR_ENDS_BYTES = 128;
/** A stream of 64 MiB, cut like the others, would take minutes and prove nothing more than a shorter one. */
const CUT_AT_ALL_BYTES = 1024 * 1024;

class Recorder {
  readonly messages: string[][] = [];
  readonly sent: Uint8Array[] = [];
  readonly session: Session;
  closes: string | undefined;

  constructor(socketType: SocketType) {
    this.session = new Session(
      { socketType, limits: DEFAULT_LIMITS },
      {
        onSend: (bytes) => this.sent.push(bytes),
        onReady: () => undefined,
        onMessage: (frames) => this.messages.push(frames.map(showBody)),
      },
    );
    this.session.open();
  }

  receive(chunk: Uint8Array): void {
    if (this.closes !== undefined) return;
    try {
      this.session.receive(chunk);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.closes = error.code;
    }
  }

  get outcome(): VectorOutcome {
    const frames = readFrames(octets(...this.sent).subarray(64));
    const commands = frames.map((frame) => decodeCommand(frame.body));
    const pongs = commands.filter(({ name }) => name === "PONG").map(({ data }) => data.toHex());
    return { messages: this.messages, pongs, closes: this.closes };
  }
}

/** Feeds the vector's octets in these chunks; the peer's close counts as in the vector. */
function play(vector: Vector, chunks: Iterable<Uint8Array>): VectorOutcome {
  const recorder = new Recorder(vector.role.toUpperCase() as SocketType);
  for (const chunk of chunks) recorder.receive(chunk);
  const closed = vector.steps.some((step) => step.kind === "end");
  if (closed) recorder.closes ??= recorder.session.closed().code;
  return recorder.outcome;
}

/** A session has no clock: where the vector waits for the time limit, nothing must have happened. */
function expectedOutcome(vector: Vector): VectorOutcome {
  const closes = vector.closes === "handshake_timeout" ? undefined : vector.closes;
  return { messages: vector.messages, pongs: vector.pongs, closes };
}

function chunksOf(vector: Vector): Uint8Array[] {
  return vector.steps.flatMap((step) => (step.kind === "send" ? [step.bytes] : []));
}

function* octetByOctet(stream: Uint8Array): Generator<Uint8Array> {
  for (let at = 0; at < stream.length; at += 1) yield stream.subarray(at, at + 1);
}

function cuts(length: number): number[] {
  const all = Array.from({ length: Math.max(length - 1, 0) }, (_, index) => index + 1);
  if (length <= CUT_EVERYWHERE_BYTES) return all;
  return [...all.slice(0, CUT_NEAR_ENDS_BYTES), ...all.slice(-CUT_NEAR_ENDS_BYTES)];
}

describe("each vector has its outcome in the state machine", () => {
  test("there are 86 of them", () => {
    expect(vectors.length).toBe(86);
  });

  for (const vector of vectors) {
    const expected = expectedOutcome(vector);
    const stream = octets(...chunksOf(vector));

    test(`${vector.id} as it was sent: ${vector.title}`, () => {
      expect(play(vector, chunksOf(vector))).toEqual(expected);
    });

    test(`${vector.id} in one chunk`, () => {
      expect(play(vector, [stream])).toEqual(expected);
    });

    if (stream.length > CUT_AT_ALL_BYTES) continue;

    test(`${vector.id} cut in two, at every octet`, () => {
      for (const cut of cuts(stream.length)) {
        const outcome = play(vector, [stream.subarray(0, cut), stream.subarray(cut)]);
        // Comparing first keeps thousands of long outcomes cheap; the assertion then shows the difference.
        if (!Bun.deepEquals(outcome, expected))
          expect({ cut, outcome }).toEqual({ cut, outcome: expected });
      }
    });

    test(`${vector.id} octet by octet`, () => {
      expect(play(vector, octetByOctet(stream))).toEqual(expected);
    });
  }
});
