/** Writes a request of Anthropic's Messages API. */

import type { AssistantMessage, ImageBlock, Message, TextBlock } from "../message.ts";
import { outputBudget } from "./budget.ts";
import { nearestEffort } from "./effort.ts";
import type { JsonObject } from "./json.ts";
import type { Effort, ProviderRequest, ToolDefinition } from "./provider.ts";
import { plainIds, prepareTranscript } from "./transcript.ts";
import type { HttpCall } from "./transport.ts";

const API_VERSION = "2023-06-01";
/** Lets models with a thinking budget think between tool calls too. */
const INTERLEAVED_THINKING = "interleaved-thinking-2025-05-14";
/** The API takes four marks; one is on the system prompt. */
const MESSAGE_MARKS = 3;
const CACHE_MARK = { cache_control: { type: "ephemeral" } };
const callIds = plainIds(64);

/** The request as HTTP. What stays the same from turn to turn comes first. */
export function encodeAnthropic(request: ProviderRequest): HttpCall {
  const { model } = request;
  const messages = prepareTranscript(request.messages, model, callIds);
  const maxTokens = outputBudget(request, messages);
  const thinking = encodeThinking(request, messages, maxTokens);
  const system = request.systemPrompt.toWellFormed();
  const body: JsonObject = {
    model: model.id,
    stream: true,
    ...(request.tools.length > 0 ? { tools: request.tools.map(encodeTool) } : {}),
    ...(system.trim() === "" ? {} : { system: [{ type: "text", text: system, ...CACHE_MARK }] }),
    messages: markForCache(encodeMessages(messages)),
    ...thinking,
    max_tokens: maxTokens,
  };
  const budgeted = (thinking["thinking"] as JsonObject | undefined)?.["type"] === "enabled";
  return {
    // Both forms of the address are in use, with the version and without.
    url: `${model.baseUrl.replace(/\/v1$/, "")}/v1/messages`,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      "anthropic-version": API_VERSION,
      ...(budgeted ? { "anthropic-beta": INTERLEAVED_THINKING } : {}),
      ...(request.apiKey === undefined ? {} : { "x-api-key": request.apiKey }),
      ...model.headers,
    },
    body: JSON.stringify(body),
  };
}

function encodeTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { name, description, input_schema: parameters };
}

/** Results of one reply's calls must be together in one message. */
function encodeMessages(messages: readonly Message[]): JsonObject[] {
  const encoded: JsonObject[] = [];
  let results: JsonObject[] | undefined;
  for (const message of messages) {
    if (message.role === "toolResult") {
      if (!results) {
        results = [];
        encoded.push({ role: "user", content: results });
      }
      results.push({
        type: "tool_result",
        tool_use_id: message.toolCallId,
        content: message.content.map(encodeBlock),
        ...(message.isError ? { is_error: true } : {}),
      });
      continue;
    }
    results = undefined;
    if (message.role === "user") {
      encoded.push({ role: "user", content: (message.content as TextBlock[]).map(encodeBlock) });
    } else {
      encoded.push({ role: "assistant", content: encodeAssistant(message) });
    }
  }
  return encoded;
}

function encodeBlock(block: TextBlock | ImageBlock): JsonObject {
  if (block.type === "text") return { type: "text", text: block.text };
  const source = { type: "base64", media_type: block.mimeType, data: block.data };
  return { type: "image", source };
}

function encodeAssistant(message: AssistantMessage): JsonObject[] {
  const blocks: JsonObject[] = [];
  for (const block of message.content) {
    if (block.type === "text") {
      blocks.push({ type: "text", text: block.text });
    } else if (block.type === "toolCall") {
      blocks.push({ type: "tool_use", id: block.id, name: block.name, input: block.arguments });
    } else if (block.thinkingSignature) {
      // Thinking without a signature would be refused, so it is not sent.
      const { thinking, thinkingSignature: signature } = block;
      if (block.redacted) blocks.push({ type: "redacted_thinking", data: signature });
      else blocks.push({ type: "thinking", thinking, signature });
    }
  }
  return blocks;
}

/**
 * Marks the ends of the last user messages. The newest mark writes the cache up to here; the older
 * ones stay where they were in the previous requests, so that what those wrote is found however
 * many blocks have come since (the API looks back over twenty blocks only).
 */
function markForCache(messages: JsonObject[]): JsonObject[] {
  const users = messages.filter((message) => message["role"] === "user");
  for (const message of users.slice(-MESSAGE_MARKS)) {
    const blocks = message["content"] as JsonObject[];
    const last = blocks.length - 1;
    message["content"] = blocks.with(last, { ...blocks[last], ...CACHE_MARK });
  }
  return messages;
}

/** The fields that set how hard the model thinks. */
function encodeThinking(
  request: ProviderRequest,
  messages: readonly Message[],
  maxTokens: number,
): JsonObject {
  const { model, effort } = request;
  if (!model.reasoning || effort === undefined) return {};
  const levels = adaptiveEfforts(model.id);
  if (effort === "off") {
    // Models up to 4.5 don't think unasked; of the later ones, some do, and some can't stop.
    return levels && !/fable|mythos/.test(model.id) ? { thinking: { type: "disabled" } } : {};
  }
  if (levels) {
    return {
      thinking: { type: "adaptive", display: "summarized" },
      output_config: { effort: nearestEffort(effort, levels) },
    };
  }
  const budget = Math.min(THINKING_BUDGETS[effort], maxTokens - MIN_BUDGET);
  if (budget < MIN_BUDGET || continuesWithoutThinking(messages)) return {};
  return { thinking: { type: "enabled", budget_tokens: budget } };
}

const MIN_BUDGET = 1_024;
const THINKING_BUDGETS: Record<Exclude<Effort, "off">, number> = {
  minimal: MIN_BUDGET,
  low: 4_096,
  medium: 10_240,
  high: 20_480,
  xhigh: 28_672,
  max: 32_768,
};

/** The levels of a model that decides by itself how much to think; `undefined` for one that takes a budget. */
function adaptiveEfforts(modelId: string): readonly Effort[] | undefined {
  const version = /claude-(?:opus|sonnet|haiku|fable|mythos)-(\d+)(?:-(\d{1,2}))?(?!\d)/.exec(
    modelId,
  );
  if (!version) return undefined;
  const number = Number(version[1]) + Number(version[2] ?? 0) / 100;
  if (number < 4.06) return undefined;
  if (number < 4.07) return ["low", "medium", "high", "max"];
  return ["low", "medium", "high", "xhigh", "max"];
}

/**
 * Whether the model is to go on after a call that it made without thinking (another model did, or
 * thinking was off). With a budget, the API refuses to start thinking at that point.
 */
function continuesWithoutThinking(messages: readonly Message[]): boolean {
  if (messages.at(-1)?.role !== "toolResult") return false;
  const calling = messages.findLast((message) => message.role === "assistant");
  return (
    calling?.role === "assistant" &&
    !calling.content.some((block) => block.type === "thinking" && block.thinkingSignature)
  );
}
