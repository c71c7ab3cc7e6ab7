/**
 * The other side of a ZMTP connection, for tests: a builder of raw octets that shares no code with
 * `src/wire/`, and a peer that plays a script on a real TCP or unix socket.
 */

import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { type AddressInfo, type Server, type Socket, createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type Deferred, defer } from "../../src/async.ts";
import type { Endpoint } from "../../src/wire/transport.ts";

/** Octets of an ASCII string. */
export function ascii(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

/** Octets from hex. */
export function hex(text: string): Uint8Array {
  return Uint8Array.fromHex(text);
}

/** All parts in one piece. */
export function octets(...parts: readonly Uint8Array[]): Uint8Array {
  return new Uint8Array(Buffer.concat(parts));
}

/** A greeting; every field can be wrong. */
export function greeting(
  fields: { major?: number; minor?: number; mechanism?: string; signatureEnd?: number } = {},
): Uint8Array {
  const bytes = new Uint8Array(64);
  bytes.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, fields.signatureEnd ?? 0x7f]);
  bytes.set([fields.major ?? 3, fields.minor ?? 1], 10);
  bytes.set(ascii(fields.mechanism ?? "NULL"), 12);
  return bytes;
}

/** One frame with exactly these flags; LONG (02) decides how the size is written. */
export function frame(flags: number, body: Uint8Array, size = BigInt(body.length)): Uint8Array {
  if ((flags & 2) === 0) return octets(Uint8Array.of(flags, Number(size)), body);
  return octets(Uint8Array.of(flags), hex(size.toString(16).padStart(16, "0")), body);
}

/** A message in the usual form: short frames up to 255 octets, MORE on all but the last. */
export function message(...frames: readonly Uint8Array[]): Uint8Array {
  const last = frames.length - 1;
  return octets(
    ...frames.map((body, at) => frame((at < last ? 1 : 0) | (body.length > 255 ? 2 : 0), body)),
  );
}

/** A command frame. */
export function command(name: string, data: Uint8Array = new Uint8Array(0)): Uint8Array {
  const body = octets(Uint8Array.of(name.length), ascii(name), data);
  return frame(body.length > 255 ? 6 : 4, body);
}

/** One property of a READY. */
export function property(name: string, value: Uint8Array): Uint8Array {
  const size = hex(value.length.toString(16).padStart(8, "0"));
  return octets(Uint8Array.of(name.length), ascii(name), size, value);
}

/** A READY of this socket type. */
export function ready(socketType: string, ...properties: readonly Uint8Array[]): Uint8Array {
  return command("READY", octets(property("Socket-Type", ascii(socketType)), ...properties));
}

/** A frame as it came. */
export interface ReceivedFrame {
  readonly flags: number;
  readonly body: Uint8Array;
}

/** The complete frames in `bytes`. */
export function readFrames(bytes: Uint8Array): ReceivedFrame[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const frames: ReceivedFrame[] = [];
  for (let at = 0; at + 2 <= bytes.length;) {
    const flags = view.getUint8(at);
    const start = at + ((flags & 2) === 0 ? 2 : 9);
    if (start > bytes.length) break;
    const size = (flags & 2) === 0 ? view.getUint8(at + 1) : Number(view.getBigUint64(at + 1));
    if (start + size > bytes.length) break;
    frames.push({ flags, body: bytes.subarray(start, start + size) });
    at = start + size;
  }
  return frames;
}

/** The peer's end of one accepted connection. Waits reject when the client has closed it. */
export class PeerConnection {
  readonly #socket: Socket;
  readonly #closed: Deferred<void> = defer();
  #chunks: Uint8Array[] = [];
  #receivedBytes = 0;
  #waiting: Array<() => void> = [];

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.#chunks.push(new Uint8Array(chunk));
      this.#receivedBytes += chunk.length;
      this.#wake();
    });
    // A reset ends a connection like any other end, for these tests.
    socket.on("error", () => socket.destroy());
    socket.on("close", () => {
      this.#closed.resolve();
      this.#wake();
    });
  }

  /** Settles when the connection has ended, from whichever side. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** All octets from the client so far. */
  get received(): Uint8Array {
    const all = octets(...this.#chunks);
    this.#chunks = [all];
    return all;
  }

  /** The client's complete frames so far, after its greeting. */
  get frames(): ReceivedFrame[] {
    return readFrames(this.received.subarray(64));
  }

  /** Sends octets in one write; resolves when the system has taken them. */
  send(...parts: readonly Uint8Array[]): Promise<void> {
    return new Promise((resolve) => {
      this.#socket.write(octets(...parts), () => resolve());
    });
  }

  /** Waits until `condition` holds for what the client has sent. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) {
      if (this.#socket.destroyed) throw new Error("the client closed the connection");
      await new Promise<void>((resolve) => this.#waiting.push(resolve));
    }
  }

  /** Waits for that many octets. */
  untilBytes(count: number): Promise<void> {
    return this.until(() => this.#receivedBytes >= count);
  }

  /** Waits for that many frames after the greeting; the first is the client's READY. */
  async untilFrames(count: number): Promise<ReceivedFrame[]> {
    await this.until(() => this.frames.length >= count);
    return this.frames;
  }

  /** The peer's part of a handshake: greeting, READY of this type, and the client's READY. */
  async handshake(socketType: string): Promise<void> {
    await this.send(greeting(), ready(socketType));
    await this.untilFrames(1);
  }

  /** Stops reading: the client's writes will block. */
  pause(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  /** Closes in order (FIN), after what has been sent. */
  end(): void {
    this.#socket.end();
  }

  /** Closes with RST; on a unix socket that is a close like any other. */
  reset(): void {
    this.#socket.resetAndDestroy();
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** What a peer does with each connection, the first being number 0. A script whose client hangs up just ends. */
export type PeerScript = (connection: PeerConnection, number: number) => Promise<void> | void;

/** A server that plays `script` for each connection. */
export class ScriptedPeer implements AsyncDisposable {
  readonly endpoint: Endpoint;
  readonly #server: Server;
  readonly #connections: PeerConnection[];

  private constructor(server: Server, connections: PeerConnection[], endpoint: Endpoint) {
    this.#server = server;
    this.#connections = connections;
    this.endpoint = endpoint;
  }

  /** Binds to a free port, or to a path in a new folder; or to `where` again, after an earlier peer. */
  static async listen(where: "tcp" | "ipc" | Endpoint, script: PeerScript): Promise<ScriptedPeer> {
    const connections: PeerConnection[] = [];
    const server = createServer({ allowHalfOpen: false }, (socket) => {
      const connection = new PeerConnection(socket);
      connections.push(connection);
      Promise.resolve(script(connection, connections.length - 1)).catch(() => connection.end());
    });
    const endpoint = typeof where === "string" ? freeEndpoint(where) : where;
    if (endpoint.transport === "ipc") mkdirSync(dirname(endpoint.path), { recursive: true });
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen({ ...endpoint }, resolve);
    });
    if (endpoint.transport === "ipc") return new ScriptedPeer(server, connections, endpoint);
    const { port } = server.address() as AddressInfo;
    return new ScriptedPeer(server, connections, { ...endpoint, port });
  }

  /** How many connections there have been. */
  get accepted(): number {
    return this.#connections.length;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
    for (const connection of this.#connections) connection.reset();
    await Promise.all(this.#connections.map((connection) => connection.closed));
    if (this.endpoint.transport === "ipc") {
      rmSync(dirname(this.endpoint.path), { recursive: true, force: true });
    }
  }
}

/** An address that nobody uses: port 0 for the system to choose, or a path in a new folder. */
export function freeEndpoint(transport: "tcp" | "ipc"): Endpoint {
  if (transport === "tcp") return { transport, host: "127.0.0.1", port: 0 };
  return { transport, path: join(mkdtempSync(join(tmpdir(), "zmtp-")), "peer") };
}
