/** An answer that the output limit cuts off is asked for further, and put together again. */

import type { AssistantMessage } from "../message.ts";
import { messageText } from "../message.ts";
import type { InboxMessage } from "./inbox.ts";

/** How often in a row the model is asked to go on. */
const MAX_CONTINUATIONS = 3;

const NOTICE = `<notice>
Your reply was cut off by the output limit. If it was your answer, go on exactly where it stops, without repeating any of it. If you were writing a cell, write it again in smaller pieces.
</notice>`;

/** See the head of this file. */
export class UnfinishedAnswer {
  #parts: string[] = [];

  /** The answer so far, with that of the latest reply. */
  get text(): string {
    return this.#parts.join("");
  }

  /** Takes a reply; returns what the model must be told when it was cut off, as often as that makes sense. */
  add(message: AssistantMessage): InboxMessage | undefined {
    if (message.content.some((block) => block.type === "toolCall")) {
      this.#parts = [];
      return undefined;
    }
    this.#parts.push(messageText(message));
    const goesOn = message.stopReason === "length" && this.#parts.length <= MAX_CONTINUATIONS;
    return goesOn ? { source: "notice", content: NOTICE } : undefined;
  }

  /** The answer is complete: the next reply begins another one. */
  end(): void {
    this.#parts = [];
  }
}
