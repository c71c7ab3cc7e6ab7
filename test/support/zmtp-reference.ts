/**
 * A second reading of the specification, slow and obvious: the whole stream at once, sizes as BigInt, no
 * state but a position. The real decoder must agree with it on every stream. Codes are those of `WireError`.
 */

import type { WireLimits } from "../../src/wire/frame.ts";

/** What a SUB must make of a stream. Bodies are in hex. */
export interface Reading {
  ready: boolean;
  readonly messages: string[][];
  readonly pongs: string[];
  error: string | undefined;
}

const NULL_MECHANISM = `4e554c4c${"00".repeat(16)}`;

/** Reads all that a peer has sent so far. */
export function readStream(stream: Uint8Array, limits: WireLimits): Reading {
  const reading: Reading = { ready: false, messages: [], pongs: [], error: undefined };
  reading.error = greetingError(stream);
  if (reading.error !== undefined || stream.length < 64) return reading;

  let at = 64;
  let frames: Uint8Array[] = [];
  while (at < stream.length) {
    const flags = stream[at] as number;
    const isCommand = (flags & 4) !== 0;
    if (flags > 7 || flags === 5 || flags === 7) return fail(reading, "frame_flags");
    if (!isCommand && !reading.ready) return fail(reading, "early_message");

    const sizeEnd = at + ((flags & 2) === 0 ? 2 : 9);
    if (sizeEnd > stream.length) return reading;
    const size = BigInt(`0x${stream.subarray(at + 1, sizeEnd).toHex()}`);
    const tooMuch = isCommand ? commandLimit(size, limits) : messageLimit(size, frames, limits);
    if (tooMuch) return fail(reading, tooMuch);

    const end = sizeEnd + Number(size);
    if (end > stream.length) return reading;
    const body = stream.subarray(sizeEnd, end);
    at = end;
    if (isCommand) {
      const error = reading.ready ? readTraffic(body, reading) : readHandshake(body, reading);
      if (error) return fail(reading, error);
      continue;
    }
    frames.push(body);
    if ((flags & 1) !== 0) continue;
    reading.messages.push(frames.map((frame) => frame.toHex()));
    frames = [];
  }
  return reading;
}

function fail(reading: Reading, error: string): Reading {
  reading.error = error;
  return reading;
}

function greetingError(stream: Uint8Array): string | undefined {
  const text = stream.subarray(0, 64).toHex();
  if (text === "" || text === "01") return undefined;
  if (text.startsWith("0100")) return "zmtp_version";
  if (!text.startsWith("ff")) return "not_zmtp";
  const signatureEnd = text.slice(18, 20);
  if (signatureEnd === "00") return "zmtp_version";
  if (signatureEnd !== "7f" && signatureEnd !== "") return "not_zmtp";
  if (["00", "01", "02"].includes(text.slice(20, 22))) return "zmtp_version";
  const mechanism = text.slice(24, 64);
  return mechanism.length === 40 && mechanism !== NULL_MECHANISM ? "zmtp_mechanism" : undefined;
}

function commandLimit(size: bigint, limits: WireLimits): string | undefined {
  return size > BigInt(limits.maxCommandBytes) ? "command_too_large" : undefined;
}

function messageLimit(size: bigint, frames: Uint8Array[], limits: WireLimits): string | undefined {
  if (size > BigInt(limits.maxFrameBytes)) return "frame_too_large";
  if (frames.length === limits.maxFrames) return "too_many_frames";
  const sum = frames.reduce((total, frame) => total + frame.length, Number(size));
  return sum > limits.maxMessageBytes ? "message_too_large" : undefined;
}

/** Name and data of a command; undefined if it is malformed. */
function splitCommand(body: Uint8Array): { name: string; data: Uint8Array } | undefined {
  const length = body[0] ?? 0;
  if (length === 0 || 1 + length > body.length) return undefined;
  return {
    name: String.fromCharCode(...body.subarray(1, 1 + length)),
    data: body.subarray(1 + length),
  };
}

function readTraffic(body: Uint8Array, reading: Reading): string | undefined {
  const command = splitCommand(body);
  if (command?.name === "ERROR") return "peer_refused";
  if (command?.name === "PING" && command.data.length >= 2) {
    reading.pongs.push(command.data.subarray(2, 18).toHex());
  }
  return undefined;
}

function readHandshake(body: Uint8Array, reading: Reading): string | undefined {
  const command = splitCommand(body);
  if (!command) return "malformed_command";
  if (command.name === "ERROR") return "peer_refused";
  if (command.name !== "READY") return "unexpected_command";
  let socketType: string | undefined;
  for (let rest = command.data; rest.length > 0;) {
    const nameLength = rest[0] as number;
    const sizeHex = rest.subarray(1 + nameLength, 5 + nameLength).toHex();
    if (nameLength === 0 || sizeHex.length !== 8) return "malformed_ready";
    const end = 5 + nameLength + Number(`0x${sizeHex}`);
    if (end > rest.length) return "malformed_ready";
    const name = String.fromCharCode(...rest.subarray(1, 1 + nameLength)).toLowerCase();
    const value = String.fromCharCode(...rest.subarray(5 + nameLength, end));
    if (name === "socket-type") socketType = value;
    rest = rest.subarray(end);
  }
  if (socketType !== undefined && socketType !== "PUB" && socketType !== "XPUB")
    return "socket_type";
  reading.ready = true;
  return undefined;
}
