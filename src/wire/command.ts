/**
 * ZMTP commands (RFC 23 "Commands", "The NULL Security Mechanism"; RFC 37 "Connection Heartbeating").
 *
 *   command   length of the name (1), name, data
 *   READY     data is properties: length (1), name, length (4, network order), value
 *   ERROR     data is a reason: length (1), text
 *   PING      data is a time to live in tenths of a second (2), then a context of 0–16 octets
 *   PONG      data is the context of the PING
 */

import { IdentityError, MalformedCommandError, MalformedReadyError } from "./errors.ts";
import { encodeCommandFrame, encodeMessage, readUint32, writeUint32 } from "./frame.ts";

const MAX_PING_CONTEXT_BYTES = 16;
const PING_TTL_BYTES = 2;
const MAX_IDENTITY_BYTES = 255;

const latin1 = new TextDecoder("latin1");
const utf8 = new TextEncoder();

/** A command frame's body, taken apart. */
export interface Command {
  /** Such as `READY`; as sent, so other cases are other commands. */
  readonly name: string;
  readonly data: Uint8Array;
}

/** Who is at the other end, from its READY. */
export interface Peer {
  /** `PUB`, `XPUB`, `ROUTER`…; undefined if it did not say. */
  readonly socketType: string | undefined;
  /** All properties of its READY; names are lower-cased, values are as sent. */
  readonly properties: ReadonlyMap<string, Uint8Array>;
}

/** Takes the body of a command frame apart. Throws {@link MalformedCommandError}. */
export function decodeCommand(body: Uint8Array): Command {
  const nameLength = body[0];
  if (!nameLength) throw new MalformedCommandError("it has no name");
  const nameEnd = 1 + nameLength;
  if (nameEnd > body.length) throw new MalformedCommandError("its name runs past its end");
  return { name: latin1.decode(body.subarray(1, nameEnd)), data: body.subarray(nameEnd) };
}

/** Reads the properties of a READY. Throws {@link MalformedReadyError}. */
export function decodeReady(data: Uint8Array): Peer {
  const properties = new Map<string, Uint8Array>();
  let at = 0;
  while (at < data.length) {
    const nameStart = at + 1;
    const nameEnd = nameStart + (data[at] as number);
    // "The name SHALL be 1 to 255 characters. Zero-sized names are not valid."
    if (nameEnd === nameStart) throw new MalformedReadyError("a property without a name");
    if (nameEnd > data.length) throw new MalformedReadyError("a property name past its end");
    const valueStart = nameEnd + 4;
    if (valueStart > data.length) throw new MalformedReadyError("a property without a value");
    const valueEnd = valueStart + readUint32(data, nameEnd);
    if (valueEnd > data.length) throw new MalformedReadyError("a property value past its end");
    // "The case (upper or lower) of names SHALL NOT be significant."
    const name = latin1.decode(data.subarray(nameStart, nameEnd)).toLowerCase();
    properties.set(name, data.slice(valueStart, valueEnd));
    at = valueEnd;
  }
  const socketType = properties.get("socket-type");
  return { socketType: socketType && latin1.decode(socketType), properties };
}

/** The reason of an ERROR, as far as it is there. */
export function decodeError(data: Uint8Array): string {
  return latin1.decode(data.subarray(1, 1 + (data[0] ?? 0)));
}

/**
 * The context of a PING, cut to the 16 octets that a PONG may carry. Throws {@link MalformedCommandError}.
 *
 * The time to live, a hint to hang up after that much silence, is not acted on: we read it late when our
 * own process was busy, and would then drop a healthy connection with everything on its way.
 */
export function decodePing(data: Uint8Array): Uint8Array {
  if (data.length < PING_TTL_BYTES) throw new MalformedCommandError("a PING without its TTL");
  return data.slice(PING_TTL_BYTES, PING_TTL_BYTES + MAX_PING_CONTEXT_BYTES);
}

/**
 * Our READY. The spelling of the names matters: libzmq compares them exactly.
 * Throws {@link IdentityError}.
 */
export function encodeReady(socketType: string, identity?: Uint8Array): Uint8Array {
  const properties = [encodeProperty("Socket-Type", utf8.encode(socketType))];
  if (identity) {
    // "The first octet of the Identity SHALL NOT be zero."
    if (identity.length === 0 || identity.length > MAX_IDENTITY_BYTES || identity[0] === 0) {
      throw new IdentityError();
    }
    properties.push(encodeProperty("Identity", identity));
  }
  return encodeCommand("READY", ...properties);
}

/** ERROR with a printable ASCII reason of at most 255 octets. */
export function encodeError(reason: string): Uint8Array {
  return encodeCommand("ERROR", Uint8Array.of(reason.length), utf8.encode(reason));
}

/** "It SHALL respond with a PONG command that echoes the ping-context." */
export function encodePong(context: Uint8Array): Uint8Array {
  return encodeCommand("PONG", context);
}

/**
 * A subscription in the form of ZMTP 3.0, a message of one frame: 01 and the topic. Every implementation
 * understands it, while the SUBSCRIBE command of 3.1 ends the connection with some.
 */
export function encodeSubscription(topic: Uint8Array): Uint8Array {
  const body = new Uint8Array(1 + topic.length);
  body[0] = 1;
  body.set(topic, 1);
  return encodeMessage([body]);
}

function encodeCommand(name: string, ...data: readonly Uint8Array[]): Uint8Array {
  return encodeCommandFrame(concat([Uint8Array.of(name.length), utf8.encode(name), ...data]));
}

function encodeProperty(name: string, value: Uint8Array): Uint8Array {
  const valueLength = new Uint8Array(4);
  writeUint32(valueLength, 0, value.length);
  return concat([Uint8Array.of(name.length), utf8.encode(name), valueLength, value]);
}

/** All parts in one new piece. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  return Bun.concatArrayBuffers([...parts], Number.POSITIVE_INFINITY, true);
}
