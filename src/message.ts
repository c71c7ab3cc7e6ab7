/**
 * The transcript's own message types, neutral between providers. Providers
 * translate them to their wire formats; sessions store them as they are
 * (version 3 of the pi family's session format).
 */

/** Text for or from the model. `textSignature` is opaque provider state that must go back unchanged. */
export interface TextBlock {
  type: "text";
  text: string;
  textSignature?: string;
}

/** Reasoning of the model. `thinkingSignature` is opaque provider state; `redacted` hides the text. */
export interface ThinkingBlock {
  type: "thinking";
  thinking: string;
  thinkingSignature?: string;
  redacted?: boolean;
}

/** An image: `data` is base64 without a prefix. */
export interface ImageBlock {
  type: "image";
  data: string;
  mimeType: string;
}

/**
 * A request of the model to run a tool. `arguments` is always a JSON object; when what the model
 * sent was not one (cut off, malformed), it is `{}` and `malformed` says why: such a call is never
 * executed and is answered with an error result.
 */
export interface ToolCallBlock {
  type: "toolCall";
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  malformed?: string;
  thoughtSignature?: string;
}

/** Tokens and cost of one model reply. `input` excludes what was read from or written to the cache. */
export interface Usage {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** Tokens of `output` that were reasoning, where the provider says so. */
  reasoning?: number;
  totalTokens: number;
  /** US dollars; all zero when the price is unknown. */
  cost: { input: number; output: number; cacheRead: number; cacheWrite: number; total: number };
}

/** Why a reply ended. */
export type StopReason = "stop" | "length" | "toolUse" | "error" | "aborted";

/** What a person, or the program on their behalf, says. `timestamp` is in milliseconds since 1970. */
export interface UserMessage {
  role: "user";
  content: string | Array<TextBlock | ImageBlock>;
  timestamp: number;
}

/** One reply of the model. */
export interface AssistantMessage {
  role: "assistant";
  content: Array<TextBlock | ThinkingBlock | ToolCallBlock>;
  api: string;
  provider: string;
  model: string;
  usage: Usage;
  stopReason: StopReason;
  errorMessage?: string;
  /** The provider's own id of the reply, where it has one. */
  responseId?: string;
  timestamp: number;
}

/** The outcome of one tool call. `details` is for rendering, sessions and events, never for the model. */
export interface ToolResultMessage {
  role: "toolResult";
  toolCallId: string;
  toolName: string;
  content: Array<TextBlock | ImageBlock>;
  details?: unknown;
  isError: boolean;
  timestamp: number;
}

/** One entry of the transcript. */
export type Message = UserMessage | AssistantMessage | ToolResultMessage;

/** A usage record with nothing in it. */
export function emptyUsage(): Usage {
  return {
    input: 0,
    output: 0,
    cacheRead: 0,
    cacheWrite: 0,
    totalTokens: 0,
    cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 },
  };
}

/** Adds `more` to `sum` in place. */
export function addUsage(sum: Usage, more: Usage): void {
  sum.input += more.input;
  sum.output += more.output;
  sum.cacheRead += more.cacheRead;
  sum.cacheWrite += more.cacheWrite;
  if (more.reasoning !== undefined) sum.reasoning = (sum.reasoning ?? 0) + more.reasoning;
  sum.totalTokens += more.totalTokens;
  sum.cost.input += more.cost.input;
  sum.cost.output += more.cost.output;
  sum.cost.cacheRead += more.cost.cacheRead;
  sum.cost.cacheWrite += more.cost.cacheWrite;
  sum.cost.total += more.cost.total;
}

/** The text of a message's text blocks, joined. */
export function messageText(message: Message): string {
  if (typeof message.content === "string") return message.content;
  let text = "";
  for (const block of message.content) if (block.type === "text") text += block.text;
  return text;
}
