/**
 * Messages for the model that do not come from the person's prompt: steering
 * typed while it works, messages of other agents, notices. Delivered between
 * turns, in order.
 */

import { defer } from "../async.ts";
import type { ImageBlock, TextBlock } from "../message.ts";

/** One message waiting for delivery. */
export interface InboxMessage {
  /** What it is: `steering`, `agent-message`, `notice`, `goal`, … */
  source: string;
  content: string | Array<TextBlock | ImageBlock>;
  details?: unknown;
  /** Called when the message has entered the transcript. */
  onDelivered?(): void;
}

/** See the head of this file. */
export class Inbox {
  #messages: InboxMessage[] = [];
  #arrival = defer<void>();

  get size(): number {
    return this.#messages.length;
  }

  push(message: InboxMessage): void {
    this.#messages.push(message);
    this.#arrival.resolve();
  }

  /** Everything that waits, in order; the inbox is empty afterwards. */
  take(): InboxMessage[] {
    const messages = this.#messages;
    this.#messages = [];
    this.#arrival = defer<void>();
    return messages;
  }

  /** Takes back what waits and came from `source`; everything else stays. */
  withdraw(source: string): InboxMessage[] {
    const withdrawn = this.#messages.filter((message) => message.source === source);
    this.#messages = this.#messages.filter((message) => message.source !== source);
    if (withdrawn.length > 0 && this.#messages.length === 0) this.#arrival = defer<void>();
    return withdrawn;
  }

  /** Resolves when there is at least one message. */
  arrival(): Promise<void> {
    return this.#messages.length > 0 ? Promise.resolve() : this.#arrival.promise;
  }
}
