import { describe, expect, test } from "bun:test";
import { decodeCommand } from "../../../src/wire/command.ts";
import { WireError } from "../../../src/wire/errors.ts";
import { DEFAULT_LIMITS } from "../../../src/wire/frame.ts";
import { Session, type SocketType } from "../../../src/wire/session.ts";
import {
  ascii,
  command,
  greeting,
  hex,
  message,
  octets,
  property,
  readFrames,
  ready,
} from "../../support/zmtp-peer.ts";
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

/** A session that only records, in order, what it asks for. */
function record(socketType: SocketType, identity?: Uint8Array) {
  const events: string[] = [];
  const session: Session = new Session(
    { socketType, identity, limits: DEFAULT_LIMITS },
    {
      onSend: (bytes) => events.push(`send ${bytes.toHex()}`),
      onReady: (peer) => events.push(`ready ${peer.socketType}`),
      onMessage: ([body]) => {
        events.push(`message ${body?.toHex()}`);
        if (body?.length === 0) session.stop();
      },
    },
  );
  return { session, events };
}

test("the greeting goes out first, READY once the peer's greeting is good, nothing more before its READY", () => {
  const { session, events } = record("DEALER", ascii("me"));
  session.open();
  const sentGreeting = `send ${hex(`ff0000000000000000 7f 03 00 4e554c4c ${"00".repeat(48)}`.replaceAll(" ", "")).toHex()}`;
  expect(events).toEqual([sentGreeting]);

  session.receive(greeting().subarray(0, 63));
  expect(events.length).toBe(1);

  session.receive(greeting().subarray(63));
  const sentReady = `send ${ready("DEALER", property("Identity", ascii("me"))).toHex()}`;
  expect(events).toEqual([sentGreeting, sentReady]);
  expect(session.ready).toBe(false);

  session.receive(octets(ready("ROUTER"), message(ascii("a"))));
  expect(events).toEqual([sentGreeting, sentReady, "ready ROUTER", "message 61"]);
  expect(session.ready).toBe(true);
});

test("a peer with the wrong mechanism gets no READY", () => {
  const { session, events } = record("SUB");
  expect(() => session.receive(octets(greeting({ mechanism: "CURVE" }), ready("PUB")))).toThrow(
    "the peer wants CURVE",
  );
  expect(events).toEqual([]);
});

describe("whom a socket talks to (RFC 37, the table of legal combinations)", () => {
  const types = "REQ REP DEALER ROUTER PUB XPUB SUB XSUB PUSH PULL PAIR".split(" ");
  for (const [ours, valid] of [
    ["DEALER", ["REP", "DEALER", "ROUTER"]],
    ["SUB", ["PUB", "XPUB"]],
    ["REQ", ["REP", "ROUTER"]],
  ] as const) {
    test(`${ours} accepts ${valid.join(", ")} and nothing else`, () => {
      const accepted = types.filter((theirs) => {
        const { session } = record(ours);
        try {
          session.receive(octets(greeting(), ready(theirs)));
          return true;
        } catch {
          return false;
        }
      });
      expect(accepted).toEqual([...valid]);
    });
  }

  // "It SHOULD handle errors by returning an ERROR command, and then disconnecting the peer."
  test("the other one is told why", () => {
    const { session, events } = record("SUB");
    expect(() => session.receive(octets(greeting(), ready("ROUTER")))).toThrow(
      "a SUB socket cannot talk to the peer's ROUTER socket",
    );
    const told = command("ERROR", octets(Uint8Array.of(19), ascii("Invalid socket type")));
    expect(events.at(-1)).toBe(`send ${told.toHex()}`);
  });
});

test("what a close means depends on when it comes", () => {
  const { session } = record("SUB");
  expect(session.closed().code).toBe("handshake_closed");
  session.receive(octets(greeting(), ready("PUB")));
  expect(session.closed()).toMatchObject({ code: "connection_lost", partialMessage: false });
  session.receive(message(ascii("a"), ascii("b")).subarray(0, 3));
  expect(session.closed(new Error("reset"))).toMatchObject({
    code: "connection_lost",
    partialMessage: true,
    cause: new Error("reset"),
  });
});

test("after an error, and after stop, nothing more is delivered", () => {
  const failed = record("SUB");
  const handshake = octets(greeting(), ready("PUB"));
  expect(() => failed.session.receive(octets(handshake, hex("ff")))).toThrow("flags 0xff");
  failed.session.receive(message(ascii("a")));
  expect(failed.events.at(-1)).toBe("ready PUB");

  const stopped = record("SUB");
  stopped.session.receive(octets(handshake, message(new Uint8Array(0)), message(ascii("a"))));
  expect(stopped.events.at(-1)).toBe("message ");
});
