/** Our sockets against the reference implementation: libzmq, through pyzmq. */

import { expect, test } from "bun:test";
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Deferred, defer, delay } from "../../../src/async.ts";
import { DealerSocket, ReqSocket, SubSocket } from "../../../src/wire/sockets.ts";
import type { Endpoint } from "../../../src/wire/transport.ts";
import { type PythonName, PythonPeer, describeWithPython } from "../../support/python.ts";
import { ascii } from "../../support/zmtp-peer.ts";

const FRAME_SIZES = [0, 1, 255, 256, 65_536, 10_000_000];
const PATIENT_MS = 10_000;
const SLOW_TEST_MS = 60_000;

/** A bound libzmq socket in a Python process, and the endpoint that it has. */
class LibzmqPeer implements AsyncDisposable {
  readonly endpoint: Endpoint;
  readonly #process: PythonPeer;

  private constructor(process: PythonPeer, endpoint: Endpoint) {
    this.#process = process;
    this.endpoint = endpoint;
  }

  static async bind(
    type: string,
    address: string,
    python: PythonName,
    ...options: string[]
  ): Promise<LibzmqPeer> {
    const process = new PythonPeer("zmq_peer.py", [type, address, ...options], python);
    const { endpoint } = await process.json<{ endpoint: string }>();
    return new LibzmqPeer(process, parseEndpoint(endpoint));
  }

  /** Tells it one thing and returns its next line. */
  ask<T>(command: unknown): Promise<T> {
    this.tell(command);
    return this.answer<T>();
  }

  tell(command: unknown): void {
    this.#process.tell(JSON.stringify(command));
  }

  answer<T>(): Promise<T> {
    return this.#process.json<T>();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#process[Symbol.asyncDispose]();
  }
}

function parseEndpoint(text: string): Endpoint {
  if (text.startsWith("ipc://")) return { transport: "ipc", path: text.slice(6) };
  const { hostname, port } = new URL(text.replace("tcp:", "http:"));
  return { transport: "tcp", host: hostname, port: Number(port) };
}

/** An address to bind to, and the folder to remove afterwards. */
class Address implements Disposable {
  readonly text: string;
  readonly #folder: string | undefined;

  constructor(transport: "tcp" | "ipc") {
    this.#folder = transport === "ipc" ? mkdtempSync(join(tmpdir(), "libzmq-")) : undefined;
    this.text = this.#folder ? `ipc://${this.#folder}/s` : "tcp://127.0.0.1:*";
  }

  [Symbol.dispose](): void {
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Collects messages and lets a test wait for what it needs of them. */
class Inbox {
  readonly messages: Uint8Array[][] = [];
  #changed: Deferred<void> = defer();

  readonly onMessage = (frames: Uint8Array[]): void => {
    this.messages.push(frames);
    this.#changed.resolve();
  };

  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      this.#changed = defer();
      await this.#changed.promise;
    }
  }

  async first(count: number): Promise<Uint8Array[][]> {
    await this.until(() => this.messages.length >= count);
    return this.messages;
  }
}

function pattern(size: number): Uint8Array {
  return new Uint8Array(size).map((_, at) => at * 31 + (at >> 8));
}

function sha256(frames: readonly Uint8Array[]): string {
  const hash = createHash("sha256");
  for (const frame of frames) hash.update(frame);
  return hash.digest("hex");
}

for (const python of ["newest", "oldest"] as const) {
  for (const transport of ["tcp", "ipc"] as const) {
    describeWithPython(python, `libzmq of the ${python} Python over ${transport}`, () => {
      for (const type of ["ROUTER", "REP", "DEALER"]) {
        test(`DEALER and ${type}: frames of all sizes come back as they were, in one message and alone`, async () => {
          using address = new Address(transport);
          await using peer = await LibzmqPeer.bind(type, address.text, python);
          const inbox = new Inbox();
          const socket = new DealerSocket({
            endpoint: peer.endpoint,
            identity: ascii("me"),
            events: inbox,
          });
          // A REP needs the delimiter of a REQ; the other two take any frames.
          const bodies = FRAME_SIZES.map(pattern);
          const sent = [bodies, ...bodies.map((body) => [body])].map((frames) => [
            new Uint8Array(0),
            ...frames,
          ]);
          for (const frames of sent) socket.send(frames);
          const received = await inbox.first(sent.length);
          expect(received.map((frames) => frames.map((frame) => frame.length))).toEqual(
            sent.map((frames) => frames.map((frame) => frame.length)),
          );
          expect(received.map(sha256)).toEqual(sent.map(sha256));
          expect(socket.peer?.socketType).toBe(type);
          socket.close();
        });
      }

      for (const type of ["REP", "ROUTER"]) {
        test(`REQ and ${type}: each request gets its echo`, async () => {
          using address = new Address(transport);
          await using peer = await LibzmqPeer.bind(type, address.text, python);
          const socket = new ReqSocket({ endpoint: peer.endpoint });
          for (const payload of [
            ascii("beat 1"),
            ascii("beat 2"),
            pattern(300),
            new Uint8Array(0),
          ]) {
            expect(await socket.request(payload, PATIENT_MS)).toEqual(payload);
          }
          socket.close();
        });
      }

      for (const type of ["PUB", "XPUB"]) {
        test(`SUB and ${type}: subscribed, it receives messages of all sizes`, async () => {
          using address = new Address(transport);
          await using peer = await LibzmqPeer.bind(type, address.text, python);
          const inbox = new Inbox();
          const socket = new SubSocket({ endpoint: peer.endpoint, topics: [""], events: inbox });
          expect((await socket.ready).socketType).toBe(type);
          await subscribed(peer, type, inbox);
          await peer.ask({ publish: FRAME_SIZES, count: 2 });
          // What a PUB was asked for until it knew us, single frames, may still be on its way.
          const published = () => inbox.messages.filter((frames) => frames.length > 1);
          await inbox.until(() => published().length === 2);
          const received = published();
          expect(received.map((frames) => frames.map((frame) => frame.length))).toEqual([
            [1, ...FRAME_SIZES],
            [1, ...FRAME_SIZES],
          ]);
          const body = Uint8Array.from({ length: 65_536 }, (_, at) => at % 251);
          expect(received[1]?.[5]).toEqual(body);
          socket.close();
        });
      }
    });
  }
}

/** Waits until the publisher knows our subscription: an XPUB says so, a PUB is asked until something comes. */
async function subscribed(peer: LibzmqPeer, type: string, inbox: Inbox): Promise<void> {
  if (type === "XPUB") {
    expect(await peer.answer<unknown>()).toEqual({ subscription: "01" });
    return;
  }
  while (inbox.messages.length === 0) await peer.ask({ publish: [], count: 1 });
}

describeWithPython("newest", "libzmq under load and trouble", () => {
  for (const transport of ["tcp", "ipc"] as const) {
    test(
      `a flood of 100,000 messages of 300 octets over ${transport} is received whole and in order`,
      async () => {
        using address = new Address(transport);
        await using peer = await LibzmqPeer.bind("XPUB", address.text, "newest", "sndhwm=0");
        const inbox = new Inbox();
        const socket = new SubSocket({ endpoint: peer.endpoint, topics: [""], events: inbox });
        await subscribed(peer, "XPUB", inbox);
        peer.tell({ publish: [40, 9, 64, 60, 127], count: 100_000 });
        const received = await inbox.first(100_000);
        const misplaced = received.findIndex(
          ([first], at) => Number(new TextDecoder().decode(first)) !== at,
        );
        expect(misplaced).toBe(-1);
        expect(
          received.every(
            ([, ...rest]) => rest.reduce((sum, { length }) => sum + length, 0) === 300,
          ),
        ).toBe(true);
        socket.close();
      },
      SLOW_TEST_MS,
    );

    test(
      `a peer over ${transport} that does not read for a while gets 20 MB whole`,
      async () => {
        using address = new Address(transport);
        // With a high-water mark of one message libzmq itself stops reading the stream.
        await using peer = await LibzmqPeer.bind("ROUTER", address.text, "newest", "rcvhwm=1");
        const socket = new DealerSocket({ endpoint: peer.endpoint, events: new Inbox() });
        await socket.ready;
        expect(await peer.ask<unknown>({ hold: true })).toEqual({ held: true });
        const sent = Array.from({ length: 20 }, (_, number) =>
          pattern(1_000_000).fill(number, 0, 10),
        );
        for (const body of sent) socket.send([body]);
        expect(socket.pendingBytes).toBeGreaterThan(0);
        expect(await peer.ask<unknown>({ digest: 20 })).toEqual({
          sizes: sent.map((body) => body.length),
          sha256: sha256(sent),
        });
        expect(socket.pendingBytes).toBe(0);
        socket.close();
      },
      SLOW_TEST_MS,
    );

    test(`a publisher over ${transport} that is killed and started again finds us subscribed again`, async () => {
      using address = new Address(transport);
      const first = await LibzmqPeer.bind("XPUB", address.text, "newest");
      const { endpoint } = first;
      const inbox = new Inbox();
      const socket = new SubSocket({ endpoint, topics: ["a", ""], events: inbox });
      for (const subscription of ["0161", "01"])
        expect(await first.answer<unknown>()).toEqual({ subscription });
      await first.ask({ publish: [], count: 1 });
      await inbox.first(1);
      await first[Symbol.asyncDispose]();

      const again =
        endpoint.transport === "ipc"
          ? `ipc://${endpoint.path}`
          : `tcp://127.0.0.1:${endpoint.port}`;
      await using second = await LibzmqPeer.bind("XPUB", again, "newest");
      for (const subscription of ["0161", "01"])
        expect(await second.answer<unknown>()).toEqual({ subscription });
      await second.ask({ publish: [3], count: 1 });
      expect((await inbox.first(2))[1]?.map((frame) => frame.length)).toEqual([1, 3]);
      socket.close();
    });
  }

  test("libzmq's heartbeats are answered: the connection outlives many of them", async () => {
    using address = new Address("tcp");
    await using peer = await LibzmqPeer.bind("ROUTER", address.text, "newest", "heartbeat=20");
    const inbox = new Inbox();
    const lost: string[] = [];
    const socket = new DealerSocket({
      endpoint: peer.endpoint,
      events: { onMessage: inbox.onMessage, onDisconnect: (error) => lost.push(error.code) },
    });
    await socket.ready;
    // libzmq drops a connection whose PONG is missing for one interval; twenty intervals pass here.
    await delay(400);
    socket.send([ascii("still here")]);
    expect(await inbox.first(1)).toEqual([[ascii("still here")]]);
    expect(lost).toEqual([]);
    socket.close();
  });

  test("a SUB that meets a ROUTER gives up, and the error says which sockets met", async () => {
    using address = new Address("ipc");
    await using peer = await LibzmqPeer.bind("ROUTER", address.text, "newest");
    const socket = new SubSocket({ endpoint: peer.endpoint, topics: [""], events: new Inbox() });
    await expect(socket.ready).rejects.toThrow(
      "a SUB socket cannot talk to the peer's ROUTER socket",
    );
  });

  test.skipIf(process.platform !== "linux")(
    "a name in the abstract namespace is an endpoint",
    async () => {
      await using peer = await LibzmqPeer.bind("REP", `ipc://@zmtp-test-${process.pid}`, "newest");
      const socket = new ReqSocket({ endpoint: peer.endpoint });
      expect(await socket.request(ascii("x"), PATIENT_MS)).toEqual(ascii("x"));
      socket.close();
    },
  );
});
