/** What a request says, the same for all wire formats: for assertions about what a provider got. */

import type { RecordedRequest } from "./provider-server.ts";

/** One tool result as it was sent. */
export interface SentResult {
  id: string;
  text: string;
}

/** The neutral parts of a request. */
export interface SentRequest {
  system: string;
  tools: Array<{ name: string; schema: any; keys: string[] }>;
  /** Texts that the user said, images left out. */
  userTexts: string[];
  /** Base64 of every image, in the prompt or in a result. */
  images: string[];
  calls: Array<{ id: string; name: string; arguments: any }>;
  results: SentResult[];
  /** Texts of the model. */
  assistantTexts: string[];
}

/** Reads a recorded request. */
export function sentRequest(request: RecordedRequest | undefined): SentRequest {
  if (!request) throw new Error("there was no such request");
  switch (request.api) {
    case "openai-completions":
      return chatRequest(request.body);
    case "openai-responses":
      return responsesRequest(request.body);
    case "anthropic-messages":
      return anthropicRequest(request.body);
    case "google-generative-ai":
      return googleRequest(request.body);
  }
}

function empty(system: string): SentRequest {
  const none = { userTexts: [], images: [], calls: [], results: [], assistantTexts: [] };
  return { system, tools: [], ...none };
}

function toolOf(tool: any, schema: any): SentRequest["tools"][number] {
  return { name: tool.name, schema, keys: Object.keys(tool).sort() };
}

function chatRequest(body: any): SentRequest {
  const [system, ...messages] = body.messages;
  const sent = empty(system.content);
  sent.tools = (body.tools ?? []).map((tool: any) =>
    toolOf(tool.function, tool.function.parameters),
  );
  for (const message of messages) {
    const parts = partsOf(message.content);
    const texts = parts.filter((part) => part.type === "text").map((part) => part.text);
    for (const part of parts) {
      if (part.type === "image_url") sent.images.push(afterComma(part.image_url.url));
    }
    if (message.role === "user") sent.userTexts.push(...texts);
    else if (message.role === "tool")
      sent.results.push({ id: message.tool_call_id, text: texts.join("\n") });
    else {
      sent.assistantTexts.push(...texts);
      for (const call of message.tool_calls ?? []) {
        const { name, arguments: json } = call.function;
        sent.calls.push({ id: call.id, name, arguments: JSON.parse(json) });
      }
    }
  }
  return sent;
}

function responsesRequest(body: any): SentRequest {
  const sent = empty(body.instructions);
  sent.tools = (body.tools ?? []).map((tool: any) => toolOf(tool, tool.parameters));
  for (const item of body.input) {
    const parts = partsOf(item.content ?? item.output ?? []);
    for (const part of parts) {
      if (part.type === "input_image") sent.images.push(afterComma(part.image_url));
    }
    const texts = parts.filter((part) => part.text !== undefined).map((part) => part.text);
    if (item.type === "function_call_output")
      sent.results.push({ id: item.call_id, text: texts.join("\n") });
    else if (item.type === "function_call") {
      sent.calls.push({ id: item.call_id, name: item.name, arguments: JSON.parse(item.arguments) });
    } else if (item.role === "user") sent.userTexts.push(...texts);
    else if (item.role === "assistant") sent.assistantTexts.push(...texts);
  }
  return sent;
}

function anthropicRequest(body: any): SentRequest {
  const sent = empty(body.system.map((block: any) => block.text).join(""));
  sent.tools = (body.tools ?? []).map((tool: any) => toolOf(tool, tool.input_schema));
  for (const message of body.messages) {
    for (const block of partsOf(message.content)) {
      if (block.type === "image") sent.images.push(block.source.data);
      else if (block.type === "tool_use")
        sent.calls.push({ id: block.id, name: block.name, arguments: block.input });
      else if (block.type === "tool_result") {
        const parts = partsOf(block.content);
        const texts = parts.filter((part) => part.type === "text").map((part) => part.text);
        sent.results.push({ id: block.tool_use_id, text: texts.join("\n") });
        for (const part of parts) if (part.type === "image") sent.images.push(part.source.data);
      } else if (block.type === "text") {
        (message.role === "user" ? sent.userTexts : sent.assistantTexts).push(block.text);
      }
    }
  }
  return sent;
}

function googleRequest(body: any): SentRequest {
  const sent = empty(body.systemInstruction.parts.map((part: any) => part.text).join(""));
  const declarations = (body.tools ?? []).flatMap((tool: any) => tool.functionDeclarations);
  sent.tools = declarations.map((tool: any) =>
    toolOf(tool, tool.parametersJsonSchema ?? tool.parameters),
  );
  for (const content of body.contents) {
    for (const part of content.parts) {
      if (part.inlineData) sent.images.push(part.inlineData.data);
      if (part.text !== undefined)
        (content.role === "user" ? sent.userTexts : sent.assistantTexts).push(part.text);
      if (part.functionCall) {
        const { id, name, args } = part.functionCall;
        sent.calls.push({ id, name, arguments: args });
      }
      if (part.functionResponse) {
        const { id, response, parts = [] } = part.functionResponse;
        sent.results.push({ id, text: response.output ?? response.error });
        for (const more of parts) if (more.inlineData) sent.images.push(more.inlineData.data);
      }
    }
  }
  return sent;
}

function partsOf(content: any): any[] {
  if (content === null || content === undefined) return [];
  return typeof content === "string" ? [{ type: "text", text: content }] : content;
}

function afterComma(dataUrl: string): string {
  return dataUrl.slice(dataUrl.indexOf(",") + 1);
}
