/**
 * One ZMTP 3 connection as a pure state machine (RFC 23, "Overall Behavior"): greeting, NULL handshake,
 * traffic. It knows no sockets and no clock: octets go in, octets and events come out.
 */

import {
  type Peer,
  decodeCommand,
  decodeError,
  decodePing,
  decodeReady,
  encodeError,
  encodePong,
  encodeReady,
} from "./command.ts";
import {
  ConnectionLostError,
  HandshakeClosedError,
  MalformedCommandError,
  PeerRefusedError,
  SocketTypeError,
  UnexpectedCommandError,
  type WireError,
} from "./errors.ts";
import { FrameDecoder, type WireLimits } from "./frame.ts";
import { GreetingDecoder, encodeGreeting } from "./greeting.ts";
import { debug } from "../log.ts";

/** The socket types that we can be. */
export type SocketType = "DEALER" | "SUB" | "REQ";

/** Whom each may talk to: RFC 37, "The Socket-Type Property". */
const VALID_PEERS: Readonly<Record<SocketType, readonly string[]>> = {
  DEALER: ["ROUTER", "REP", "DEALER"],
  SUB: ["PUB", "XPUB"],
  REQ: ["REP", "ROUTER"],
};

/** What a session asks for and reports. All calls happen within {@link Session.open} and {@link Session.receive}. */
export interface SessionSink {
  /** Send these octets, in this order and never within a message. */
  onSend(bytes: Uint8Array): void;
  /** The peer's READY has come: only now may messages and subscriptions be sent. */
  onReady(peer: Peer): void;
  /** One complete message. */
  onMessage(frames: Uint8Array[]): void;
}

/** Who we are, and how much we take. */
export interface SessionOptions {
  readonly socketType: SocketType;
  readonly identity?: Uint8Array;
  readonly limits: WireLimits;
}

/** The state of one connection, from its opening to its end. */
export class Session {
  readonly #socketType: SocketType;
  readonly #readyCommand: Uint8Array;
  readonly #sink: SessionSink;
  readonly #greeting = new GreetingDecoder();
  readonly #decoder: FrameDecoder;
  #ready = false;

  /** Throws {@link IdentityError}. */
  constructor(options: SessionOptions, sink: SessionSink) {
    this.#socketType = options.socketType;
    this.#readyCommand = encodeReady(options.socketType, options.identity);
    this.#sink = sink;
    this.#decoder = new FrameDecoder(options.limits, {
      onCommand: (body) => this.#onCommand(body),
      onMessage: (frames) => sink.onMessage(frames),
    });
  }

  /** The handshake is done. */
  get ready(): boolean {
    return this.#ready;
  }

  /**
   * The transport is connected. The whole greeting goes out at once: a peer may wait for it before it
   * sends the rest of its own.
   */
  open(): void {
    this.#sink.onSend(encodeGreeting());
  }

  /** The peer has sent `chunk`. A throw of a {@link WireError} means: close the connection. */
  receive(chunk: Uint8Array): void {
    try {
      this.#receive(chunk);
    } catch (error) {
      this.stop();
      throw error;
    }
  }

  /** The peer has closed the transport: what that means at this point. */
  closed(cause?: unknown): WireError {
    return this.#ready
      ? new ConnectionLostError(this.#decoder.midMessage, cause)
      : new HandshakeClosedError(cause);
  }

  /** Delivers nothing more, not even the rest of the chunk that is being read. */
  stop(): void {
    this.#decoder.stop();
  }

  #receive(chunk: Uint8Array): void {
    if (this.#greeting.complete) {
      this.#decoder.push(chunk);
      return;
    }
    const taken = this.#greeting.push(chunk);
    if (!this.#greeting.complete) return;
    this.#sink.onSend(this.#readyCommand);
    this.#decoder.push(chunk.subarray(taken));
  }

  #onCommand(body: Uint8Array): void {
    if (this.#ready) this.#onTrafficCommand(body);
    else this.#onHandshakeCommand(body);
  }

  #onHandshakeCommand(body: Uint8Array): void {
    const { name, data } = decodeCommand(body);
    if (name === "ERROR") throw new PeerRefusedError(decodeError(data));
    if (name !== "READY") throw new UnexpectedCommandError(name);
    const peer = decodeReady(data);
    this.#checkSocketType(peer.socketType);
    this.#ready = true;
    this.#decoder.allowMessages();
    this.#sink.onReady(peer);
  }

  #checkSocketType(theirs: string | undefined): void {
    if (theirs === undefined || VALID_PEERS[this.#socketType].includes(theirs)) return;
    // "It SHOULD handle errors by returning an ERROR command, and then disconnecting the peer."
    this.#sink.onSend(encodeError("Invalid socket type"));
    throw new SocketTypeError(this.#socketType, theirs);
  }

  #onTrafficCommand(body: Uint8Array): void {
    try {
      const { name, data } = decodeCommand(body);
      if (name === "PING") this.#sink.onSend(encodePong(decodePing(data)));
      else if (name === "ERROR") throw new PeerRefusedError(decodeError(data));
      else debug("wire", `ignored the command ${name}`);
    } catch (error) {
      // The framing is intact, so one bad command need not cost the messages behind it.
      if (!(error instanceof MalformedCommandError)) throw error;
      debug("wire", "ignored a command", error);
    }
  }
}
