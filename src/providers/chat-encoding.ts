/** Writes a request of OpenAI's Chat Completions API. */

import type {
  AssistantMessage,
  ImageBlock,
  Message,
  TextBlock,
  ThinkingBlock,
} from "../message.ts";
import { outputBudget } from "./budget.ts";
import { gatewayOf } from "./gateways.ts";
import type { Gateway } from "./gateways.ts";
import type { JsonObject } from "./json.ts";
import type { ProviderRequest, ToolDefinition } from "./provider.ts";
import { readReasoningDetails } from "./reasoning-details.ts";
import { prepareTranscript } from "./transcript.ts";
import type { HttpCall } from "./transport.ts";

/** The request as HTTP. What stays the same from turn to turn comes first, so that prefixes match. */
export function encodeChat(request: ProviderRequest): HttpCall {
  const { model, tools, effort } = request;
  const gateway = gatewayOf(model);
  const messages = prepareTranscript(request.messages, model, gateway.idRule);
  const body: JsonObject = {
    model: model.id,
    stream: true,
    ...(gateway.asksForUsage ? { stream_options: { include_usage: true } } : {}),
    ...(gateway.cacheKey && request.sessionId ? { prompt_cache_key: request.sessionId } : {}),
    ...(model.reasoning && effort ? gateway.effortFields(effort, model.id) : {}),
    ...(tools.length > 0
      ? { tools: tools.map((tool) => ({ type: "function", function: encodeTool(tool) })) }
      : {}),
    messages: encodeMessages(request.systemPrompt, messages, gateway),
    [gateway.limitField]: outputBudget(request, messages),
  };
  return {
    url: `${model.baseUrl}/chat/completions`,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      ...(request.apiKey === undefined ? {} : { authorization: `Bearer ${request.apiKey}` }),
      ...model.headers,
    },
    body: JSON.stringify(body),
  };
}

/** Only what the format knows: strict servers refuse a request with any other field. */
function encodeTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { name, description, parameters };
}

function encodeMessages(
  systemPrompt: string,
  messages: readonly Message[],
  gateway: Gateway,
): JsonObject[] {
  const encoded: JsonObject[] = [];
  const system = systemPrompt.toWellFormed();
  if (system.trim() !== "") encoded.push({ role: "system", content: system });
  let pendingImages: ImageBlock[] = [];
  const push = (message: JsonObject) => {
    const afterResult = encoded.at(-1)?.["role"] === "tool";
    if (gateway.assistantAfterResult && afterResult && message["role"] === "user") {
      encoded.push({ role: "assistant", content: "(continued)" });
    }
    encoded.push(message);
  };
  const flushImages = () => {
    if (pendingImages.length === 0) return;
    const intro: TextBlock = { type: "text", text: "The images of the results above:" };
    push({ role: "user", content: encodeParts([intro, ...pendingImages]) });
    pendingImages = [];
  };
  for (const message of messages) {
    if (message.role !== "toolResult") flushImages();
    push(encodeMessage(message, gateway));
    if (message.role === "toolResult") pendingImages.push(...message.content.filter(isImage));
  }
  flushImages();
  if (gateway.cacheMarkers) markForCache(encoded);
  return encoded;
}

function encodeMessage(message: Message, gateway: Gateway): JsonObject {
  if (message.role === "assistant") return encodeAssistant(message, gateway);
  const blocks =
    typeof message.content === "string"
      ? [{ type: "text" as const, text: message.content }]
      : message.content;
  if (message.role === "user") {
    return { role: "user", content: blocks.some(isImage) ? encodeParts(blocks) : joinText(blocks) };
  }
  // Results can hold only text here; their images follow in a user message.
  const text = joinText(blocks);
  const content = text === "" ? "(the result is an image, which follows)" : text;
  return { role: "tool", tool_call_id: message.toolCallId, content };
}

function encodeAssistant(message: AssistantMessage, gateway: Gateway): JsonObject {
  const calls = message.content.filter((block) => block.type === "toolCall");
  const thinking = message.content.filter((block) => block.type === "thinking");
  const text = joinText(message.content);
  const parts =
    gateway.thinkingParts && thinking.length > 0 ? thinkingParts(thinking, text) : undefined;
  return {
    role: "assistant",
    content: parts ?? (text === "" ? null : text),
    ...(gateway.alwaysReasoning ? { reasoning_content: "" } : {}),
    ...(gateway.thinkingParts ? {} : reasoningFields(thinking)),
    ...(calls.length === 0
      ? {}
      : {
          tool_calls: calls.map((call) => ({
            id: call.id,
            type: "function",
            function: { name: call.name, arguments: JSON.stringify(call.arguments) },
          })),
        }),
  };
}

/** Reasoning goes back in the field that it came in. */
function reasoningFields(blocks: readonly ThinkingBlock[]): JsonObject {
  const fields: JsonObject = {};
  for (const block of blocks) {
    const signature = block.thinkingSignature ?? "";
    const details = readReasoningDetails(signature);
    if (details) fields["reasoning_details"] = details;
    else if (/^reasoning\w*$/.test(signature)) fields[signature] = block.thinking;
  }
  return fields;
}

function thinkingParts(blocks: readonly ThinkingBlock[], text: string): JsonObject[] {
  const parts: JsonObject[] = blocks.map((block) => ({
    type: "thinking",
    thinking: [{ type: "text", text: block.thinking }],
    closed: true,
  }));
  if (text !== "") parts.push({ type: "text", text });
  return parts;
}

function encodeParts(blocks: ReadonlyArray<TextBlock | ImageBlock>): JsonObject[] {
  return blocks.map((block) =>
    block.type === "text"
      ? { type: "text", text: block.text }
      : { type: "image_url", image_url: { url: `data:${block.mimeType};base64,${block.data}` } },
  );
}

function joinText(blocks: ReadonlyArray<{ type: string; text?: string }>): string {
  return blocks.flatMap((block) => (block.type === "text" ? [block.text ?? ""] : [])).join("\n");
}

function isImage(block: { type: string }): block is ImageBlock {
  return block.type === "image";
}

/**
 * Marks the system prompt and the last two messages that can be marked: the newer mark writes the
 * cache, the older one finds what the previous turn wrote.
 */
function markForCache(messages: JsonObject[]): void {
  const system = messages.filter((message) => message["role"] === "system");
  const others = messages.filter((message) => /^(user|tool)$/.test(String(message["role"])));
  for (const message of [...system, ...others.slice(-2)]) {
    const { content } = message;
    const parts = Array.isArray(content) ? [...content] : [{ type: "text", text: content }];
    parts.push({ ...parts.pop(), cache_control: { type: "ephemeral" } });
    message["content"] = parts;
  }
}
