/** Images that the provider refused: they stay in the session, but are not sent again. */

import type { Message } from "../message.ts";

const PLACEHOLDER = {
  type: "text" as const,
  text: "[an image was left out: the provider refused it]",
};

/** See the head of this file. Remembers messages by what the transcript keeps of them. */
export class RefusedImages {
  readonly #keys = new Set<string>();

  /** The transcript without the images that were refused. */
  leaveOut(messages: readonly Message[]): readonly Message[] {
    if (this.#keys.size === 0) return messages;
    return messages.map((message) =>
      this.#keys.has(keyOf(message)) ? withoutImages(message) : message,
    );
  }

  /** The images of the last message of the transcript that has some were refused; false when there are none. */
  refuseLatest(messages: readonly Message[]): boolean {
    const latest = messages.findLast(hasImages);
    if (latest) this.#keys.add(keyOf(latest));
    return latest !== undefined;
  }
}

function keyOf(message: Message): string {
  const id = message.role === "toolResult" ? message.toolCallId : "";
  return `${message.role} ${message.timestamp} ${id}`;
}

function hasImages(message: Message): boolean {
  if (message.role === "assistant" || typeof message.content === "string") return false;
  return message.content.some((block) => block.type === "image");
}

function withoutImages(message: Message): Message {
  if (message.role === "assistant" || typeof message.content === "string") return message;
  const content = message.content.map((block) => (block.type === "image" ? PLACEHOLDER : block));
  return { ...message, content } as Message;
}
