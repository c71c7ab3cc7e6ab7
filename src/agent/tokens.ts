/** How full the model's context is: what the provider counted last, plus an estimate of what is new. */

import type { ImageBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock } from "../message.ts";
import type { ContextItem } from "./session-context.ts";

/** The sizes of a model that compaction goes by, in tokens. */
export interface ModelWindow {
  /** Input and output together. */
  contextWindow: number;
  /** The most that one reply can have. */
  maxTokens: number;
}

/**
 * Tokens of the next request. `fixedTokens` is the system prompt with the tool's schema; it counts
 * only until the provider has counted it.
 */
export function contextTokens(items: readonly ContextItem[], fixedTokens: number): number {
  const at = items.findLastIndex((item) => measuredTokens(item) > 0);
  const measured = items[at];
  let tokens = measured ? measuredTokens(measured) : fixedTokens;
  for (const item of items.slice(at + 1)) tokens += estimateTokens(item.message);
  return tokens;
}

/** How many tokens the context may have before room for a reply runs short. */
export function tokenLimit({ contextWindow, maxTokens }: ModelWindow): number {
  const wanted = Math.min(maxTokens, Math.max(contextWindow / 5, MIN_REPLY_TOKENS));
  return Math.floor(contextWindow - Math.min(wanted, contextWindow / 2));
}

/** The estimated tokens of one message. */
export function estimateTokens(message: Message): number {
  const { content } = message;
  if (typeof content === "string") return textTokens(content);
  let tokens = 0;
  for (const block of content) tokens += blockTokens(block);
  return tokens;
}

/** The estimated tokens of a text: a quarter of its bytes, which also suits scripts of several bytes a letter. */
export function textTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** What most replies fit in, if the model can say that much. */
const MIN_REPLY_TOKENS = 16_000;
const BYTES_PER_TOKEN = 4;
const IMAGE_TOKENS = 1_200;

/** What the provider counted up to and with this reply, or 0 when it says nothing about the present context. */
function measuredTokens({ message, kept }: ContextItem): number {
  if (kept || message.role !== "assistant") return 0;
  const { input, cacheRead, cacheWrite, output } = message.usage;
  return input + cacheRead + cacheWrite + output;
}

function blockTokens(block: TextBlock | ThinkingBlock | ImageBlock | ToolCallBlock): number {
  switch (block.type) {
    case "text":
      return textTokens(block.text);
    case "thinking":
      return textTokens(block.thinking);
    case "image":
      return IMAGE_TOKENS;
    case "toolCall":
      return textTokens(block.name) + textTokens(JSON.stringify(block.arguments));
  }
}
