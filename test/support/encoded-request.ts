/** Encodes requests for each wire format, and reads from their bodies what all of them have in common. */

import type { Message } from "../../src/message.ts";
import { encodeAnthropic } from "../../src/providers/anthropic-encoding.ts";
import { encodeChat } from "../../src/providers/chat-encoding.ts";
import { encodeGoogle } from "../../src/providers/google-encoding.ts";
import type { Model, ProviderRequest } from "../../src/providers/provider.ts";
import { encodeResponses } from "../../src/providers/responses-encoding.ts";
import { testModel, testRequest } from "./provider-call.ts";
import type { ServedApi } from "./provider-formats.ts";

/** A call or a result in the order in which the provider reads it. */
export type Step = { call: string } | { result: string; text: string };

const ENCODERS = {
  "openai-completions": encodeChat,
  "openai-responses": encodeResponses,
  "anthropic-messages": encodeAnthropic,
  "google-generative-ai": encodeGoogle,
};

/** The body of a request with `messages`, as text. */
export function bodyText(
  api: ServedApi,
  messages: readonly Message[],
  model: Partial<Model> = {},
  request: Partial<ProviderRequest> = {},
): string {
  const full = testModel(api, "https://api.test/v1", model);
  return ENCODERS[api](testRequest(full, { messages, ...request })).body;
}

/** The body of a request with `messages`, parsed. */
export function bodyOf(...args: Parameters<typeof bodyText>): any {
  return JSON.parse(bodyText(...args));
}

/** The list of messages in a body, whatever the format calls it. */
export function messagesIn(api: ServedApi, body: any): any[] {
  if (api === "google-generative-ai") return body.contents;
  return api === "openai-responses" ? body.input : body.messages;
}

/** The calls and results of a body in order. */
export function stepsIn(api: ServedApi, body: any): Step[] {
  return messagesIn(api, body).flatMap((message) => STEP_READERS[api](message));
}

const STEP_READERS: Record<ServedApi, (message: any) => Step[]> = {
  "openai-completions": (message) =>
    message.role === "tool"
      ? [{ result: message.tool_call_id, text: message.content }]
      : (message.tool_calls ?? []).map((call: any) => ({ call: call.id })),
  "openai-responses": (item) => {
    if (item.type === "function_call") return [{ call: item.call_id }];
    if (item.type !== "function_call_output") return [];
    return [{ result: item.call_id, text: textOf(item.output) }];
  },
  "anthropic-messages": (message) =>
    message.content.flatMap((block: any) => {
      if (block.type === "tool_use") return [{ call: block.id }];
      if (block.type !== "tool_result") return [];
      return [{ result: block.tool_use_id, text: textOf(block.content) }];
    }),
  "google-generative-ai": (content) =>
    content.parts.flatMap((part: any) => {
      if (part.functionCall) return [{ call: part.functionCall.id }];
      if (!part.functionResponse) return [];
      const { output, error } = part.functionResponse.response;
      return [{ result: part.functionResponse.id, text: output ?? error }];
    }),
};

function textOf(content: any): string {
  if (typeof content === "string") return content;
  return content.map((part: any) => part.text ?? "").join("");
}
