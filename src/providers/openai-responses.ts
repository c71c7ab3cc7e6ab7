/** OpenAI's Responses API: the stream of events. Encoding of the transcript is in `responses-encoding.ts`. */

import type { StopReason } from "../message.ts";
import { sourceOf } from "./attempts.ts";
import { dialectProvider } from "./dialect.ts";
import type { StreamDecoder } from "./dialect.ts";
import { ProviderFault } from "./errors.ts";
import { failure, streamFailure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import { asNumber, asObject, asObjects, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { Provider } from "./provider.ts";
import type { Reply } from "./reply.ts";
import { encodeResponses, signMessageItem } from "./responses-encoding.ts";
import type { SseEvent } from "./sse.ts";
import { readEvent } from "./stream-event.ts";

/** The provider for `openai-responses`. */
export const openAiResponses: Provider = dialectProvider({
  api: "openai-responses",
  encode: encodeResponses,
  decoder: (reply, request) => new ResponsesDecoder(reply, sourceOf(request)),
});

class ResponsesDecoder implements StreamDecoder {
  state: StreamDecoder["state"] = "open";
  readonly #reply: Reply;
  readonly #source: FailureSource;
  /** Items of which text has arrived in pieces; the others bring it whole when they are done. */
  readonly #streamed = new Set<string>();
  #stop: StopReason = "stop";

  constructor(reply: Reply, source: FailureSource) {
    this.#reply = reply;
    this.#source = source;
  }

  accept(sse: SseEvent): void {
    const event = readEvent(sse, this.#source);
    if (!event) return;
    const key = keyOf(event);
    const delta = asString(event["delta"]) ?? "";
    switch (event["type"]) {
      case "response.created":
        this.#reply.responseId = asString(asObject(event["response"])?.["id"]);
        return;
      case "response.output_item.added":
        return this.#item(key, asObject(event["item"]) ?? {}, false);
      case "response.output_item.done":
        return this.#item(key, asObject(event["item"]) ?? {}, true);
      case "response.output_text.delta":
      case "response.refusal.delta":
        this.#streamed.add(key);
        return this.#reply.text(delta, key);
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        this.#streamed.add(key);
        return this.#reply.thinking(delta, key);
      case "response.reasoning_summary_part.added":
        // Parts of a summary are paragraphs.
        if (this.#streamed.has(key)) this.#reply.thinking("\n\n", key);
        return;
      case "response.function_call_arguments.delta":
        return this.#reply.call(key, { arguments: delta });
      case "response.completed":
      case "response.done":
      case "response.incomplete":
        return this.#end(asObject(event["response"]) ?? {});
      case "response.failed":
        throw new ProviderFault(
          streamFailure(this.#source, asObject(event["response"])?.["error"], Date.now()),
        );
      case "error":
        throw new ProviderFault(streamFailure(this.#source, event, Date.now()));
    }
  }

  complete(): void {
    this.#reply.finish(this.#stop);
  }

  #item(key: string, item: JsonObject, done: boolean): void {
    switch (item["type"]) {
      case "function_call":
        this.#reply.call(key, {
          id: asString(item["call_id"]) ?? "",
          name: asString(item["name"]) ?? "",
        });
        if (done) this.#reply.setArguments(key, asString(item["arguments"]) ?? "");
        return;
      case "message":
        if (!done) return this.#reply.reserve("text", key);
        if (!this.#streamed.has(key)) this.#reply.text(textOf(item["content"]), key);
        return this.#reply.signText(signMessageItem(item), key);
      case "reasoning":
        if (!done) return this.#reply.reserve("thinking", key);
        if (!this.#streamed.has(key)) this.#reply.thinking(textOf(item["summary"]), key);
        // Only an encrypted item means anything to a server that stores nothing.
        if (item["encrypted_content"]) this.#reply.signThinking(JSON.stringify(item), key);
    }
  }

  #end(response: JsonObject): void {
    this.#count(asObject(response["usage"]) ?? {});
    if (response["status"] === "failed" || response["error"]) {
      throw new ProviderFault(streamFailure(this.#source, response["error"], Date.now()));
    }
    const reason = asString(asObject(response["incomplete_details"])?.["reason"]);
    if (reason === "content_filter") {
      const text = "the provider's content filter ended the reply";
      throw new ProviderFault(failure(this.#source, "content_filter", text));
    }
    if (reason || response["status"] === "incomplete") this.#stop = "length";
    this.state = "closed";
  }

  #count(usage: JsonObject): void {
    const details = asObject(usage["input_tokens_details"]) ?? {};
    const cacheRead = asNumber(details["cached_tokens"]) ?? 0;
    const cacheWrite = asNumber(details["cache_write_tokens"]) ?? 0;
    const reasoning = asNumber(asObject(usage["output_tokens_details"])?.["reasoning_tokens"]);
    this.#reply.count({
      input: Math.max(0, (asNumber(usage["input_tokens"]) ?? 0) - cacheRead - cacheWrite),
      output: asNumber(usage["output_tokens"]) ?? 0,
      cacheRead,
      cacheWrite,
      ...(reasoning === undefined ? {} : { reasoning }),
    });
  }
}

function keyOf(event: JsonObject): string {
  return `item:${asNumber(event["output_index"]) ?? asString(event["item_id"]) ?? 0}`;
}

function textOf(parts: unknown): string {
  return asObjects(parts)
    .map((part) => asString(part["text"]) ?? asString(part["refusal"]) ?? "")
    .join("\n\n");
}
