import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { DealerSocket, ReqSocket, SubSocket } from "../../../src/wire/sockets.ts";
import {
  type PeerConnection,
  ScriptedPeer,
  ascii,
  command,
  greeting,
  message,
  property,
  ready,
} from "../../support/zmtp-peer.ts";

const EMPTY = new Uint8Array(0);
const IGNORE = { onMessage: () => undefined };
/** More than any socket buffer takes at once. */
const BIG_BYTES = 20_000_000;
/** For requests that must be answered; only a failing test waits this long. */
const PATIENT_MS = 5000;

function textsOf(connection: PeerConnection): string[] {
  return connection.frames.map(({ flags, body }) => `${flags} ${new TextDecoder().decode(body)}`);
}

describe("DEALER", () => {
  test("announces its routing id, and sends nothing before the peer's READY, then all in order", async () => {
    const seen = defer<string[]>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.send(greeting());
      const [first] = await connection.untilFrames(1);
      expect(first?.body).toEqual(ready("DEALER", property("Identity", ascii("me"))).slice(2));
      // A second round trip: what had been sent too early would be here now.
      await connection.send(ready("ROUTER"));
      expect(connection.frames.length).toBe(1);
      await connection.untilFrames(4);
      seen.resolve(textsOf(connection).slice(1));
    });
    const socket = new DealerSocket({
      endpoint: peer.endpoint,
      identity: ascii("me"),
      events: IGNORE,
    });
    socket.send([ascii("a"), ascii("b")]);
    expect(socket.pendingBytes).toBe(6);
    expect(socket.peer).toBeUndefined();
    await socket.ready;
    socket.send([ascii("c")]);
    expect(await seen.promise).toEqual(["1 a", "0 b", "0 c"]);
    expect(socket.pendingBytes).toBe(0);
    socket.close();
  });

  test("copies what it sends, so the caller may reuse its buffers", async () => {
    const seen = defer<string[]>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("ROUTER");
      await connection.untilFrames(2);
      seen.resolve(textsOf(connection).slice(1));
    });
    const socket = new DealerSocket({ endpoint: peer.endpoint, events: IGNORE });
    const body = ascii("before");
    socket.send([body]);
    body.fill(0x21);
    expect(await seen.promise).toEqual(["0 before"]);
    socket.close();
  });

  test("answers a PING between two messages, never within one", async () => {
    const seen = defer<(readonly [number, number, string])[]>();
    await using peer = await ScriptedPeer.listen("ipc", async (connection) => {
      await connection.handshake("ROUTER");
      connection.pause();
      // The client has written what fits; now the PING comes, and only then do we read on.
      await connection.send(command("PING", ascii("\0\0ctx")), message(ascii("ping is out")));
      await pinged.promise;
      connection.resume();
      await connection.untilBytes(2 * BIG_BYTES);
      const frames = await connection.untilFrames(4);
      const start = (body: Uint8Array) => new TextDecoder().decode(body.subarray(0, 8));
      seen.resolve(
        frames.slice(1).map(({ flags, body }) => [flags, body.length, start(body)] as const),
      );
    });
    const pinged = defer<void>();
    const socket = new DealerSocket({
      endpoint: peer.endpoint,
      events: { onMessage: () => pinged.resolve() },
    });
    socket.send([new Uint8Array(BIG_BYTES).fill(0x61)]);
    socket.send([new Uint8Array(BIG_BYTES).fill(0x62)]);
    expect(await seen.promise).toEqual([
      [2, BIG_BYTES, "aaaaaaaa"],
      [4, 8, "\x04PONGctx"],
      [2, BIG_BYTES, "bbbbbbbb"],
    ]);
    socket.close();
  });

  test("keeps a bounded number of PONGs for a peer that pings and does not read", async () => {
    const count = defer<number>();
    await using peer = await ScriptedPeer.listen("ipc", async (connection) => {
      await connection.handshake("ROUTER");
      connection.pause();
      const pings = Array.from({ length: 10_000 }, () => command("PING", new Uint8Array(2)));
      await connection.send(...pings, message(ascii("pings are out")));
      await pinged.promise;
      connection.resume();
      await connection.until(() => textsOf(connection).at(-1) === "0 end");
      count.resolve(textsOf(connection).filter((text) => text === "4 \x04PONG").length);
    });
    const pinged = defer<void>();
    const socket = new DealerSocket({
      endpoint: peer.endpoint,
      events: { onMessage: () => pinged.resolve() },
    });
    await socket.ready;
    socket.send([new Uint8Array(BIG_BYTES)]);
    await pinged.promise;
    socket.send([ascii("end")]);
    const pongs = await count.promise;
    expect(pongs).toBeGreaterThan(0);
    expect(pongs).toBeLessThan(2000);
    socket.close();
  });
});

describe("SUB", () => {
  test("subscribes to each topic after READY, again after a reconnect, in the 3.0 form", async () => {
    const seen: string[][] = [];
    const both = defer<void>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.send(greeting());
      await connection.untilFrames(1);
      expect(connection.received.subarray(10, 12)).toEqual(Uint8Array.of(3, 0));
      expect(connection.frames.length).toBe(1);
      await connection.send(ready("XPUB"));
      await connection.untilFrames(4);
      seen.push(textsOf(connection).slice(1));
      if (number === 0) connection.end();
      else both.resolve();
    });
    const topics = ["", "stream.", Uint8Array.of(0xff)];
    const socket = new SubSocket({ endpoint: peer.endpoint, topics, events: IGNORE });
    await both.promise;
    const subscriptions = ["0 \x01", "0 \x01stream.", "0 \x01\ufffd"];
    expect(seen).toEqual([subscriptions, subscriptions]);
    socket.close();
  });

  test("tells which kind of publisher it has, while it has one", async () => {
    await using peer = await ScriptedPeer.listen("ipc", async (connection, number) => {
      await connection.handshake(number === 0 ? "PUB" : "XPUB");
      if (number === 0) connection.end();
    });
    const second = defer<void>();
    const seen: unknown[] = [];
    const socket: SubSocket = new SubSocket({
      endpoint: peer.endpoint,
      topics: [],
      events: {
        ...IGNORE,
        onConnect: () => {
          seen.push(socket.peer?.socketType);
          if (seen.length === 3) second.resolve();
        },
        onDisconnect: () => seen.push(socket.peer),
      },
    });
    await second.promise;
    expect(seen).toEqual(["PUB", undefined, "XPUB"]);
    expect(await socket.ready).toMatchObject({ socketType: "PUB" });
    socket.close();
    expect(socket.peer).toBeUndefined();
  });

  test("tells a peer of the wrong kind why it hangs up", async () => {
    const seen = defer<string[]>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("ROUTER");
      await connection.closed;
      seen.resolve(textsOf(connection).slice(1));
    });
    const socket = new SubSocket({ endpoint: peer.endpoint, topics: [""], events: IGNORE });
    await expect(socket.ready).rejects.toMatchObject({ code: "socket_type" });
    expect(await seen.promise).toEqual(["4 \x05ERROR\x13Invalid socket type"]);
  });

  test("hands over frames that are the receiver's own: one that is kept holds no other octet", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("PUB");
      await connection.send(message(ascii("abc"), new Uint8Array(300)), message(ascii("end")));
    });
    const sizes = defer<number[]>();
    const socket = new SubSocket({
      endpoint: peer.endpoint,
      topics: [""],
      events: {
        onMessage: (frames) => sizes.resolve(frames.map(({ buffer }) => buffer.byteLength)),
      },
    });
    expect(await sizes.promise).toEqual([3, 300]);
    socket.close();
  });
});

describe("REQ", () => {
  /** A peer that answers each request with `replies`, in their order. */
  function answering(replies: (payload: Uint8Array) => Uint8Array[]): Promise<ScriptedPeer> {
    return ScriptedPeer.listen("tcp", async (connection) => {
      await connection.handshake("ROUTER");
      for (let requests = 1; ; requests += 1) {
        const frames = await connection.untilFrames(1 + 2 * requests);
        await connection.send(...replies((frames[2 * requests] as { body: Uint8Array }).body));
      }
    });
  }

  test("sends an empty delimiter and the payload, and resolves with the echo", async () => {
    const seen = defer<string[]>();
    await using peer = await ScriptedPeer.listen("ipc", async (connection) => {
      await connection.handshake("REP");
      await connection.untilFrames(3);
      seen.resolve(textsOf(connection));
      await connection.send(message(EMPTY, ascii("beat 1")));
    });
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    expect(await socket.request(ascii("beat 1"), PATIENT_MS)).toEqual(ascii("beat 1"));
    expect((await seen.promise).slice(1)).toEqual(["1 ", "0 beat 1"]);
    socket.close();
  });

  test("takes nothing for its own but an empty frame and the very payload", async () => {
    await using peer = await answering((payload) => [
      message(EMPTY, ascii("stale")),
      message(payload),
      message(EMPTY, payload, EMPTY),
      message(ascii("x"), payload),
      message(EMPTY),
    ]);
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    await socket.ready;
    await expect(socket.request(ascii("1"), 100)).rejects.toMatchObject({
      code: "request_timeout",
    });
    socket.close();
  });

  test("overlooks a stale reply that comes before its own", async () => {
    await using peer = await answering((payload) => [
      message(EMPTY, ascii("stale")),
      message(EMPTY, payload),
    ]);
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    expect(await socket.request(ascii("1"), PATIENT_MS)).toEqual(ascii("1"));
    expect(await socket.request(ascii("2"), PATIENT_MS)).toEqual(ascii("2"));
    socket.close();
  });

  test("gives a late reply to nobody, and goes on", async () => {
    await using peer = await answering((payload) =>
      payload[0] === 0x31 ? [] : [message(EMPTY, ascii("1")), message(EMPTY, payload)],
    );
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    await socket.ready;
    await expect(socket.request(ascii("1"), 20)).rejects.toMatchObject({ code: "request_timeout" });
    expect(await socket.request(ascii("2"), PATIENT_MS)).toEqual(ascii("2"));
    socket.close();
  });

  test("may have several requests under way, answered in any order", async () => {
    const waiting: Uint8Array[] = [];
    await using peer = await answering((payload) => {
      waiting.unshift(payload);
      return waiting.length < 3 ? [] : waiting.map((body) => message(EMPTY, body));
    });
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    const replies = ["1", "2", "3"].map((text) => socket.request(ascii(text), PATIENT_MS));
    expect(await Promise.all(replies)).toEqual(["1", "2", "3"].map(ascii));
    socket.close();
  });

  test("rejects requests of a lost connection at once; the next one waits for the new connection", async () => {
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.handshake("REP");
      const frames = await connection.untilFrames(3);
      if (number === 0) connection.end();
      else await connection.send(message(EMPTY, (frames[2] as { body: Uint8Array }).body));
    });
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    await expect(socket.request(ascii("1"), PATIENT_MS)).rejects.toMatchObject({
      code: "connection_lost",
    });
    expect(socket.peer).toBeUndefined();
    expect(await socket.request(ascii("2"), PATIENT_MS)).toEqual(ascii("2"));
    socket.close();
  });

  test("a request that a lost connection has cut off is rejected, not sent again", async () => {
    const seen = defer<string[]>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection, number) => {
      await connection.handshake("REP");
      if (number === 0) {
        await connection.untilBytes(1000);
        connection.reset();
      } else {
        await connection.untilFrames(3);
        seen.resolve(textsOf(connection).slice(1));
      }
    });
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    await expect(socket.request(new Uint8Array(BIG_BYTES), PATIENT_MS)).rejects.toMatchObject({
      code: "connection_lost",
    });
    socket.request(ascii("2"), PATIENT_MS).catch(() => undefined);
    expect(await seen.promise).toEqual(["1 ", "0 2"]);
    socket.close();
  });

  test("a request that timed out before there was a connection is never sent", async () => {
    const seen = defer<string[]>();
    const timedOut = defer<void>();
    await using peer = await ScriptedPeer.listen("tcp", async (connection) => {
      await timedOut.promise;
      await connection.handshake("REP");
      await connection.untilFrames(3);
      seen.resolve(textsOf(connection).slice(1));
    });
    const socket = new ReqSocket({ endpoint: peer.endpoint });
    await expect(socket.request(ascii("1"), 1)).rejects.toMatchObject({ code: "request_timeout" });
    timedOut.resolve();
    socket.request(ascii("2"), PATIENT_MS).catch(() => undefined);
    expect(await seen.promise).toEqual(["1 ", "0 2"]);
    socket.close();
  });

  test("rejects what waits when it is closed or gives up, and everything after", async () => {
    await using peer = await ScriptedPeer.listen("tcp", (connection) =>
      connection.handshake("PUB"),
    );
    const failed = new ReqSocket({ endpoint: peer.endpoint });
    const reason = "the socket has failed: a REQ socket cannot talk to the peer's PUB socket";
    await expect(failed.request(ascii("1"), PATIENT_MS)).rejects.toThrow(reason);
    await expect(failed.request(ascii("2"), PATIENT_MS)).rejects.toThrow(reason);

    const closed = new ReqSocket({ endpoint: peer.endpoint });
    const waiting = closed.request(ascii("1"), PATIENT_MS);
    closed.close();
    await expect(waiting).rejects.toMatchObject({ code: "socket_closed" });
    await expect(closed.request(ascii("2"), PATIENT_MS)).rejects.toMatchObject({
      code: "socket_closed",
    });
  });
});
