/** Anthropic's Messages API: the stream of events. Encoding of the transcript is in `anthropic-encoding.ts`. */

import type { StopReason } from "../message.ts";
import { encodeAnthropic } from "./anthropic-encoding.ts";
import { sourceOf } from "./attempts.ts";
import { dialectProvider } from "./dialect.ts";
import type { StreamDecoder } from "./dialect.ts";
import { ProviderFault } from "./errors.ts";
import { failure, streamFailure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import { asNumber, asObject, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { Provider } from "./provider.ts";
import type { Reply } from "./reply.ts";
import type { SseEvent } from "./sse.ts";
import { readEvent } from "./stream-event.ts";

/** The provider for `anthropic-messages`. */
export const anthropic: Provider = dialectProvider({
  api: "anthropic-messages",
  encode: encodeAnthropic,
  decoder: (reply, request) => new AnthropicDecoder(reply, sourceOf(request)),
});

class AnthropicDecoder implements StreamDecoder {
  state: StreamDecoder["state"] = "open";
  readonly #reply: Reply;
  readonly #source: FailureSource;
  /** Inputs that came whole with the start of their block, for servers that send no pieces of them. */
  readonly #wholeInputs = new Map<string, string>();
  #usage: JsonObject = {};
  #stop: StopReason = "stop";

  constructor(reply: Reply, source: FailureSource) {
    this.#reply = reply;
    this.#source = source;
  }

  accept(sse: SseEvent): void {
    const event = readEvent(sse, this.#source);
    if (!event) return;
    switch (event["type"]) {
      case "message_start":
        return this.#start(asObject(event["message"]) ?? {});
      case "content_block_start":
        return this.#startBlock(keyOf(event), asObject(event["content_block"]) ?? {});
      case "content_block_delta":
        return this.#delta(keyOf(event), asObject(event["delta"]) ?? {});
      case "message_delta":
        return this.#end(event);
      case "message_stop":
        // Without a stop reason the reply is not known to be complete.
        if (this.state === "finished") this.state = "closed";
        return;
      case "error":
        throw new ProviderFault(streamFailure(this.#source, event, Date.now()));
    }
  }

  complete(): void {
    for (const [key, json] of this.#wholeInputs) this.#reply.setArguments(key, json);
    this.#reply.finish(this.#stop);
  }

  #start(message: JsonObject): void {
    this.#reply.responseId = asString(message["id"]);
    this.#count(asObject(message["usage"]));
  }

  #startBlock(key: string, block: JsonObject): void {
    switch (block["type"]) {
      case "text":
        this.#reply.reserve("text", key);
        return this.#reply.text(asString(block["text"]) ?? "", key);
      case "thinking":
        this.#reply.reserve("thinking", key);
        this.#reply.thinking(asString(block["thinking"]) ?? "", key);
        if (block["signature"]) this.#reply.signThinking(String(block["signature"]), key);
        return;
      case "redacted_thinking":
        return this.#reply.signThinking(asString(block["data"]) ?? "", key, true);
      case "tool_use": {
        const input = asObject(block["input"]);
        if (input && Object.keys(input).length > 0) {
          this.#wholeInputs.set(key, JSON.stringify(input));
        }
        return this.#reply.call(key, {
          id: asString(block["id"]) ?? "",
          name: asString(block["name"]) ?? "",
        });
      }
    }
  }

  #delta(key: string, delta: JsonObject): void {
    switch (delta["type"]) {
      case "text_delta":
        return this.#reply.text(asString(delta["text"]) ?? "", key);
      case "thinking_delta":
        return this.#reply.thinking(asString(delta["thinking"]) ?? "", key);
      case "signature_delta":
        return this.#reply.signThinking(asString(delta["signature"]) ?? "", key);
      case "input_json_delta": {
        const json = asString(delta["partial_json"]) ?? "";
        if (json !== "") this.#wholeInputs.delete(key);
        return this.#reply.call(key, { arguments: json });
      }
    }
  }

  #end(event: JsonObject): void {
    this.#count(asObject(event["usage"]));
    const delta = asObject(event["delta"]) ?? {};
    const reason = asString(delta["stop_reason"]);
    if (!reason) return;
    if (reason === "refusal") {
      const why = asString(asObject(delta["stop_details"])?.["explanation"]);
      const text = `the model refused to answer${why ? `: ${why}` : ""}`;
      throw new ProviderFault(failure(this.#source, "content_filter", text));
    }
    if (reason === "model_context_window_exceeded") {
      const text = "the reply filled the model's context window";
      throw new ProviderFault(failure(this.#source, "overflow", text));
    }
    if (reason === "max_tokens") this.#stop = "length";
    this.state = "finished";
  }

  /** Counts are totals so far; the last event has only those that changed. */
  #count(usage: JsonObject | undefined): void {
    if (!usage) return;
    for (const [name, value] of Object.entries(usage)) {
      if (value !== null) this.#usage[name] = value;
    }
    const all = this.#usage;
    const reasoning = asNumber(asObject(all["output_tokens_details"])?.["thinking_tokens"]);
    this.#reply.count({
      input: asNumber(all["input_tokens"]) ?? 0,
      output: asNumber(all["output_tokens"]) ?? 0,
      cacheRead: asNumber(all["cache_read_input_tokens"]) ?? 0,
      cacheWrite: asNumber(all["cache_creation_input_tokens"]) ?? 0,
      ...(reasoning === undefined ? {} : { reasoning }),
    });
  }
}

function keyOf(event: JsonObject): string {
  return `block:${asNumber(event["index"]) ?? 0}`;
}
