/**
 * ZMTP 3 frames (RFC 23, "Framing"), pure: octets in, commands and whole messages out.
 *
 *   flags (1)   bit 0 MORE, bit 1 LONG, bit 2 COMMAND; bits 3–7 "MUST be zero"
 *   size        1 octet, or 8 octets in network order when LONG
 *   body        size octets
 */

import {
  CommandTooLargeError,
  EarlyMessageError,
  FrameFlagsError,
  FrameTooLargeError,
  MessageTooLargeError,
  TooManyFramesError,
} from "./errors.ts";

const MORE = 0x01;
const LONG = 0x02;
const COMMAND = 0x04;
const RESERVED = 0xf8;

const SHORT_HEADER_BYTES = 2;
const LONG_HEADER_BYTES = 9;
const MAX_SHORT_BODY_BYTES = 255;

/** Bounds on what one peer can make us hold. Sizes are below 4 GiB. */
export interface WireLimits {
  /** Largest body of one message frame, in bytes; checked before anything is allocated for it. */
  readonly maxFrameBytes: number;
  /** Largest sum of the bodies of one message, in bytes. */
  readonly maxMessageBytes: number;
  /** Most frames of one message. */
  readonly maxFrames: number;
  /** Largest command body, in bytes. */
  readonly maxCommandBytes: number;
  /** Most bytes that wait to be sent. */
  readonly maxPendingBytes: number;
}

const MIB = 1024 * 1024;

/** Far above what kernels send (outputs of some MB), far below what would hurt. */
export const DEFAULT_LIMITS: WireLimits = {
  maxFrameBytes: 256 * MIB,
  maxMessageBytes: 512 * MIB,
  maxFrames: 4096,
  maxCommandBytes: 64 * 1024,
  maxPendingBytes: 256 * MIB,
};

/** Where a {@link FrameDecoder} delivers. */
export interface FrameSink {
  /** The body of one command frame. */
  onCommand(body: Uint8Array): void;
  /** The frames of one complete message. Each has a buffer of its own. */
  onMessage(frames: Uint8Array[]): void;
}

/**
 * Splits a stream into commands and messages, in time linear in its length however it is cut.
 *
 * After a throw, the position in the stream is lost and the decoder must not be used again.
 */
export class FrameDecoder {
  readonly #limits: WireLimits;
  readonly #sink: FrameSink;
  #messagesAllowed = false;
  #stopped = false;

  // A header that the end of a chunk has cut.
  readonly #header = new Uint8Array(LONG_HEADER_BYTES);
  #headerLength = 0;

  // The frame that is being read; #body exists only while it spans chunks.
  #flags = 0;
  #size = 0;
  #body: Uint8Array | undefined;
  #bodyLength = 0;

  // The message that is being read.
  #frames: Uint8Array[] = [];
  #messageBytes = 0;

  constructor(limits: WireLimits, sink: FrameSink) {
    this.#limits = limits;
    this.#sink = sink;
  }

  /** The stream has stopped within a frame, or between the frames of one message. */
  get midMessage(): boolean {
    return this.#frames.length > 0 || this.#headerLength > 0 || this.#body !== undefined;
  }

  /** From now on messages are accepted: the handshake is done. */
  allowMessages(): void {
    this.#messagesAllowed = true;
  }

  /** Delivers nothing more, not even the rest of the chunk that is being read. */
  stop(): void {
    this.#stopped = true;
  }

  /** Reads on. Throws the error of the first frame that breaks a rule, before its body is read. */
  push(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length && !this.#stopped) {
      at = this.#body ? this.#fillBody(this.#body, chunk, at) : this.#takeFrame(chunk, at);
    }
  }

  /** Reads a header, and its body as far as the chunk has it; returns where to go on. */
  #takeFrame(chunk: Uint8Array, start: number): number {
    const bodyStart = this.#takeHeader(chunk, start);
    if (bodyStart < 0) return chunk.length;
    const bodyEnd = bodyStart + this.#size;
    if (bodyEnd <= chunk.length) {
      // A copy costs as much as a view here, and a small frame that is kept does not keep the chunk.
      this.#finishFrame(chunk.slice(bodyStart, bodyEnd));
      return bodyEnd;
    }
    this.#body = new Uint8Array(this.#size);
    this.#bodyLength = 0;
    return this.#fillBody(this.#body, chunk, bodyStart);
  }

  /** Reads and checks a header; returns where the body starts, or -1 if the chunk ends before. */
  #takeHeader(chunk: Uint8Array, start: number): number {
    let at = start;
    if (this.#headerLength === 0) {
      const flags = chunk[at] as number;
      this.#checkFlags(flags);
      const end = at + headerBytes(flags);
      if (end <= chunk.length) {
        this.#readSize(chunk, at);
        return end;
      }
      this.#header[0] = flags;
      this.#headerLength = 1;
      at += 1;
    }
    const missing = headerBytes(this.#header[0] as number) - this.#headerLength;
    const part = chunk.subarray(at, at + missing);
    this.#header.set(part, this.#headerLength);
    if (part.length < missing) {
      this.#headerLength += part.length;
      return -1;
    }
    this.#headerLength = 0;
    this.#readSize(this.#header, 0);
    return at + missing;
  }

  #checkFlags(flags: number): void {
    // libzmq ignores both; here they mean that the stream has lost its place.
    if ((flags & RESERVED) !== 0) throw new FrameFlagsError(flags);
    if ((flags & COMMAND) !== 0 && (flags & MORE) !== 0) throw new FrameFlagsError(flags);
    if ((flags & COMMAND) === 0 && !this.#messagesAllowed) throw new EarlyMessageError();
  }

  #readSize(bytes: Uint8Array, at: number): void {
    const flags = bytes[at] as number;
    const long = (flags & LONG) !== 0;
    const high = long ? readUint32(bytes, at + 1) : 0;
    const low = long ? readUint32(bytes, at + 5) : (bytes[at + 1] as number);
    const isCommand = (flags & COMMAND) !== 0;
    const limit = isCommand ? this.#limits.maxCommandBytes : this.#limits.maxFrameBytes;
    // The halves are compared apart: above 2^53 their sum is not exact as a double.
    if (high !== 0 || low > limit) {
      const size = (BigInt(high) << 32n) | BigInt(low);
      throw isCommand ? new CommandTooLargeError(size, limit) : new FrameTooLargeError(size, limit);
    }
    if (!isCommand) this.#checkMessage(low);
    this.#flags = flags;
    this.#size = low;
  }

  #checkMessage(size: number): void {
    const { maxFrames, maxMessageBytes } = this.#limits;
    if (this.#frames.length >= maxFrames) throw new TooManyFramesError(maxFrames);
    if (this.#messageBytes + size > maxMessageBytes)
      throw new MessageTooLargeError(maxMessageBytes);
  }

  #fillBody(body: Uint8Array, chunk: Uint8Array, start: number): number {
    const missing = body.length - this.#bodyLength;
    const part = chunk.subarray(start, start + missing);
    body.set(part, this.#bodyLength);
    this.#bodyLength += part.length;
    if (part.length === missing) {
      this.#body = undefined;
      this.#finishFrame(body);
    }
    return start + part.length;
  }

  #finishFrame(body: Uint8Array): void {
    if ((this.#flags & COMMAND) !== 0) {
      this.#sink.onCommand(body);
      return;
    }
    this.#frames.push(body);
    this.#messageBytes += body.length;
    if ((this.#flags & MORE) !== 0) return;
    const frames = this.#frames;
    this.#frames = [];
    this.#messageBytes = 0;
    this.#sink.onMessage(frames);
  }
}

/**
 * One message as one piece of octets, a copy: "all the frames of a message, or none of them".
 * Throws a `RangeError` if there are no frames.
 */
export function encodeMessage(frames: readonly Uint8Array[]): Uint8Array {
  if (frames.length === 0) throw new RangeError("a message has at least one frame");
  let size = 0;
  for (const frame of frames) size += frameBytes(frame.length);
  const bytes = new Uint8Array(size);
  let at = 0;
  for (let index = 0; index < frames.length; index += 1) {
    const frame = frames[index] as Uint8Array;
    at = writeFrame(bytes, at, index < frames.length - 1 ? MORE : 0, frame);
  }
  return bytes;
}

/** One command frame with this body. */
export function encodeCommandFrame(body: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(frameBytes(body.length));
  writeFrame(bytes, 0, COMMAND, body);
  return bytes;
}

function writeFrame(target: Uint8Array, start: number, flags: number, body: Uint8Array): number {
  let at = start;
  if (body.length <= MAX_SHORT_BODY_BYTES) {
    target[at] = flags;
    target[at + 1] = body.length;
    at += SHORT_HEADER_BYTES;
  } else {
    target[at] = flags | LONG;
    writeUint32(target, at + 1, Math.floor(body.length / 0x1_0000_0000));
    writeUint32(target, at + 5, body.length);
    at += LONG_HEADER_BYTES;
  }
  target.set(body, at);
  return at + body.length;
}

function frameBytes(bodyBytes: number): number {
  return bodyBytes + (bodyBytes <= MAX_SHORT_BODY_BYTES ? SHORT_HEADER_BYTES : LONG_HEADER_BYTES);
}

function headerBytes(flags: number): number {
  return (flags & LONG) !== 0 ? LONG_HEADER_BYTES : SHORT_HEADER_BYTES;
}

/** The unsigned 32-bit number in network order at `at`, which must be four octets before the end. */
export function readUint32(bytes: Uint8Array, at: number): number {
  const high = ((bytes[at] as number) << 8) | (bytes[at + 1] as number);
  const low = ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number);
  return high * 0x1_0000 + low;
}

/** Writes the low 32 bits of `value` in network order. */
export function writeUint32(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
}
