/** Writes a request of OpenAI's Responses API, without any state on the server. */

import type { AssistantMessage, ImageBlock, Message, TextBlock } from "../message.ts";
import { outputBudget } from "./budget.ts";
import { openAiEffort } from "./effort.ts";
import { asString, parseObject } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { ProviderRequest, ToolDefinition } from "./provider.ts";
import { plainIds, prepareTranscript } from "./transcript.ts";
import type { HttpCall } from "./transport.ts";

const plainCallIds = plainIds(64);
/** Sessions of other programs keep the item's id behind the call's. */
const callIds = (id: string) => plainCallIds(id.replace(/\|.*$/, ""));

/** The request as HTTP. What stays the same from turn to turn comes first. */
export function encodeResponses(request: ProviderRequest): HttpCall {
  const { model, effort } = request;
  const messages = prepareTranscript(request.messages, model, callIds);
  const system = request.systemPrompt.toWellFormed();
  const body: JsonObject = {
    model: model.id,
    stream: true,
    store: false,
    ...(request.sessionId ? { prompt_cache_key: request.sessionId } : {}),
    ...(model.reasoning ? { include: ["reasoning.encrypted_content"] } : {}),
    ...(model.reasoning && effort ? { reasoning: encodeReasoning(model.id, effort) } : {}),
    ...(request.tools.length > 0 ? { tools: request.tools.map(encodeTool) } : {}),
    ...(system.trim() === "" ? {} : { instructions: system }),
    input: messages.flatMap(encodeMessage),
    max_output_tokens: outputBudget(request, messages),
  };
  return {
    url: `${model.baseUrl}/responses`,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      ...(request.apiKey === undefined ? {} : { authorization: `Bearer ${request.apiKey}` }),
      ...model.headers,
    },
    body: JSON.stringify(body),
  };
}

function encodeReasoning(
  modelId: string,
  effort: NonNullable<ProviderRequest["effort"]>,
): JsonObject {
  const level = openAiEffort(modelId, effort);
  return level === "none" ? { effort: level } : { effort: level, summary: "auto" };
}

function encodeTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { type: "function", name, description, parameters, strict: false };
}

function encodeMessage(message: Message): JsonObject[] {
  if (message.role === "assistant") return encodeAssistant(message);
  const blocks = message.content as Array<TextBlock | ImageBlock>;
  if (message.role === "user") return [{ role: "user", content: blocks.map(encodeInput) }];
  const onlyText = blocks.every((block) => block.type === "text");
  return [
    {
      type: "function_call_output",
      call_id: message.toolCallId,
      output: onlyText ? blocks.map((block) => block.text).join("\n") : blocks.map(encodeInput),
    },
  ];
}

function encodeInput(block: TextBlock | ImageBlock): JsonObject {
  if (block.type === "text") return { type: "input_text", text: block.text };
  const url = `data:${block.mimeType};base64,${block.data}`;
  return { type: "input_image", image_url: url, detail: "auto" };
}

function encodeAssistant(message: AssistantMessage): JsonObject[] {
  const items: JsonObject[] = [];
  for (const block of message.content) {
    if (block.type === "thinking") {
      const item = parseObject(block.thinkingSignature ?? "");
      if (item?.["type"] === "reasoning" && item["encrypted_content"]) items.push(item);
    } else if (block.type === "text") {
      items.push({
        type: "message",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: block.text, annotations: [] }],
        ...readMessageItem(block.textSignature),
      });
    } else {
      items.push({
        type: "function_call",
        call_id: block.id,
        name: block.name,
        arguments: JSON.stringify(block.arguments),
      });
    }
  }
  return items;
}

/** What of a message item must come back with it, as opaque state for its text. */
export function signMessageItem(item: JsonObject): string {
  const phase = asString(item["phase"]);
  return JSON.stringify({ v: 1, id: asString(item["id"]), ...(phase ? { phase } : {}) });
}

function readMessageItem(signature: string | undefined): JsonObject {
  const state = parseObject(signature ?? "");
  const id = asString(state?.["id"]);
  const phase = asString(state?.["phase"]);
  return {
    ...(id && /^msg_[\w-]{1,60}$/.test(id) ? { id } : {}),
    ...(phase ? { phase } : {}),
  };
}
