/** The messages that wait to be sent to one peer. */

import { SendQueueFullError } from "./errors.ts";

/** Taken messages are cut off the front of the list once there are this many. */
const COMPACT_AT = 1024;

/**
 * A bounded first-in, first-out queue of encoded messages. It belongs to the socket, not to one
 * connection: RFC 28, "SHALL maintain the double queue whether or not the connection is established".
 */
export class Outbox {
  readonly #maxBytes: number;
  #messages: Uint8Array[] = [];
  #head = 0;
  #bytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Bytes of all messages that have not been removed. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The oldest message. */
  get first(): Uint8Array | undefined {
    return this.#messages[this.#head];
  }

  /** Appends an encoded message. Throws {@link SendQueueFullError}: RFC 28, "or return a suitable error". */
  push(message: Uint8Array): void {
    if (this.#bytes + message.length > this.#maxBytes) {
      throw new SendQueueFullError(this.#bytes, this.#maxBytes);
    }
    this.#messages.push(message);
    this.#bytes += message.length;
  }

  /** Removes the oldest message. */
  shift(): void {
    this.#bytes -= this.first?.length ?? 0;
    this.#head += 1;
    if (this.#head < this.#messages.length && this.#head < COMPACT_AT) return;
    this.#messages.splice(0, this.#head);
    this.#head = 0;
  }

  /** Removes all messages. */
  clear(): void {
    this.#messages = [];
    this.#head = 0;
    this.#bytes = 0;
  }
}
