/**
 * OpenAI's Chat Completions API, and the many servers that speak it (see
 * `gateways.ts` for their differences). Encoding of the transcript is in
 * `chat-encoding.ts`; here is the stream of `chat.completion.chunk` objects.
 */

import type { StopReason } from "../message.ts";
import { sourceOf } from "./attempts.ts";
import { encodeChat } from "./chat-encoding.ts";
import { dialectProvider } from "./dialect.ts";
import type { StreamDecoder } from "./dialect.ts";
import { ProviderFault } from "./errors.ts";
import { failure, streamFailure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import { asNumber, asObject, asObjects, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { Provider } from "./provider.ts";
import { ReasoningDetails } from "./reasoning-details.ts";
import type { Reply } from "./reply.ts";
import type { SseEvent } from "./sse.ts";
import { readEvent } from "./stream-event.ts";

/** The provider for `openai-completions`. */
export const openAiChat: Provider = dialectProvider({
  api: "openai-completions",
  encode: encodeChat,
  decoder: (reply, request) => new ChatDecoder(reply, sourceOf(request)),
});

/** The fields that servers stream reasoning in; the first that has text counts. */
const REASONING_FIELDS = ["reasoning_content", "reasoning", "reasoning_text"] as const;

class ChatDecoder implements StreamDecoder {
  state: StreamDecoder["state"] = "open";
  readonly #reply: Reply;
  readonly #source: FailureSource;
  readonly #calls: CallKeys;
  readonly #details = new ReasoningDetails();
  #stop: StopReason = "stop";

  constructor(reply: Reply, source: FailureSource) {
    this.#reply = reply;
    this.#source = source;
    this.#calls = new CallKeys(reply);
  }

  accept(sse: SseEvent): void {
    if (sse.data.trim() === "[DONE]") {
      this.state = "closed";
      return;
    }
    const chunk = readEvent(sse, this.#source);
    if (!chunk) return;
    this.#reply.responseId ??= asString(chunk["id"]) || undefined;
    const choice = asObjects(chunk["choices"])[0];
    this.#count(chunk, choice);
    if (!choice) return;
    const delta = asObject(choice["delta"]) ?? asObject(choice["message"]);
    if (delta) this.#delta(delta);
    const reason = asString(choice["finish_reason"]);
    if (reason) this.#finish(reason, choice);
  }

  complete(): void {
    const details = this.#details.take();
    if (details) this.#reply.signThinking(details);
    this.#reply.finish(this.#stop);
  }

  #delta(delta: JsonObject): void {
    for (const field of REASONING_FIELDS) {
      const thinking = asString(delta[field]);
      if (!thinking) continue;
      this.#reply.thinking(thinking);
      // The field's name is what the server needs to get its reasoning back.
      this.#reply.signThinking(field);
      break;
    }
    this.#details.add(asObjects(delta["reasoning_details"]));
    this.#content(delta["content"]);
    this.#reply.text(asString(delta["refusal"]) ?? "");
    for (const item of asObjects(delta["tool_calls"])) this.#toolCall(item);
  }

  #content(content: unknown): void {
    if (typeof content === "string") this.#reply.text(content);
    for (const part of asObjects(content)) {
      if (part["type"] === "thinking") {
        const texts = asObjects(part["thinking"]).map((item) => asString(item["text"]) ?? "");
        this.#reply.thinking(texts.join(""));
      } else {
        this.#reply.text(asString(part["text"]) ?? "");
      }
    }
  }

  #toolCall(item: JsonObject): void {
    const call = asObject(item["function"]) ?? {};
    const id = asString(item["id"]) ?? "";
    const name = asString(call["name"]) ?? "";
    const key = this.#calls.keyFor({ index: asNumber(item["index"]), id, name });
    const json = call["arguments"];
    this.#reply.call(key, {
      id,
      name,
      arguments: asObject(json) ? JSON.stringify(json) : (asString(json) ?? ""),
    });
  }

  #finish(reason: string, choice: JsonObject): void {
    if (/content_filter|safety|sensitive/i.test(reason)) {
      const text = "the provider's content filter ended the reply";
      throw new ProviderFault(failure(this.#source, "content_filter", text));
    }
    if (/context_window/.test(reason)) {
      const text = `the reply ended with ${reason}`;
      throw new ProviderFault(failure(this.#source, "overflow", text));
    }
    if (/error|insufficient_system_resource/.test(reason)) {
      const error = choice["error"] ?? `the reply ended with ${reason}`;
      throw new ProviderFault(streamFailure(this.#source, error, Date.now()));
    }
    if (/^(length|max_tokens|model_length)$/.test(reason)) this.#stop = "length";
    this.state = "finished";
  }

  /** Usage is in a last chunk of its own; some put it into each chunk, the choice or a field of theirs. */
  #count(chunk: JsonObject, choice: JsonObject | undefined): void {
    const usage =
      asObject(chunk["usage"]) ??
      asObject(choice?.["usage"]) ??
      asObject(asObject(chunk["x_groq"])?.["usage"]);
    if (!usage) return;
    const prompt = asNumber(usage["prompt_tokens"]) ?? 0;
    const completion = asNumber(usage["completion_tokens"]) ?? 0;
    const inputDetails = asObject(usage["prompt_tokens_details"]) ?? {};
    const cacheRead =
      asNumber(inputDetails["cached_tokens"]) ??
      asNumber(usage["prompt_cache_hit_tokens"]) ??
      asNumber(usage["cached_tokens"]) ??
      0;
    const cacheWrite = asNumber(inputDetails["cache_write_tokens"]) ?? 0;
    const reasoning = asNumber(asObject(usage["completion_tokens_details"])?.["reasoning_tokens"]);
    // xAI counts reasoning beside the completion, OpenAI within it; the total tells.
    const beside = asNumber(usage["total_tokens"]) === prompt + completion + (reasoning ?? 0);
    this.#reply.count({
      input: Math.max(0, prompt - cacheRead - cacheWrite),
      output: beside ? completion + (reasoning ?? 0) : completion,
      cacheRead,
      cacheWrite,
      ...(reasoning === undefined ? {} : { reasoning }),
    });
  }
}

/** Tells which call a delta belongs to, although servers leave ids out, repeat them, or use one index for all. */
class CallKeys {
  readonly #reply: Reply;
  readonly #byIndex = new Map<number, { key: string; id: string }>();
  readonly #byId = new Map<string, string>();
  #count = 0;
  #last: string | undefined;

  constructor(reply: Reply) {
    this.#reply = reply;
  }

  keyFor(delta: { index: number | undefined; id: string; name: string }): string {
    const known = this.#known(delta);
    const key = known ?? `call:${this.#count++}`;
    if (known === undefined) {
      if (delta.id !== "") this.#byId.set(delta.id, key);
      if (delta.index !== undefined) this.#byIndex.set(delta.index, { key, id: delta.id });
    }
    this.#last = key;
    return key;
  }

  #known({ index, id, name }: { index: number | undefined; id: string; name: string }) {
    const atIndex = index === undefined ? undefined : this.#byIndex.get(index);
    if (atIndex) {
      const sameId = id === "" || id === atIndex.id;
      if (name === "" || (sameId && !this.#reply.isCompleteCall(atIndex.key))) return atIndex.key;
      return undefined;
    }
    // A new index is a new call, even if its id is a repetition.
    if (index !== undefined) return undefined;
    if (id !== "") return this.#byId.get(id);
    return name === "" ? this.#last : undefined;
  }
}
