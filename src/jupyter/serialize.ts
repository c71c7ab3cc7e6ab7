/**
 * Messages to frames and back ("The Wire Protocol" of the messaging
 * specification): `[identity…] <IDS|MSG> signature header parent_header metadata
 * content [buffer…]`. Pure: bytes in, values out.
 */

import { ProtocolError, type MessagePart } from "./errors.ts";
import type { Header, JupyterMessage } from "./message.ts";
import type { MessageSigner, SignatureHistory } from "./signing.ts";

/** Ends the routing prefix. Found by its exact bytes: the number of frames before it differs between kernels. */
export const DELIMITER: Uint8Array = new TextEncoder().encode("<IDS|MSG>");

const encoder = new TextEncoder();
// Not fatal: a kernel that prints undecodable file names sends them as they are. Strips a BOM.
const decoder = new TextDecoder();

type JsonObject = Record<string, unknown>;

/**
 * The frames of a message. A lone surrogate becomes U+FFFD: as an escape it would be JSON, but a kernel
 * that can't repeat the code of a cell in UTF-8 never answers.
 */
export function serialize(message: JupyterMessage<object>, signer: MessageSigner): Uint8Array[] {
  const parts = [
    encodeJson(message.header),
    encodeJson(message.parent_header),
    encodeJson(message.metadata),
    encodeJson(message.content),
  ];
  return [...message.identities, DELIMITER, signer.sign(parts), ...parts, ...message.buffers];
}

/**
 * The message in `frames`, verified before any of it is interpreted. Frames are
 * referred to, not copied. Integers beyond 2^53 lose precision. With a
 * `history`, a message that was accepted before is refused.
 *
 * @throws {ProtocolError} the frames are no message, or not one of this kernel.
 */
export function deserialize(
  frames: readonly Uint8Array[],
  signer: MessageSigner,
  history?: SignatureHistory,
): JupyterMessage {
  const start = delimiterIndex(frames);
  const signature = frames[start + 1];
  const parts = frames.slice(start + 2, start + 6);
  const [header, parent, metadata, content] = parts;
  if (!signature || !header || !parent || !metadata || !content) {
    const count = frames.length - start - 1;
    throw new ProtocolError(
      "missing_frames",
      `${count} frames after the delimiter, at least 5 wanted`,
    );
  }
  checkSignature(signer, parts, signature);
  if (history && signer.enabled && !history.add(signature)) {
    throw new ProtocolError("repeated_signature", "a message that was received before came again");
  }
  return {
    identities: frames.slice(0, start),
    header: checkHeader(decodeJson("header", header)),
    parent_header: decodeJson("parent_header", parent) as Partial<Header>,
    metadata: decodeJson("metadata", metadata),
    content: decodeJson("content", content),
    buffers: frames.slice(start + 6),
  };
}

function encodeJson(value: object): Uint8Array {
  return encoder.encode(JSON.stringify(value, wellFormed));
}

function wellFormed(_key: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}

function delimiterIndex(frames: readonly Uint8Array[]): number {
  const index = frames.findIndex(isDelimiter);
  if (index >= 0) return index;
  throw new ProtocolError("missing_delimiter", `no <IDS|MSG> in ${frames.length} frames`);
}

function isDelimiter(frame: Uint8Array): boolean {
  return frame.length === DELIMITER.length && DELIMITER.every((byte, i) => byte === frame[i]);
}

function checkSignature(signer: MessageSigner, parts: Uint8Array[], signature: Uint8Array): void {
  if (signer.verify(parts, signature)) return;
  if (signature.length === 0) {
    throw new ProtocolError("missing_signature", "an unsigned message, but this kernel has a key");
  }
  throw new ProtocolError(
    "bad_signature",
    "the signature of a message does not fit this kernel's key",
  );
}

function checkHeader(header: JsonObject): Header {
  for (const field of ["msg_id", "msg_type"]) {
    if (typeof header[field] === "string") continue;
    throw new ProtocolError("bad_part", `the header has no ${field}`, { part: "header" });
  }
  return header as unknown as Header;
}

function decodeJson(part: MessagePart, bytes: Uint8Array): JsonObject {
  const value = parseJson(part, decoder.decode(bytes));
  if (typeof value === "object" && value !== null && !Array.isArray(value))
    return value as JsonObject;
  throw new ProtocolError("bad_part", `the ${part} is not a JSON object`, { part });
}

function parseJson(part: MessagePart, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (strict) {
    try {
      return JSON.parse(quoteNonFinite(text));
    } catch {
      // The second error would point into text that was never on the wire.
      throw new ProtocolError("bad_json", `the ${part} is not JSON`, { part, cause: strict });
    }
  }
}

/**
 * Old kernels write Python's bare `NaN`, `Infinity` and `-Infinity`, which are
 * not JSON. They become strings, as newer kernels send them. One linear pass.
 */
function quoteNonFinite(text: string): string {
  let quoted = "";
  let done = 0;
  let at = 0;
  while (at < text.length) {
    if (text[at] === '"') {
      at = stringEnd(text, at);
      continue;
    }
    const word = NON_FINITE.find((candidate) => text.startsWith(candidate, at));
    if (word) {
      quoted += `${text.slice(done, at)}"${word}"`;
      at += word.length;
      done = at;
    } else {
      at += 1;
    }
  }
  return quoted + text.slice(done);
}

const NON_FINITE = ["NaN", "Infinity", "-Infinity"];

/** The index after the closing quote of the string that opens at `open`. */
function stringEnd(text: string, open: number): number {
  let at = open + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === "\\" ? 2 : 1;
  return at + 1;
}
