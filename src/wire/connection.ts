/** One connection: a {@link Session} on a {@link Transport}, with the handshake's time limit and the order of sending. */

import { type Peer, concat } from "./command.ts";
import { ConnectFailedError, HandshakeTimeoutError, WireError } from "./errors.ts";
import type { Outbox } from "./outbox.ts";
import { Session, type SessionOptions } from "./session.ts";
import { type Endpoint, Transport, describeEndpoint } from "./transport.ts";

/** PONGs and the like that may wait while the peer does not read; more are not answered. */
const MAX_QUEUED_CONTROL = 1024;

/** What a connection reports: `onReady` at most once, then messages, then `onClosed` once. */
export interface ConnectionEvents {
  onReady(peer: Peer): void;
  onMessage(frames: Uint8Array[]): void;
  /** It could not be made, or it is lost. Not called after {@link Connection.close}. */
  onClosed(error: WireError): void;
}

/** How to connect. */
export interface ConnectionOptions extends SessionOptions {
  readonly endpoint: Endpoint;
  /** Longest wait for the stream and the peer's READY. */
  readonly handshakeTimeoutMs: number;
  /** Sent after the handshake, before any message: the subscriptions of a SUB. */
  readonly preamble: readonly Uint8Array[];
}

/** One attempt to connect and what becomes of it. It sends what is in `outbox`, and removes what has been sent. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #outbox: Outbox;
  readonly #events: ConnectionEvents;
  readonly #session: Session;
  readonly #transport: Transport;
  readonly #timer: ReturnType<typeof setTimeout>;
  /** Greeting, commands and subscriptions; they overtake messages. */
  #control: Uint8Array[] = [];
  /** The transport has yet to take all of the outbox's first message. */
  #sendingMessage = false;
  #connected = false;
  #closed = false;

  constructor(options: ConnectionOptions, outbox: Outbox, events: ConnectionEvents) {
    this.#options = options;
    this.#outbox = outbox;
    this.#events = events;
    this.#session = new Session(options, {
      onSend: (bytes) => this.#queueControl(bytes),
      onReady: (peer) => this.#onReady(peer),
      onMessage: (frames) => events.onMessage(frames),
    });
    this.#timer = setTimeout(() => this.#onTimeout(), options.handshakeTimeoutMs);
    this.#transport = new Transport(options.endpoint, {
      onOpen: () => this.#onOpen(),
      onData: (chunk) => this.#onData(chunk),
      onDrained: () => this.#onDrained(),
      onFailed: (error) => this.#end(error),
      onClosed: (cause) => this.#end(this.#session.closed(cause)),
    });
  }

  /** Sends as much as the transport takes, in whole messages. Nothing before the peer's READY. */
  flush(): void {
    while (!this.#closed && this.#transport.writable) {
      const piece = this.#nextPiece();
      if (!piece || !this.#transport.write(piece)) return;
      this.#finishPiece();
    }
  }

  /** Closes at once. No event follows. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#session.stop();
    this.#transport.close();
  }

  #nextPiece(): Uint8Array | undefined {
    if (this.#control.length > 0) {
      const control = concat(this.#control);
      this.#control = [];
      return control;
    }
    if (!this.#session.ready) return undefined;
    this.#sendingMessage = this.#outbox.first !== undefined;
    return this.#outbox.first;
  }

  #finishPiece(): void {
    if (this.#sendingMessage) this.#outbox.shift();
    this.#sendingMessage = false;
  }

  #queueControl(bytes: Uint8Array): void {
    if (this.#control.length < MAX_QUEUED_CONTROL) this.#control.push(bytes);
  }

  #onOpen(): void {
    this.#connected = true;
    this.#session.open();
    this.flush();
  }

  #onData(chunk: Uint8Array): void {
    try {
      this.#session.receive(chunk);
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      // The ERROR that the handshake may have ended with.
      if (!this.#session.ready) this.flush();
      this.#end(error);
      return;
    }
    this.flush();
  }

  #onReady(peer: Peer): void {
    clearTimeout(this.#timer);
    this.#control.push(...this.#options.preamble);
    this.#events.onReady(peer);
  }

  #onDrained(): void {
    this.#finishPiece();
    this.flush();
  }

  #onTimeout(): void {
    const { endpoint, handshakeTimeoutMs } = this.#options;
    const where = describeEndpoint(endpoint);
    this.#end(
      this.#connected
        ? new HandshakeTimeoutError(where, handshakeTimeoutMs)
        : new ConnectFailedError(where, "ETIMEDOUT"),
    );
  }

  #end(error: WireError): void {
    if (this.#closed) return;
    this.close();
    this.#events.onClosed(error);
  }
}
