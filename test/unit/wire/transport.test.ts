import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import type { WireError } from "../../../src/wire/errors.ts";
import { type Endpoint, Transport, describeEndpoint } from "../../../src/wire/transport.ts";
import { ScriptedPeer, ascii } from "../../support/zmtp-peer.ts";

/** More than any socket buffer takes at once. */
const BIG_BYTES = 20_000_000;

class Client {
  readonly opened = defer<void>();
  readonly closed = defer<unknown>();
  readonly failed = defer<WireError>();
  readonly drained = defer<void>();
  readonly events: string[] = [];
  readonly transport: Transport;

  constructor(endpoint: Endpoint) {
    const note = (event: string) => this.events.push(event);
    this.transport = new Transport(endpoint, {
      onOpen: () => (note("open"), this.opened.resolve()),
      onData: (chunk) => note(`data ${chunk.length}`),
      onDrained: () => (note("drained"), this.drained.resolve()),
      onFailed: (error) => (note("failed"), this.failed.resolve(error)),
      onClosed: (cause) => (note("closed"), this.closed.resolve(cause)),
    });
  }
}

test("endpoints are shown in ZeroMQ's notation", () => {
  expect(describeEndpoint({ transport: "tcp", host: "127.0.0.1", port: 5555 })).toBe(
    "tcp://127.0.0.1:5555",
  );
  expect(describeEndpoint({ transport: "tcp", host: "::1", port: 5555 })).toBe("tcp://[::1]:5555");
  expect(describeEndpoint({ transport: "ipc", path: "/tmp/k-1" })).toBe("ipc:///tmp/k-1");
});

for (const transport of ["tcp", "ipc"] as const) {
  describe(`over ${transport}`, () => {
    test("a write that the system takes only in part goes on by itself until the peer has all", async () => {
      const all = defer<Uint8Array>();
      await using peer = await ScriptedPeer.listen(transport, async (connection) => {
        connection.pause();
        await resumed.promise;
        connection.resume();
        await connection.untilBytes(BIG_BYTES + 3);
        all.resolve(connection.received);
      });
      const resumed = defer<void>();
      const client = new Client(peer.endpoint);
      await client.opened.promise;

      const big = new Uint8Array(BIG_BYTES).map((_, at) => at * 31 + (at >> 8));
      expect(client.transport.writable).toBe(true);
      expect(client.transport.write(big)).toBe(false);
      expect(client.transport.writable).toBe(false);
      resumed.resolve();
      await client.drained.promise;
      expect(client.transport.writable).toBe(true);
      expect(client.transport.write(ascii("end"))).toBe(true);

      const received = await all.promise;
      expect(Buffer.compare(received.subarray(0, BIG_BYTES), big)).toBe(0);
      expect(received.subarray(BIG_BYTES)).toEqual(ascii("end"));
      client.transport.close();
    });

    test("chunks are never used again", async () => {
      await using peer = await ScriptedPeer.listen(transport, async (connection) => {
        for (let octet = 0; octet < 50; octet += 1)
          await connection.send(new Uint8Array(10_000).fill(octet));
        connection.end();
      });
      const kept: Uint8Array[] = [];
      const closed = defer<void>();
      new Transport(peer.endpoint, {
        onOpen: () => undefined,
        onData: (chunk) => kept.push(chunk),
        onDrained: () => undefined,
        onFailed: closed.reject,
        onClosed: () => closed.resolve(),
      });
      await closed.promise;
      const all = Buffer.concat(kept);
      expect(all.length).toBe(500_000);
      expect(all.every((octet, at) => octet === Math.floor(at / 10_000))).toBe(true);
    });

    test("the peer's close is reported once, after all data", async () => {
      await using peer = await ScriptedPeer.listen(transport, async (connection) => {
        await connection.send(ascii("bye"));
        connection.end();
      });
      const client = new Client(peer.endpoint);
      expect(await client.closed.promise).toBeUndefined();
      expect(client.transport.writable).toBe(false);
      client.transport.close();
      expect(client.events).toEqual(["open", "data 3", "closed"]);
    });

    test("after our close what was written arrives, and no event follows", async () => {
      const seen = defer<Uint8Array>();
      await using peer = await ScriptedPeer.listen(transport, async (connection) => {
        await connection.send(ascii("hello"));
        await connection.closed;
        seen.resolve(connection.received);
      });
      const client = new Client(peer.endpoint);
      await client.opened.promise;
      client.transport.write(ascii("last words"));
      client.transport.close();
      expect(await seen.promise).toEqual(ascii("last words"));
      expect(client.events).toEqual(["open"]);
    });

    test("a close before the stream is open leaves no connection behind", async () => {
      const gone = defer<void>();
      await using peer = await ScriptedPeer.listen(transport, (connection) =>
        connection.closed.then(gone.resolve),
      );
      const client = new Client(peer.endpoint);
      await Promise.resolve();
      await Promise.resolve();
      client.transport.close();
      await gone.promise;
      expect(client.events).toEqual([]);
    });
  });
}

test("a reset is a close with the system's error", async () => {
  await using peer = await ScriptedPeer.listen("tcp", (connection) => connection.reset());
  const client = new Client(peer.endpoint);
  expect(await client.closed.promise).toMatchObject({ code: "ECONNRESET" });
});

describe("an attempt that fails is reported, never thrown", () => {
  const folder = import.meta.dir;
  for (const [name, endpoint, code] of [
    ["no such socket", { transport: "ipc", path: `${folder}/absent` }, "ENOENT"],
    ["a file that is no socket", { transport: "ipc", path: import.meta.path }, "ECONNREFUSED"],
    ["no such host", { transport: "tcp", host: "absent.invalid", port: 1 }, undefined],
  ] as const) {
    test(name, async () => {
      const client = new Client(endpoint);
      const error = await client.failed.promise;
      expect(error).toMatchObject({ code: "connect_failed", fatal: false });
      if (code) expect(error).toMatchObject({ systemCode: code });
      expect(error.message).toContain(describeEndpoint(endpoint));
    });
  }

  test("a port where nobody listens", async () => {
    const peer = await ScriptedPeer.listen("tcp", () => undefined);
    await peer[Symbol.asyncDispose]();
    const client = new Client(peer.endpoint);
    expect(await client.failed.promise).toMatchObject({ systemCode: "ECONNREFUSED" });
  });

  test("a socket path that is too long for the system, which no retry will mend", async () => {
    const client = new Client({ transport: "ipc", path: `/tmp/${"x".repeat(200)}` });
    const error = await client.failed.promise;
    expect(error).toMatchObject({ code: "endpoint_invalid", fatal: true });
    expect(error.message).toEndWith("the path has 205 bytes");
  });

  test("a port that does not exist, and not before the constructor has returned", async () => {
    const client = new Client({ transport: "tcp", host: "127.0.0.1", port: 70_000 });
    expect(client.events).toEqual([]);
    expect(await client.failed.promise).toBeInstanceOf(Error);
  });
});
