/** Keeps one socket connected to its one peer: attempts, back-off, and giving up. */

import { type Deferred, defer } from "../async.ts";
import type { Peer } from "./command.ts";
import { Connection, type ConnectionEvents, type ConnectionOptions } from "./connection.ts";
import { ConnectTimeoutError, SocketClosedError, type WireError } from "./errors.ts";
import { DEFAULT_LIMITS, type WireLimits } from "./frame.ts";
import { Outbox } from "./outbox.ts";
import type { SocketType } from "./session.ts";
import { type Endpoint, describeEndpoint } from "./transport.ts";

/** libzmq's is 30 s; a kernel's sockets answer from a thread of their own, so 10 s are ample. */
const HANDSHAKE_TIMEOUT_MS = 10_000;
const CONNECT_TIMEOUT_MS = 30_000;

const MIN_BACKOFF_MS = 1;
const MAX_BACKOFF_MS = 100;
/** A connection that lived this long was sound: the next loss starts with the shortest back-off again. */
const SOUND_AFTER_MS = 1000;

/**
 * What a socket tells its owner. Handlers run synchronously while octets are read. One that throws does
 * not disturb the stream: its error is rethrown outside, as an uncaught exception.
 */
export interface SocketEvents {
  /** One complete multipart message, in order. The frames are the receiver's to keep: no buffer is reused. */
  onMessage(frames: Uint8Array[]): void;
  /** A handshake is done: after the first connection and after each reconnect. */
  onConnect?(peer: Peer): void;
  /**
   * A connection was lost or an attempt failed. Another attempt follows, unless `error.fatal` or
   * `reconnect` is false, when `onFailure` comes next.
   */
  onDisconnect?(error: WireError): void;
  /** The socket gave up; nothing follows. */
  onFailure?(error: WireError): void;
}

/** How a socket connects. */
export interface SocketOptions {
  readonly endpoint: Endpoint;
  readonly events: SocketEvents;
  /** Routing id to announce: 1–255 octets, the first not 00. Without one the peer makes one up per connection. */
  readonly identity?: Uint8Array;
  /** Longest wait for one connection and its handshake; default 10 s. */
  readonly handshakeTimeoutMs?: number;
  /** How long to keep trying for the first connection, while the peer may not have bound yet; default 30 s. */
  readonly connectTimeoutMs?: number;
  /** Connect again after a loss, for as long as it takes, with back-off; default true. */
  readonly reconnect?: boolean;
  /** Overrides of {@link DEFAULT_LIMITS}. */
  readonly limits?: Partial<WireLimits>;
}

/** What all sockets share. Each attempt is a new {@link Connection}; the {@link Outbox} outlives them. */
export class PeerLink {
  readonly #options: SocketOptions;
  readonly #connectionOptions: ConnectionOptions;
  readonly #connectTimeoutMs: number;
  readonly #outbox: Outbox;
  readonly #ready: Deferred<Peer> = defer();
  readonly #deadline: ReturnType<typeof setTimeout>;
  #connection: Connection | undefined;
  #peer: Peer | undefined;
  #connectedAt: number | undefined;
  #failures = 0;
  #retryTimer: ReturnType<typeof setTimeout> | undefined;
  #lastError: WireError | undefined;
  #ended: SocketClosedError | undefined;

  /** Starts to connect. `preamble` is sent at the start of each connection. Throws {@link IdentityError}. */
  constructor(
    socketType: SocketType,
    options: SocketOptions,
    preamble: readonly Uint8Array[] = [],
  ) {
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#options = options;
    this.#connectionOptions = {
      socketType,
      limits,
      preamble,
      endpoint: options.endpoint,
      identity: options.identity,
      handshakeTimeoutMs: options.handshakeTimeoutMs ?? HANDSHAKE_TIMEOUT_MS,
    };
    this.#outbox = new Outbox(limits.maxPendingBytes);
    this.#connectTimeoutMs = options.connectTimeoutMs ?? CONNECT_TIMEOUT_MS;
    this.#connect();
    this.#deadline = setTimeout(() => this.#onDeadline(), this.#connectTimeoutMs);
  }

  /** Resolves with the first peer; rejects when the link gives up or is closed before. */
  get ready(): Promise<Peer> {
    return this.#ready.promise;
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return this.#peer;
  }

  /** Bytes of messages that have not been handed to the operating system whole. */
  get pendingBytes(): number {
    return this.#outbox.bytes;
  }

  /**
   * Sends an encoded message, now or after the next handshake. One that a lost connection has cut off is
   * sent again whole, since a peer drops partial messages.
   * Throws {@link SocketClosedError} and {@link SendQueueFullError}.
   */
  send(message: Uint8Array): void {
    if (this.#ended) throw this.#ended;
    this.#outbox.push(message);
    this.#connection?.flush();
  }

  /** Forgets the messages that have not been sent. */
  clearPending(): void {
    this.#outbox.clear();
  }

  /** Closes at once, with no further event. What has been handed to the operating system still arrives. */
  close(): void {
    this.#end(new SocketClosedError());
  }

  #connect(): void {
    const events: ConnectionEvents = {
      onReady: (peer) => this.#onReady(peer),
      onMessage: (frames) => this.#notify(() => this.#options.events.onMessage(frames)),
      onClosed: (error) => this.#onClosed(error),
    };
    this.#connection = new Connection(this.#connectionOptions, this.#outbox, events);
  }

  #onReady(peer: Peer): void {
    clearTimeout(this.#deadline);
    this.#peer = peer;
    this.#connectedAt = performance.now();
    this.#ready.resolve(peer);
    this.#notify(() => this.#options.events.onConnect?.(peer));
  }

  #onClosed(error: WireError): void {
    const wasConnected = this.#connectedAt !== undefined;
    const lifetime = performance.now() - (this.#connectedAt ?? Number.POSITIVE_INFINITY);
    this.#failures = lifetime >= SOUND_AFTER_MS ? 0 : this.#failures + 1;
    this.#connection = undefined;
    this.#connectedAt = undefined;
    this.#peer = undefined;
    this.#lastError = error;
    this.#notify(() => this.#options.events.onDisconnect?.(error));
    if (this.#ended) return;
    if (error.fatal || (wasConnected && this.#options.reconnect === false)) this.#fail(error);
    else this.#retryTimer = setTimeout(() => this.#connect(), this.#backoff());
  }

  /** "It should increase the delay between reconnects." */
  #backoff(): number {
    return Math.min(MIN_BACKOFF_MS * 2 ** this.#failures, MAX_BACKOFF_MS);
  }

  #onDeadline(): void {
    const where = describeEndpoint(this.#options.endpoint);
    this.#fail(new ConnectTimeoutError(where, this.#connectTimeoutMs, this.#lastError));
  }

  #fail(error: WireError): void {
    this.#ready.reject(error);
    this.#end(new SocketClosedError(error));
    this.#notify(() => this.#options.events.onFailure?.(error));
  }

  #end(reason: SocketClosedError): void {
    if (this.#ended) return;
    this.#ended = reason;
    this.#ready.reject(reason);
    clearTimeout(this.#deadline);
    clearTimeout(this.#retryTimer);
    this.#connection?.close();
    this.#connection = undefined;
    this.#peer = undefined;
    this.#outbox.clear();
  }

  #notify(handler: () => void): void {
    try {
      handler();
    } catch (error) {
      queueMicrotask(() => {
        throw error;
      });
    }
  }
}
