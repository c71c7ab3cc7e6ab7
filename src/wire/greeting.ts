/**
 * The ZMTP 3 greeting (RFC 23, "Version Negotiation"): 64 octets that both sides send at once.
 *
 *   octet  0      FF
 *          1–8    padding: "MUST NOT validate this nor interpret it in any way whatsoever"
 *          9      7F
 *          10–11  version, major and minor
 *          12–31  mechanism, padded with zeros
 *          32     as-server, 33–63 filler: no meaning with NULL
 */

import { MechanismError, NotZmtpError, ZmtpVersionError } from "./errors.ts";

/** Size of a greeting in octets. */
export const GREETING_BYTES = 64;

const MECHANISM_START = 12;
const MECHANISM_END = 32;
const SHOWN_BYTES = 16;
const NULL_MECHANISM = new TextEncoder().encode(
  "NULL".padEnd(MECHANISM_END - MECHANISM_START, "\0"),
);

/**
 * Our greeting: NULL, version 3.0. Announcing 3.0 rather than 3.1 costs nothing (PING comes either
 * way), and subscriptions in the 3.0 form are what every implementation understands.
 */
export function encodeGreeting(): Uint8Array {
  const greeting = new Uint8Array(GREETING_BYTES);
  greeting[0] = 0xff;
  greeting[9] = 0x7f;
  greeting[10] = 3;
  greeting.set(NULL_MECHANISM, MECHANISM_START);
  return greeting;
}

/**
 * Collects and checks the peer's greeting. libzmq sends it in pieces of 10, 1 and 53 octets, so each
 * part is judged as soon as it is there: a foreign or old peer may never send the rest.
 */
export class GreetingDecoder {
  readonly #bytes = new Uint8Array(GREETING_BYTES);
  #length = 0;

  /** All 64 octets have come, and they are those of a ZMTP 3 peer with NULL. */
  get complete(): boolean {
    return this.#length === GREETING_BYTES;
  }

  /**
   * Takes what belongs to the greeting and returns how many octets that was.
   * Throws {@link NotZmtpError}, {@link ZmtpVersionError} or {@link MechanismError}.
   */
  push(chunk: Uint8Array): number {
    const taken = Math.min(chunk.length, GREETING_BYTES - this.#length);
    this.#bytes.set(chunk.subarray(0, taken), this.#length);
    this.#length += taken;
    this.#check(this.#bytes.subarray(0, this.#length));
    return taken;
  }

  #check(greeting: Uint8Array): void {
    const [first, second] = greeting;
    if (first === undefined) return;
    if (first !== 0xff) {
      // An anonymous ZMTP 1.0 peer opens with an empty frame: length 1, flags 0.
      if (first === 0x01 && second === undefined) return;
      if (first === 0x01 && second === 0x00) throw new ZmtpVersionError("1.0");
      throw new NotZmtpError(greeting.slice(0, SHOWN_BYTES));
    }
    const signatureEnd = greeting[9];
    if (signatureEnd === undefined) return;
    // A ZMTP 1.0 frame in long form has its flags, 0, where later versions have 7F.
    if (signatureEnd === 0x00) throw new ZmtpVersionError("1.0");
    if (signatureEnd !== 0x7f) throw new NotZmtpError(greeting.slice(0, SHOWN_BYTES));

    const major = greeting[10];
    if (major === undefined) return;
    // "A peer MUST accept higher protocol versions as valid", so only older ones matter.
    if (major === 0) throw new ZmtpVersionError("1.0");
    if (major < 3) throw new ZmtpVersionError("2.0");

    if (greeting.length >= MECHANISM_END) checkMechanism(greeting);
  }
}

/** "If the mechanism that the peer received does not exactly match … it MUST close the connection." */
function checkMechanism(greeting: Uint8Array): void {
  const mechanism = greeting.subarray(MECHANISM_START, MECHANISM_END);
  if (mechanism.every((octet, index) => octet === NULL_MECHANISM[index])) return;
  const padded = new TextDecoder("latin1").decode(mechanism);
  throw new MechanismError(padded.replace(/\0+$/, ""));
}
