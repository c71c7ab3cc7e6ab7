/**
 * The other side of a ZMTP 3.0 connection, for scripted kernels. Written apart
 * from `src/wire`, so that a mistake there is not made here too. It trusts its
 * peer, sends what it is told and checks nothing.
 */

/** A client that has finished the handshake. */
export interface SocketPeer {
  /** The routing id that it announced; empty if it did not. */
  readonly identity: Uint8Array;
  send(frames: readonly Uint8Array[]): void;
  /** Closes our direction only. */
  halfClose(): void;
  /** Closes the connection. */
  cut(): void;
}

/** What a listening socket reports. */
export interface ListenerEvents {
  onMessage(peer: SocketPeer, frames: Uint8Array[]): void;
  onOpen?(peer: SocketPeer): void;
  onClose?(peer: SocketPeer): void;
}

interface Connection extends SocketPeer {
  received: Uint8Array;
  waiting: Uint8Array[];
  frames: Uint8Array[];
  identity: Uint8Array;
  greeted: boolean;
}

type Stream = Bun.Socket<Connection>;

const MORE = 1;
const LONG = 2;
const COMMAND = 4;
const text = (value: string) => new TextEncoder().encode(value);

/** Binds a socket of a type (ROUTER, XPUB…) at a unix socket's path, and serves all who connect. */
export function listen(path: string, socketType: () => string, events: ListenerEvents): Disposable {
  const server = Bun.listen<Connection>({
    unix: path,
    socket: {
      open(stream) {
        stream.data = connectionOf(stream);
        write(stream, greeting());
      },
      data: (stream, chunk) => receive(stream, chunk, socketType, events),
      drain: (stream) => flush(stream),
      close: (stream) => events.onClose?.(stream.data),
      error: () => undefined,
    },
  });
  return { [Symbol.dispose]: () => server.stop(true) };
}

function connectionOf(stream: Stream): Connection {
  return {
    received: new Uint8Array(0),
    waiting: [],
    frames: [],
    identity: new Uint8Array(0),
    greeted: false,
    send: (frames) =>
      frames.forEach((body, i) => write(stream, encode(body, i < frames.length - 1 ? MORE : 0))),
    halfClose: () => stream.shutdown(),
    cut: () => stream.terminate(),
  };
}

function greeting(): Uint8Array {
  const octets = new Uint8Array(64);
  octets.set([0xff], 0);
  octets.set([0x7f, 3, 0, ...text("NULL")], 9);
  return octets;
}

function ready(socketType: string): Uint8Array {
  const value = text(socketType);
  const body = [5, ...text("READY"), 11, ...text("Socket-Type"), 0, 0, 0, value.length, ...value];
  return encode(new Uint8Array(body), COMMAND);
}

function encode(body: Uint8Array, flags: number): Uint8Array {
  if (body.length < 256) return new Uint8Array([flags, body.length, ...body]);
  const frame = new Uint8Array(9 + body.length);
  frame[0] = flags | LONG;
  new DataView(frame.buffer).setBigUint64(1, BigInt(body.length));
  frame.set(body, 9);
  return frame;
}

function write(stream: Stream, bytes: Uint8Array): void {
  stream.data.waiting.push(bytes);
  flush(stream);
}

function flush(stream: Stream): void {
  const { waiting } = stream.data;
  for (let bytes = waiting[0]; bytes; bytes = waiting[0]) {
    const written = Math.max(stream.write(bytes), 0);
    if (written < bytes.length) {
      waiting[0] = bytes.subarray(written);
      return;
    }
    waiting.shift();
  }
}

function receive(
  stream: Stream,
  chunk: Uint8Array,
  socketType: () => string,
  events: ListenerEvents,
): void {
  const connection = stream.data;
  connection.received = new Uint8Array(Buffer.concat([connection.received, chunk]));
  if (!connection.greeted) {
    if (connection.received.length < 64) return;
    connection.received = connection.received.subarray(64);
    connection.greeted = true;
    write(stream, ready(socketType()));
  }
  for (let frame = takeFrame(connection); frame; frame = takeFrame(connection)) {
    if (frame.flags & COMMAND) {
      connection.identity = identityOf(frame.body);
      events.onOpen?.(connection);
      continue;
    }
    connection.frames.push(frame.body);
    if (frame.flags & MORE) continue;
    events.onMessage(connection, connection.frames.splice(0));
  }
}

function takeFrame(connection: Connection): { flags: number; body: Uint8Array } | undefined {
  const { received } = connection;
  const flags = received[0] ?? 0;
  const head = flags & LONG ? 9 : 2;
  if (received.length < head) return undefined;
  const view = new DataView(received.buffer, received.byteOffset);
  const size = flags & LONG ? Number(view.getBigUint64(1)) : view.getUint8(1);
  if (received.length < head + size) return undefined;
  connection.received = received.subarray(head + size);
  return { flags, body: received.slice(head, head + size) };
}

/** The value of the property `Identity` in a READY command. */
function identityOf(body: Uint8Array): Uint8Array {
  const at = Buffer.from(body).indexOf("\x08Identity", 0, "latin1");
  if (at < 0) return new Uint8Array(0);
  const size = new DataView(body.buffer, body.byteOffset).getUint32(at + 9);
  return body.slice(at + 13, at + 13 + size);
}
