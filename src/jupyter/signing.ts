/**
 * Message signatures: HMAC-SHA256 (RFC 2104, FIPS 180-4) over the bytes of the
 * four JSON frames as they are on the wire, written as lower-case hex. Never
 * over text that was decoded and encoded again: kernels send invalid UTF-8.
 */

import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex } from "@noble/hashes/utils.js";

/** Lower-case hex HMAC-SHA256 of the frames as if they were one piece. The key schedule is paid once, on creation. */
export type FrameHmac = (frames: readonly Uint8Array[]) => string;

/**
 * From this many bytes on the native hasher signs. Native is faster at every
 * size (at 300 bytes 0.4 µs against 3 µs, at 1 MB 1 ms against 5 ms), so all
 * that arrives in floods goes there; what is left for the portable one are our
 * own short requests, a few a cell, where it costs 7 µs at most.
 */
export const NATIVE_FROM_BYTES = 1024;

const SIGNATURE_BYTES = 64;
const NO_SIGNATURE = new Uint8Array(0);
const HISTORY_GENERATION = 1024;
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Signs and verifies the messages of one kernel. An empty key means unsigned messages in both directions. */
export class MessageSigner {
  readonly #portable: FrameHmac;
  readonly #native: FrameHmac;
  /** False if the connection file's key is empty. */
  readonly enabled: boolean;

  /** `key` is the connection file's `key` as it stands: its UTF-8 bytes are the key, even if it looks like hex. */
  constructor(key: string) {
    const bytes = encoder.encode(key);
    this.enabled = bytes.length > 0;
    this.#portable = portableHmac(bytes);
    this.#native = nativeHmac(bytes);
  }

  /** The signature frame for header, parent header, metadata and content; empty without a key. */
  sign(parts: readonly Uint8Array[]): Uint8Array {
    if (!this.enabled) return NO_SIGNATURE;
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    return encoder.encode(size < NATIVE_FROM_BYTES ? this.#portable(parts) : this.#native(parts));
  }

  /** Whether `signature` is that of `parts`, in a time that does not depend on where they differ. True without a key. */
  verify(parts: readonly Uint8Array[], signature: Uint8Array): boolean {
    if (!this.enabled) return true;
    if (signature.length !== SIGNATURE_BYTES) return false;
    const expected = this.#native(parts);
    let difference = 0;
    for (let i = 0; i < SIGNATURE_BYTES; i += 1) {
      difference |= expected.charCodeAt(i) ^ (signature[i] as number);
    }
    return difference === 0;
  }
}

/** The signatures seen last on one connection. Each message has its own, so one that comes again is a replay. */
export class SignatureHistory {
  // Two generations: forgetting the older one is cheaper than forgetting one by one.
  #recent = new Set<string>();
  #older = new Set<string>();

  /** Remembers a signature that was verified; false if it is already known. */
  add(signature: Uint8Array): boolean {
    const text = decoder.decode(signature);
    if (this.#recent.has(text) || this.#older.has(text)) return false;
    this.#recent.add(text);
    if (this.#recent.size >= HISTORY_GENERATION) {
      this.#older = this.#recent;
      this.#recent = new Set();
    }
    return true;
  }
}

/** HMAC-SHA256 in JavaScript. */
export function portableHmac(key: Uint8Array): FrameHmac {
  const keyed = hmac.create(sha256, key);
  return (frames) => {
    const mac = keyed.clone();
    for (const frame of frames) mac.update(frame);
    return bytesToHex(mac.digest());
  };
}

/** HMAC-SHA256 by Bun. */
export function nativeHmac(key: Uint8Array): FrameHmac {
  const keyed = new Bun.CryptoHasher("sha256", key);
  return (frames) => {
    const mac = keyed.copy();
    for (const frame of frames) mac.update(frame);
    return mac.digest("hex");
  };
}
