/** Writes a request of Google's Gemini API. */

import type {
  AssistantMessage,
  ImageBlock,
  Message,
  TextBlock,
  ToolResultMessage,
} from "../message.ts";
import { outputBudget } from "./budget.ts";
import { nearestEffort } from "./effort.ts";
import type { JsonObject } from "./json.ts";
import type { Effort, ProviderRequest, ToolDefinition } from "./provider.ts";
import { plainIds, prepareTranscript } from "./transcript.ts";
import type { HttpCall } from "./transport.ts";

/**
 * Gemini 3 refuses a call in the history without its signature. Google's documentation names this
 * text for calls that have none because another model made them.
 */
const NO_SIGNATURE = "skip_thought_signature_validator";

/** The request as HTTP. What stays the same from turn to turn comes first. */
export function encodeGoogle(request: ProviderRequest): HttpCall {
  const { model } = request;
  const messages = prepareTranscript(request.messages, model, plainIds(64));
  const system = request.systemPrompt.toWellFormed();
  const thinking = model.reasoning ? encodeThinking(model.id, request.effort) : undefined;
  const body: JsonObject = {
    ...(system.trim() === "" ? {} : { systemInstruction: { parts: [{ text: system }] } }),
    ...(request.tools.length > 0
      ? { tools: [{ functionDeclarations: request.tools.map(encodeTool) }] }
      : {}),
    contents: encodeContents(model.id, messages),
    generationConfig: {
      maxOutputTokens: outputBudget(request, messages),
      ...(thinking ? { thinkingConfig: thinking } : {}),
    },
  };
  return {
    url: `${model.baseUrl}/models/${model.id}:streamGenerateContent?alt=sse`,
    headers: {
      "content-type": "application/json",
      accept: "text/event-stream",
      ...(request.apiKey === undefined ? {} : { "x-goog-api-key": request.apiKey }),
      ...model.headers,
    },
    body: JSON.stringify(body),
  };
}

function encodeTool({ name, description, parameters }: ToolDefinition): JsonObject {
  return { name, description, parametersJsonSchema: parameters };
}

/** Results of one reply's calls are together in one content. */
function encodeContents(modelId: string, messages: readonly Message[]): JsonObject[] {
  const strict = generation(modelId) >= 3;
  const contents: JsonObject[] = [];
  let results: JsonObject[] | undefined;
  let images: ImageBlock[] = [];
  const flush = () => {
    results = undefined;
    if (images.length === 0) return;
    const intro: TextBlock = { type: "text", text: "The images of the results above:" };
    contents.push({ role: "user", parts: [intro, ...images].map(encodePart) });
    images = [];
  };
  const push = (message: Exclude<Message, ToolResultMessage>) => {
    flush();
    const parts =
      message.role === "user"
        ? (message.content as TextBlock[]).map(encodePart)
        : encodeAssistant(message, strict);
    contents.push({ role: message.role === "user" ? "user" : "model", parts });
  };
  for (const message of messages) {
    if (message.role !== "toolResult") {
      push(message);
      continue;
    }
    if (!results) contents.push({ role: "user", parts: (results = []) });
    results.push(encodeResult(message, strict));
    if (!strict) images.push(...message.content.filter((block) => block.type === "image"));
  }
  flush();
  return contents;
}

function encodePart(block: TextBlock | ImageBlock): JsonObject {
  if (block.type === "text") return { text: block.text };
  return { inlineData: { mimeType: block.mimeType, data: block.data } };
}

function encodeAssistant(message: AssistantMessage, strict: boolean): JsonObject[] {
  const parts: JsonObject[] = [];
  let signed = false;
  for (const block of message.content) {
    if (block.type === "text") {
      const signature = block.textSignature;
      parts.push({ text: block.text, ...(signature ? { thoughtSignature: signature } : {}) });
    } else if (block.type === "thinking") {
      // A summary means nothing to the model; only what is signed goes back.
      const signature = block.thinkingSignature;
      if (signature)
        parts.push({ text: block.thinking, thought: true, thoughtSignature: signature });
    } else {
      // Of parallel calls only the first one carries a signature.
      const missing = strict && !signed ? NO_SIGNATURE : undefined;
      const signature = block.thoughtSignature ?? missing;
      signed = true;
      parts.push({
        functionCall: { id: block.id, name: block.name, args: block.arguments },
        ...(signature ? { thoughtSignature: signature } : {}),
      });
    }
  }
  return parts;
}

function encodeResult(message: ToolResultMessage, withImages: boolean): JsonObject {
  const texts = message.content.flatMap((block) => (block.type === "text" ? [block.text] : []));
  const images = message.content.filter((block) => block.type === "image");
  const text = texts.length > 0 ? texts.join("\n") : "(the result is an image)";
  return {
    functionResponse: {
      id: message.toolCallId,
      name: message.toolName,
      response: message.isError ? { error: text } : { output: text },
      ...(withImages && images.length > 0 ? { parts: images.map(encodePart) } : {}),
    },
  };
}

/** The generation of a Gemini model; names without a number (`gemini-flash-latest`) mean the newest. */
function generation(modelId: string): number {
  if (!/gemini/.test(modelId)) return 0;
  const version = /gemini-(?:robotics-er-)?(\d+(?:\.\d+)?)/.exec(modelId);
  return version ? Number(version[1]) : Number.POSITIVE_INFINITY;
}

function encodeThinking(modelId: string, effort: Effort | undefined): JsonObject {
  if (effort === undefined) return { includeThoughts: true };
  if (/gemma/.test(modelId)) {
    return { includeThoughts: true, thinkingLevel: nearestEffort(effort, ["minimal", "high"]) };
  }
  if (generation(modelId) < 3) return encodeBudget(modelId, effort);
  const levels: readonly Effort[] = /pro/.test(modelId)
    ? ["low", "medium", "high"]
    : ["minimal", "low", "medium", "high"];
  // These models can't stop thinking; the weakest level comes nearest to "off".
  return { includeThoughts: effort !== "off", thinkingLevel: nearestEffort(effort, levels) };
}

/** Gemini 2.5 takes a budget in tokens; its Pro model can't go below 128. */
function encodeBudget(modelId: string, effort: Effort): JsonObject {
  if (effort === "off") return { thinkingBudget: /pro/.test(modelId) ? 128 : 0 };
  const most = /pro/.test(modelId) ? 32_768 : 24_576;
  return { includeThoughts: true, thinkingBudget: Math.min(most, THINKING_BUDGETS[effort]) };
}

const THINKING_BUDGETS: Record<Exclude<Effort, "off">, number> = {
  minimal: 512,
  low: 2_048,
  medium: 8_192,
  high: 16_384,
  xhigh: 24_576,
  max: 32_768,
};
