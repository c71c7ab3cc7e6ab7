/**
 * Everything that can go wrong between two ZMTP peers, one class per case, so that a caller (and a
 * test) can tell them apart. `fatal` says whether trying again can help.
 */

import { PrimeAgentError } from "../errors.ts";

/** Any failure of this layer. */
export class WireError extends PrimeAgentError {
  /** The same peer would fail in the same way again: do not reconnect. */
  readonly fatal: boolean;

  constructor(
    code: string,
    message: string,
    options: { fatal?: boolean; hint?: string; cause?: unknown } = {},
  ) {
    super(code, message, options);
    this.fatal = options.fatal ?? false;
  }
}

// ── Reaching the peer ──────────────────────────────────────────────────────────────────────────

/** One attempt to connect failed (nothing bound there yet, no such socket file, no such host). */
export class ConnectFailedError extends WireError {
  /** The system's name of the failure, such as `ECONNREFUSED`. */
  readonly systemCode: string;

  constructor(endpoint: string, systemCode: string, cause?: unknown) {
    super("connect_failed", `cannot connect to ${endpoint} (${systemCode})`, {
      hint: "Check that the kernel runs and that the connection file is its own.",
      cause,
    });
    this.systemCode = systemCode;
  }
}

/** The endpoint can never be connected to, such as a socket path that is too long. */
export class EndpointError extends WireError {
  constructor(endpoint: string, reason: string) {
    super("endpoint_invalid", `cannot use endpoint ${endpoint}: ${reason}`, {
      fatal: true,
      hint: "Use a shorter socket path, or TCP.",
    });
  }
}

/** No attempt has led to a connection within `connectTimeoutMs`; `cause` is the last attempt's error. */
export class ConnectTimeoutError extends WireError {
  constructor(endpoint: string, timeoutMs: number, lastError: WireError | undefined) {
    const reason = lastError?.message ?? "no answer";
    super("connect_timeout", `no connection to ${endpoint} within ${timeoutMs} ms: ${reason}`, {
      fatal: true,
      hint: lastError?.hint || "Check that the kernel runs.",
      cause: lastError,
    });
  }
}

/** The peer accepted the connection but did not finish the handshake in time. */
export class HandshakeTimeoutError extends WireError {
  constructor(endpoint: string, timeoutMs: number) {
    super("handshake_timeout", `${endpoint} did not finish the handshake within ${timeoutMs} ms`, {
      hint: "The peer hangs, or something other than a kernel listens there.",
    });
  }
}

/**
 * The peer closed the connection before its READY. libzmq does this, without an ERROR, for every
 * mismatch (another mechanism, another socket type), so the hint names the usual reasons.
 */
export class HandshakeClosedError extends WireError {
  constructor(cause?: unknown) {
    super("handshake_closed", "the peer closed the connection during the handshake", {
      hint:
        "It may require CURVE encryption, be another kind of socket " +
        "(ports of the connection file mixed up), or be shutting down.",
      cause,
    });
  }
}

// ── Greeting (RFC 23, "Version Negotiation" and "Authentication and Confidentiality") ──────────

/** What listens there does not speak ZMTP at all. */
export class NotZmtpError extends WireError {
  /** The first octets it sent, at most 16. */
  readonly firstBytes: Uint8Array;

  constructor(firstBytes: Uint8Array) {
    super("not_zmtp", `the peer is not ZMTP (first bytes ${showBytes(firstBytes)})`, {
      fatal: true,
      hint: "Another service listens on this port; check the connection file.",
    });
    this.firstBytes = firstBytes;
  }
}

/** The peer speaks a ZMTP older than 3.0. */
export class ZmtpVersionError extends WireError {
  /** `1.0` or `2.0`. */
  readonly version: string;

  constructor(version: string) {
    super("zmtp_version", `the peer speaks ZMTP ${version}; 3.0 or later is needed`, {
      fatal: true,
      hint: "The kernel must use libzmq 4 or another ZMTP 3 implementation.",
    });
    this.version = version;
  }
}

/** The peer demands another security mechanism than NULL. */
export class MechanismError extends WireError {
  /** The mechanism's name as announced, such as `CURVE`. */
  readonly mechanism: string;

  constructor(mechanism: string) {
    super("zmtp_mechanism", `the peer wants ${mechanism}, and only NULL is supported here`, {
      fatal: true,
      hint: "Start the kernel without encryption (no curve keys), or use a unix socket.",
    });
    this.mechanism = mechanism;
  }
}

// ── Handshake (RFC 23, "The NULL Security Mechanism") ──────────────────────────────────────────

/** The READY command does not follow its grammar. */
export class MalformedReadyError extends WireError {
  constructor(detail: string) {
    super("malformed_ready", `the peer sent a malformed READY: ${detail}`, { fatal: true });
  }
}

/** A command other than READY or ERROR came before READY. */
export class UnexpectedCommandError extends WireError {
  constructor(name: string) {
    super("unexpected_command", `the peer sent ${name} before READY`, { fatal: true });
  }
}

/** A message frame came before READY. */
export class EarlyMessageError extends WireError {
  constructor() {
    super("early_message", "the peer sent a message before READY", { fatal: true });
  }
}

/** Two socket types that must not talk to each other (RFC 37, "The Socket-Type Property"). */
export class SocketTypeError extends WireError {
  readonly ours: string;
  readonly theirs: string;

  constructor(ours: string, theirs: string) {
    super("socket_type", `a ${ours} socket cannot talk to the peer's ${theirs} socket`, {
      fatal: true,
      hint: "The ports of the connection file are mixed up, or the peer is not a kernel.",
    });
    this.ours = ours;
    this.theirs = theirs;
  }
}

/** The peer sent an ERROR command: "The peer SHALL treat an incoming ERROR command as fatal". */
export class PeerRefusedError extends WireError {
  /** The reason it gave; empty if it gave none. */
  readonly reason: string;

  constructor(reason: string) {
    const said = reason === "" ? "without a reason" : JSON.stringify(reason);
    super("peer_refused", `the peer refused the connection: ${said}`, { fatal: true });
    this.reason = reason;
  }
}

// ── Frames and commands (RFC 23, "Framing") ────────────────────────────────────────────────────

/** A frame's flags octet has reserved bits, or MORE on a command: the stream is corrupt. */
export class FrameFlagsError extends WireError {
  readonly flags: number;

  constructor(flags: number) {
    super("frame_flags", `corrupt stream: frame flags 0x${flags.toString(16).padStart(2, "0")}`);
    this.flags = flags;
  }
}

/** A frame announces a body over the limit. Raised before anything is allocated for it. */
export class FrameTooLargeError extends WireError {
  /** The announced size, exact. */
  readonly size: bigint;

  constructor(size: bigint, limit: number) {
    super("frame_too_large", `the peer announced a frame of ${size} bytes; the limit is ${limit}`);
    this.size = size;
  }
}

/** A command frame over the limit of {@link WireLimits.maxCommandBytes}. */
export class CommandTooLargeError extends WireError {
  constructor(size: bigint, limit: number) {
    super("command_too_large", `the peer announced a command of ${size} bytes; limit ${limit}`);
  }
}

/** The frames of one message together are over the limit. */
export class MessageTooLargeError extends WireError {
  constructor(limit: number) {
    super("message_too_large", `the peer sent a message of more than ${limit} bytes`);
  }
}

/** One message has more frames than the limit. */
export class TooManyFramesError extends WireError {
  constructor(limit: number) {
    super("too_many_frames", `the peer sent a message of more than ${limit} frames`);
  }
}

/** A command without a name, or with one that runs past its end, or a PING without its TTL. */
export class MalformedCommandError extends WireError {
  constructor(detail: string) {
    super("malformed_command", `the peer sent a malformed command: ${detail}`, { fatal: true });
  }
}

// ── An established connection, and our own sockets ─────────────────────────────────────────────

/** The peer closed an established connection. */
export class ConnectionLostError extends WireError {
  /** A message was cut off; its part was dropped, since messages are delivered whole or not at all. */
  readonly partialMessage: boolean;

  constructor(partialMessage: boolean, cause?: unknown) {
    const detail = partialMessage ? " in the middle of a message" : "";
    super("connection_lost", `the peer closed the connection${detail}`, { cause });
    this.partialMessage = partialMessage;
  }
}

/** The socket was closed by us, or had given up before. */
export class SocketClosedError extends WireError {
  constructor(cause?: WireError) {
    super(
      "socket_closed",
      cause ? `the socket has failed: ${cause.message}` : "the socket is closed",
      {
        fatal: true,
        hint: cause?.hint ?? "",
        cause,
      },
    );
  }
}

/** The routing id that we were to announce is not one. */
export class IdentityError extends WireError {
  constructor() {
    super("identity_invalid", "a routing id has 1 to 255 octets and does not start with 00", {
      fatal: true,
    });
  }
}

/** A message was refused because too much waits to be sent: the peer does not read. */
export class SendQueueFullError extends WireError {
  constructor(pendingBytes: number, limit: number) {
    super(
      "send_queue_full",
      `${pendingBytes} bytes wait to be sent already; the limit is ${limit}`,
      {
        hint: "The kernel does not read its socket; restart it.",
      },
    );
  }
}

/** No reply came in time. */
export class RequestTimeoutError extends WireError {
  constructor(timeoutMs: number) {
    super("request_timeout", `no reply within ${timeoutMs} ms`);
  }
}

/** Octets for people: hex, and the text if it is printable ASCII. */
function showBytes(bytes: Uint8Array): string {
  const hex = bytes.toHex().replace(/..(?=.)/g, "$& ");
  const text = new TextDecoder("latin1").decode(bytes);
  return /^[\x20-\x7e\r\n]+$/.test(text) ? `${hex}, ${JSON.stringify(text)}` : hex;
}
