/** What can go wrong between us and a kernel, one class for each thing that a caller can act on. */

import { PrimeAgentError } from "../errors.ts";

/** Why a message was not accepted; stable, for tests and counters. */
export type ProtocolErrorKind =
  | "missing_delimiter"
  | "missing_frames"
  | "missing_signature"
  | "bad_signature"
  | "repeated_signature"
  | "bad_json"
  | "bad_part";

/** The four JSON frames of a message. */
export type MessagePart = "header" | "parent_header" | "metadata" | "content";

/** A message broke the messaging protocol and was dropped. The connection stays usable. */
export class ProtocolError extends PrimeAgentError {
  readonly kind: ProtocolErrorKind;
  /** The frame at fault, where one frame is. */
  readonly part: MessagePart | undefined;

  constructor(
    kind: ProtocolErrorKind,
    message: string,
    options: { part?: MessagePart; cause?: unknown } = {},
  ) {
    super("jupyter_protocol", message, {
      hint: "Check that the connection file belongs to this kernel.",
      cause: options.cause,
    });
    this.kind = kind;
    this.part = options.part;
  }
}

/** A connection file (or the place for its sockets) can't be used. `field` names the culprit. */
export class ConnectionFileError extends PrimeAgentError {
  readonly path: string;
  readonly field: string | undefined;

  constructor(
    path: string,
    message: string,
    options: { field?: string; hint?: string; cause?: unknown } = {},
  ) {
    super("connection_file", `${path}: ${message}`, {
      hint: options.hint ?? "Name the connection file of a running kernel.",
      cause: options.cause,
    });
    this.path = path;
    this.field = options.field;
  }
}

/** The kernel's sockets did not come up, or answered nothing, in time. `missing` says what was awaited. */
export class KernelNotReadyError extends PrimeAgentError {
  readonly missing: string;

  constructor(missing: string, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super("kernel_not_ready", message, {
      hint: options.hint || "Restart the kernel, or allow it more time if the machine is busy.",
      cause: options.cause,
    });
    this.missing = missing;
  }
}

/** A connection to the kernel broke after it had been ready; replies that were due will not come. */
export class ChannelLostError extends PrimeAgentError {
  readonly channel: string;

  constructor(channel: string, cause: Error) {
    super("kernel_channel_lost", `kernel connection lost (${channel}: ${cause.message})`, {
      hint: "Start the kernel again; its state may be gone.",
      cause,
    });
    this.channel = channel;
  }
}

/** The client was closed by us: nothing can be sent and no reply will come. */
export class ChannelClosedError extends PrimeAgentError {
  readonly channel: string;

  constructor(channel: string) {
    super("kernel_channel_closed", `the ${channel} channel is closed`, {
      hint: "Connect to the kernel again.",
    });
    this.channel = channel;
  }
}
