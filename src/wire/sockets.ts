/** The three sockets that a client of Jupyter kernels needs: DEALER, SUB and REQ. */

import { type Deferred, defer } from "../async.ts";
import { debug } from "../log.ts";
import { type Peer, encodeSubscription } from "./command.ts";
import { RequestTimeoutError, SocketClosedError, type WireError } from "./errors.ts";
import { encodeMessage } from "./frame.ts";
import { PeerLink, type SocketEvents, type SocketOptions } from "./peer-link.ts";

export type { Peer } from "./command.ts";
export type { SocketEvents, SocketOptions } from "./peer-link.ts";

/** Sends and receives messages as they are (RFC 28); talks to ROUTER, REP and DEALER. */
export class DealerSocket {
  readonly #link: PeerLink;

  /** Starts to connect. Throws {@link IdentityError}. */
  constructor(options: SocketOptions) {
    this.#link = new PeerLink("DEALER", options);
  }

  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  get ready(): Promise<Peer> {
    return this.#link.ready;
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return this.#link.peer;
  }

  /** Bytes of messages that have not been handed to the operating system whole. */
  get pendingBytes(): number {
    return this.#link.pendingBytes;
  }

  /**
   * Sends one message of at least one frame; it waits, in order, for the peer's READY. The frames are
   * copied. Throws {@link SocketClosedError} and {@link SendQueueFullError}.
   */
  send(frames: readonly Uint8Array[]): void {
    this.#link.send(encodeMessage(frames));
  }

  /** Closes at once and drops what is pending. No event follows. */
  close(): void {
    this.#link.close();
  }
}

/** How a SUB socket connects, and what it subscribes to. */
export interface SubSocketOptions extends SocketOptions {
  /** Prefixes of the first frame; the empty one matches every message. */
  readonly topics: readonly (string | Uint8Array)[];
}

/**
 * Receives the messages of a PUB or XPUB (RFC 29). It always reads: a publisher drops, without notice,
 * what a slow subscriber does not take.
 */
export class SubSocket {
  readonly #link: PeerLink;

  /** Starts to connect; subscribes after each handshake. */
  constructor(options: SubSocketOptions) {
    const topics = options.topics.map((topic) =>
      typeof topic === "string" ? new TextEncoder().encode(topic) : topic,
    );
    this.#link = new PeerLink("SUB", options, topics.map(encodeSubscription));
  }

  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  get ready(): Promise<Peer> {
    return this.#link.ready;
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return this.#link.peer;
  }

  /** Closes at once. No event follows. */
  close(): void {
    this.#link.close();
  }
}

/** How a REQ socket connects; replies go to the caller of `request`, so there is no `onMessage`. */
export interface ReqSocketOptions extends Omit<SocketOptions, "events"> {
  readonly events?: Omit<SocketEvents, "onMessage">;
}

interface PendingRequest {
  readonly payload: Uint8Array;
  readonly reply: Deferred<Uint8Array>;
  readonly timer: ReturnType<typeof setTimeout>;
  /** It was sent on the present connection. */
  sent: boolean;
}

/** Asks an echo service (a kernel's heartbeat), which may be a REP or a ROUTER (RFC 28). */
export class ReqSocket {
  readonly #link: PeerLink;
  readonly #pending = new Set<PendingRequest>();
  #ended: WireError | undefined;

  /** Starts to connect. Throws {@link IdentityError}. */
  constructor(options: ReqSocketOptions) {
    const { events } = options;
    this.#link = new PeerLink("REQ", {
      ...options,
      events: {
        onMessage: (frames) => this.#onMessage(frames),
        onConnect: (peer) => {
          for (const request of this.#pending) this.#send(request);
          events?.onConnect?.(peer);
        },
        onDisconnect: (error) => {
          this.#onDisconnect(error);
          events?.onDisconnect?.(error);
        },
        onFailure: (error) => {
          this.#end(new SocketClosedError(error));
          events?.onFailure?.(error);
        },
      },
    });
  }

  /** Resolves with the first peer; rejects when the socket gives up or is closed before. */
  get ready(): Promise<Peer> {
    return this.#link.ready;
  }

  /** The peer of the present connection. */
  get peer(): Peer | undefined {
    return this.#link.peer;
  }

  /**
   * Sends `payload` and resolves with its echo. Only a reply with the very same octets counts, so put a
   * counter in it: then a late reply to an earlier request cannot pass for this one. Without a connection
   * it waits for one. Rejects with {@link RequestTimeoutError}, with the error of the connection that was
   * lost meanwhile, or with {@link SocketClosedError}.
   */
  request(payload: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    if (this.#ended) return Promise.reject(this.#ended);
    const reply = defer<Uint8Array>();
    const timer = setTimeout(() => {
      this.#settle(request).reject(new RequestTimeoutError(timeoutMs));
    }, timeoutMs);
    const request: PendingRequest = { payload, reply, timer, sent: false };
    this.#pending.add(request);
    if (this.#link.peer) this.#send(request);
    return reply.promise;
  }

  /** Closes at once; requests that wait are rejected. No event follows. */
  close(): void {
    this.#link.close();
    this.#end(new SocketClosedError());
  }

  /** "SHALL prefix the outgoing message with an empty delimiter frame." */
  #send(request: PendingRequest): void {
    try {
      this.#link.send(encodeMessage([new Uint8Array(0), request.payload]));
      request.sent = true;
    } catch (error) {
      this.#settle(request).reject(error);
    }
  }

  #onMessage(frames: readonly Uint8Array[]): void {
    const [delimiter, payload] = frames;
    if (frames.length !== 2 || delimiter?.length !== 0 || !payload) {
      debug("wire", `dropped a reply of ${frames.length} frames that is not [empty, payload]`);
      return;
    }
    for (const request of this.#pending) {
      if (Buffer.compare(request.payload, payload) !== 0) continue;
      this.#settle(request).resolve(payload);
      return;
    }
    debug("wire", "dropped a reply that nobody waits for");
  }

  /** Requests on a lost connection will never be answered; those that wait for the next one go on waiting. */
  #onDisconnect(error: WireError): void {
    this.#link.clearPending();
    for (const request of this.#pending) {
      if (request.sent) this.#settle(request).reject(error);
    }
  }

  #end(reason: WireError): void {
    this.#ended ??= reason;
    for (const request of this.#pending) this.#settle(request).reject(reason);
  }

  #settle(request: PendingRequest): Deferred<Uint8Array> {
    clearTimeout(request.timer);
    this.#pending.delete(request);
    return request.reply;
  }
}
