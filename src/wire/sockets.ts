/** The three sockets that a client of Jupyter kernels needs: DEALER, SUB and REQ. */

import type { WireError } from "./errors.ts";
import type { WireLimits } from "./frame.ts";
import type { Peer } from "./session.ts";
import type { Endpoint } from "./transport.ts";

export type { Peer } from "./session.ts";

/** What a socket tells its owner. Handlers run synchronously while bytes are read. */
export interface SocketEvents {
  /** One complete multipart message, in order. The frames are the receiver's to keep: no buffer is reused. */
  onMessage(frames: Uint8Array[]): void;
  /** A handshake is done: after the first connection and after each reconnect. */
  onConnect?(peer: Peer): void;
  /** A connection was lost or an attempt failed. A reconnect follows unless `error.fatal`. */
  onDisconnect?(error: WireError): void;
  /** The socket gave up; nothing follows. */
  onFailure?(error: WireError): void;
}

/** How a socket connects. */
export interface SocketOptions {
  readonly endpoint: Endpoint;
  readonly events: SocketEvents;
  /** Routing id that we announce: 1–255 octets that do not start with 00; without one the peer invents one per connection. */
  readonly identity?: Uint8Array;
  /** Longest wait for one connection and its handshake. */
  readonly handshakeTimeoutMs?: number;
  /** How long to keep trying for the first connection, while the peer may not have bound yet. */
  readonly connectTimeoutMs?: number;
  /** Connect again after a loss, with back-off; default true. */
  readonly reconnect?: boolean;
  /** Overrides of the default limits. */
  readonly limits?: Partial<WireLimits>;
}

/** Sends and receives messages as they are (RFC 28); talks to ROUTER, REP and DEALER. */
export class DealerSocket {
  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  readonly ready: Promise<Peer>;

  constructor(options: SocketOptions) {
    throw new Error(`not built yet: ${options.endpoint.transport}`);
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return undefined;
  }

  /** Bytes that wait to be handed to the operating system. */
  get pendingBytes(): number {
    return 0;
  }

  /**
   * Sends one message; it waits in order until the peer's READY. The frames are copied.
   * Throws {@link SocketClosedError} and {@link SendQueueFullError}.
   */
  send(frames: readonly Uint8Array[]): void {
    throw new Error(`not built yet: ${frames.length}`);
  }

  /** Closes at once and drops what has not been handed to the operating system. No event follows. */
  close(): void {}
}

/** Receives messages of a PUB or XPUB (RFC 29). Always reads, so that the publisher never drops. */
export class SubSocket {
  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  readonly ready: Promise<Peer>;

  constructor(options: SocketOptions & { readonly topics: readonly (string | Uint8Array)[] }) {
    throw new Error(`not built yet: ${options.topics.length}`);
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return undefined;
  }

  /** Closes at once. No event follows. */
  close(): void {}
}

/** Asks an echo service (a kernel's heartbeat), which may be a REP or a ROUTER. */
export class ReqSocket {
  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  readonly ready: Promise<Peer>;

  constructor(
    options: Omit<SocketOptions, "events"> & { readonly events?: Omit<SocketEvents, "onMessage"> },
  ) {
    throw new Error(`not built yet: ${options.endpoint.transport}`);
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return undefined;
  }

  /**
   * Sends `payload` and resolves with the echo. Only a reply with the very same bytes counts, so put a
   * counter in it: then a late reply to an earlier request cannot pass for this one. Waits for the
   * connection if there is none. Rejects with {@link RequestTimeoutError}, with the error of a lost
   * connection, or with {@link SocketClosedError}.
   */
  request(payload: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    return Promise.reject(new Error(`not built yet: ${payload.length} ${timeoutMs}`));
  }

  /** Closes at once; requests that wait are rejected. */
  close(): void {}
}
