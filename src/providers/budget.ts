/** How many tokens a reply may have: the model's limit, or what its context window leaves. */

import type { Message } from "../message.ts";
import type { ProviderRequest } from "./provider.ts";

/** Few tokenizers make more than one token of three characters; guessing high only narrows the reply. */
const CHARS_PER_TOKEN = 3;
const TOKENS_PER_IMAGE = 2_000;
/** Less than this is no reply; the provider then says that the request does not fit. */
const MIN_OUTPUT_TOKENS = 1_024;

/**
 * The most tokens to ask for, given the prepared transcript. Servers refuse a request whose input
 * and limit exceed the window together.
 */
export function outputBudget(request: ProviderRequest, messages: readonly Message[]): number {
  const { contextWindow, maxTokens } = request.model;
  const wanted = Math.min(request.maxTokens ?? maxTokens, maxTokens);
  const room = contextWindow - estimateInput(request, messages);
  return Math.min(wanted, Math.max(room, MIN_OUTPUT_TOKENS));
}

function estimateInput(request: ProviderRequest, messages: readonly Message[]): number {
  let chars = request.systemPrompt.length + JSON.stringify(request.tools).length;
  let images = 0;
  for (const message of messages) {
    const size = messageSize(message);
    chars += size.chars;
    images += size.images;
  }
  return Math.ceil(chars / CHARS_PER_TOKEN) + images * TOKENS_PER_IMAGE;
}

function messageSize(message: Message): { chars: number; images: number } {
  if (typeof message.content === "string") return { chars: message.content.length, images: 0 };
  let chars = 0;
  let images = 0;
  for (const block of message.content) {
    if (block.type === "text") chars += block.text.length;
    else if (block.type === "thinking") chars += block.thinking.length;
    else if (block.type === "toolCall") chars += JSON.stringify(block.arguments).length;
    else images += 1;
  }
  return { chars, images };
}
