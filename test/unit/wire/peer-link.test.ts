import { describe, expect, spyOn, test } from "bun:test";
import { defer, delay } from "../../../src/async.ts";
import { encodeSubscription } from "../../../src/wire/command.ts";
import type { WireError } from "../../../src/wire/errors.ts";
import { encodeMessage } from "../../../src/wire/frame.ts";
import { PeerLink, type SocketOptions } from "../../../src/wire/peer-link.ts";
import { ScriptedPeer, ascii, greeting, message, octets, ready } from "../../support/zmtp-peer.ts";

/** More than any socket buffer takes at once. */
const BIG_BYTES = 20_000_000;
/** Longer than the longest back-off: an attempt that were to come would have come. */
const PAST_BACKOFF_MS = 200;

class Client implements Disposable {
  readonly log: string[] = [];
  readonly failed = defer<WireError>();
  readonly link: PeerLink;
  #changed = defer<void>();

  constructor(options: Omit<SocketOptions, "events">, preamble: readonly Uint8Array[] = []) {
    this.link = new PeerLink(
      "SUB",
      {
        ...options,
        events: {
          onMessage: ([body]) => this.#note(`message ${new TextDecoder().decode(body)}`),
          onConnect: (peer) => this.#note(`connect ${peer.socketType}`),
          onDisconnect: (error) => this.#note(`disconnect ${error.code}`),
          onFailure: (error) => (this.#note(`failure ${error.code}`), this.failed.resolve(error)),
        },
      },
      preamble,
    );
  }

  /** Waits until the log holds this many entries. */
  async entries(count: number): Promise<string[]> {
    while (this.log.length < count) await this.#changed.promise;
    return this.log;
  }

  [Symbol.dispose](): void {
    this.link.close();
  }

  #note(entry: string): void {
    this.log.push(entry);
    this.#changed.resolve();
    this.#changed = defer();
  }
}

for (const transport of ["tcp", "ipc"] as const) {
  test(`over ${transport} it keeps trying until the peer has bound`, async () => {
    const first = await ScriptedPeer.listen(transport, () => undefined);
    const { endpoint } = first;
    await first[Symbol.asyncDispose]();

    using client = new Client({ endpoint });
    await client.entries(3);
    await using peer = await ScriptedPeer.listen(endpoint, (connection) =>
      connection.handshake("PUB"),
    );
    expect(await client.link.ready).toMatchObject({ socketType: "PUB" });
    expect(client.link.peer).toMatchObject({ socketType: "PUB" });
    expect(peer.accepted).toBe(1);
    expect(new Set(client.log)).toEqual(new Set(["disconnect connect_failed", "connect PUB"]));
  });

  test(`over ${transport} it connects again after a loss, says so, and sends the preamble anew`, async () => {
    const subscription = encodeSubscription(ascii("a"));
    await using peer = await ScriptedPeer.listen(transport, async (connection, number) => {
      await connection.handshake("XPUB");
      const frames = await connection.untilFrames(2);
      expect(frames[1]?.body).toEqual(ascii("\x01a"));
      await connection.send(message(ascii(`${number}`)));
      if (number < 2) connection.end();
    });
    using client = new Client({ endpoint: peer.endpoint }, [subscription]);
    const round = (number: number) => ["connect XPUB", `message ${number}`];
    expect(await client.entries(8)).toEqual([
      ...round(0),
      "disconnect connection_lost",
      ...round(1),
      "disconnect connection_lost",
      ...round(2),
    ]);
    expect(peer.accepted).toBe(3);
  });
}

describe("it gives up, once, and says why", () => {
  test("when nobody has bound in time: the error names the last attempt's", async () => {
    const peer = await ScriptedPeer.listen("ipc", () => undefined);
    await peer[Symbol.asyncDispose]();
    using client = new Client({ endpoint: peer.endpoint, connectTimeoutMs: 400 });
    const error = await client.failed.promise;
    expect(error).toMatchObject({ code: "connect_timeout", fatal: true });
    expect(error.message).toContain("within 400 ms: cannot connect to ipc://");
    expect(error.message).toContain("(ENOENT)");
    expect(client.log.filter((entry) => entry.startsWith("failure"))).toEqual([
      "failure connect_timeout",
    ]);
    await expect(client.link.ready).rejects.toBe(error);
    expect(() => client.link.send(encodeMessage([ascii("a")]))).toThrow(
      "the socket has failed: no connection",
    );
  });

  test("when each handshake is cut off: few attempts, and a hint at the usual reasons", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.send(greeting());
      connection.end();
    });
    using client = new Client({ endpoint: peer.endpoint, connectTimeoutMs: 300 });
    const error = await client.failed.promise;
    expect(error.message).toEndWith("the peer closed the connection during the handshake");
    expect(error.hint).toContain("CURVE");
    // Waits of 2, 4, 8, 16, 32, 64, 100 ms fit; ten would be a hot loop.
    expect(peer.accepted).toBeLessThan(10);
  });

  test("when the peer accepts and says nothing", async () => {
    await using peer = await ScriptedPeer.listen("ipc", (connection) => connection.closed);
    using client = new Client({
      endpoint: peer.endpoint,
      connectTimeoutMs: 150,
      handshakeTimeoutMs: 20,
    });
    const error = await client.failed.promise;
    expect(error.message).toEndWith("did not finish the handshake within 20 ms");
    expect(client.log[0]).toBe("disconnect handshake_timeout");
  });

  test("at once on a fatal error, without a second attempt", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.send(greeting(), ready("ROUTER"));
      await connection.closed;
    });
    using client = new Client({ endpoint: peer.endpoint });
    await expect(client.link.ready).rejects.toThrow(
      "a SUB socket cannot talk to the peer's ROUTER",
    );
    await client.failed.promise;
    await delay(PAST_BACKOFF_MS);
    expect(client.log).toEqual(["disconnect socket_type", "failure socket_type"]);
    expect(peer.accepted).toBe(1);
  });

  test("after a loss, if it is not to reconnect", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("PUB");
      connection.end();
    });
    using client = new Client({ endpoint: peer.endpoint, reconnect: false });
    await client.failed.promise;
    await delay(PAST_BACKOFF_MS);
    expect(client.log).toEqual([
      "connect PUB",
      "disconnect connection_lost",
      "failure connection_lost",
    ]);
    expect(peer.accepted).toBe(1);
  });

  test("but not because the first connection ended after its time to connect", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.handshake("PUB");
      if (number === 0) setTimeout(() => connection.end(), 800);
    });
    using client = new Client({ endpoint: peer.endpoint, connectTimeoutMs: 400 });
    expect(await client.entries(3)).toEqual([
      "connect PUB",
      "disconnect connection_lost",
      "connect PUB",
    ]);
  });
});

test("a handshake that is done is not timed out later", async () => {
  await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
    await connection.handshake("PUB");
    await delay(800);
    await connection.send(message(ascii("late")));
  });
  using client = new Client({ endpoint: peer.endpoint, handshakeTimeoutMs: 400 });
  expect(await client.entries(2)).toEqual(["connect PUB", "message late"]);
});

describe("sending", () => {
  test("what is sent before and between connections arrives, in order, each message once", async () => {
    const received = defer<Uint8Array[]>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.handshake("PUB");
      const frames = await connection.untilFrames(number === 0 ? 3 : 4);
      bodies.push(...frames.slice(1).map((frame) => frame.body.slice()));
      if (number === 0) connection.end();
      else received.resolve(bodies);
    });
    const bodies: Uint8Array[] = [];
    using client = new Client({ endpoint: peer.endpoint });
    for (const text of ["a", "b"]) client.link.send(encodeMessage([ascii(text)]));
    await client.entries(2);
    expect(client.link.peer).toBeUndefined();
    for (const text of ["c", "d", "e"]) client.link.send(encodeMessage([ascii(text)]));
    expect(await received.promise).toEqual(["a", "b", "c", "d", "e"].map(ascii));
    expect(client.link.pendingBytes).toBe(0);
  });

  test("a message that a lost connection has cut off is sent again, whole", async () => {
    const received = defer<Uint8Array>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.handshake("PUB");
      if (number === 0) {
        await connection.untilBytes(100_000);
        connection.reset();
      } else {
        await connection.untilBytes(BIG_BYTES);
        const frames = await connection.untilFrames(2);
        received.resolve(frames[1]?.body as Uint8Array);
      }
    });
    using client = new Client({ endpoint: peer.endpoint });
    const big = new Uint8Array(BIG_BYTES).fill(7);
    client.link.send(encodeMessage([big]));
    expect(Buffer.compare(await received.promise, big)).toBe(0);
  });

  test("a peer that does not read fills the queue up to its bound, and the refused message changes nothing", async () => {
    const resumed = defer<void>();
    const count = defer<number>();
    await using peer = await ScriptedPeer.listen("ipc", async (connection) => {
      await connection.handshake("PUB");
      connection.pause();
      await resumed.promise;
      connection.resume();
      await connection.until(() => connection.frames.at(-1)?.body.length === 3);
      count.resolve(connection.frames.length - 2);
    });
    using client = new Client({ endpoint: peer.endpoint, limits: { maxPendingBytes: 3_000_000 } });
    await client.link.ready;
    const megabyte = encodeMessage([new Uint8Array(1_000_000)]);
    let sent = 0;
    const sendUntilRefused = () => {
      for (; sent < 100; sent += 1) client.link.send(megabyte);
    };
    expect(sendUntilRefused).toThrow("bytes wait to be sent already; the limit is 3000000");
    expect(client.link.pendingBytes).toBe(2 * megabyte.length);
    resumed.resolve();
    client.link.send(encodeMessage([ascii("end")]));
    expect(await count.promise).toBe(sent);
  });
});

describe("closing", () => {
  test("before the first connection rejects ready; no event follows, nothing can be sent", async () => {
    await using peer = await ScriptedPeer.listen("tcp", (connection) =>
      connection.handshake("PUB"),
    );
    using client = new Client({ endpoint: peer.endpoint });
    client.link.close();
    await expect(client.link.ready).rejects.toMatchObject({ code: "socket_closed" });
    expect(() => client.link.send(encodeMessage([ascii("a")]))).toThrow("the socket is closed");
    await delay(PAST_BACKOFF_MS);
    expect(client.log).toEqual([]);
  });

  test("between two attempts prevents the next one", async () => {
    const first = await ScriptedPeer.listen("tcp", () => undefined);
    await first[Symbol.asyncDispose]();
    using client = new Client({ endpoint: first.endpoint });
    await client.entries(3);
    client.link.close();
    await using peer = await ScriptedPeer.listen(first.endpoint, () => undefined);
    await delay(PAST_BACKOFF_MS);
    expect(peer.accepted).toBe(0);
    expect(client.log.length).toBe(3);
  });

  test("within a handler ends the delivery in the middle of a chunk", async () => {
    const closed = defer<void>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("PUB");
      await connection.send(octets(message(ascii("1")), message(ascii("2")), message(ascii("3"))));
      await connection.closed;
      closed.resolve();
    });
    const seen: string[] = [];
    const link = new PeerLink("SUB", {
      endpoint: peer.endpoint,
      events: {
        onMessage: ([body]) => {
          seen.push(new TextDecoder().decode(body));
          if (seen.length === 2) link.close();
        },
        onDisconnect: (error) => seen.push(error.code),
      },
    });
    await closed.promise;
    expect(seen).toEqual(["1", "2"]);
  });

  test("within onDisconnect prevents the reconnect", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("PUB");
      connection.end();
    });
    const lost = defer<void>();
    const link: PeerLink = new PeerLink("SUB", {
      endpoint: peer.endpoint,
      events: {
        onMessage: () => undefined,
        onDisconnect: () => {
          link.close();
          lost.resolve();
        },
      },
    });
    await lost.promise;
    await delay(PAST_BACKOFF_MS);
    expect(peer.accepted).toBe(1);
  });
});

test("a handler that throws does not cost the messages behind it, and its error gets out", async () => {
  await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
    await connection.handshake("PUB");
    await connection.send(octets(message(ascii("1")), message(ascii("2")), message(ascii("3"))));
  });
  // An uncaught exception would end this test run, so it is taken from where it would be thrown.
  const thrown: (() => void)[] = [];
  using spy = spyOn(globalThis, "queueMicrotask").mockImplementation(
    (task) => void thrown.push(task),
  );
  const seen: string[] = [];
  const all = defer<void>();
  const link = new PeerLink("SUB", {
    endpoint: peer.endpoint,
    events: {
      onMessage: ([body]) => {
        seen.push(new TextDecoder().decode(body));
        if (seen.length === 3) all.resolve();
        throw new Error(`handler ${seen.length}`);
      },
    },
  });
  await all.promise;
  link.close();
  expect(seen).toEqual(["1", "2", "3"]);
  expect(spy).toHaveBeenCalledTimes(3);
  expect(thrown[1]).toThrow("handler 2");
});
