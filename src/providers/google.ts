/** Google's Gemini API (`streamGenerateContent`): the stream of responses. Encoding is in `google-encoding.ts`. */

import type { StopReason } from "../message.ts";
import { sourceOf } from "./attempts.ts";
import { dialectProvider } from "./dialect.ts";
import type { StreamDecoder } from "./dialect.ts";
import { ProviderFault } from "./errors.ts";
import { failure } from "./failure.ts";
import type { FailureSource } from "./failure.ts";
import { encodeGoogle } from "./google-encoding.ts";
import { asNumber, asObject, asObjects, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import type { Provider, ProviderRequest } from "./provider.ts";
import type { Reply } from "./reply.ts";
import type { SseEvent } from "./sse.ts";
import { readEvent } from "./stream-event.ts";

/** The provider for `google-generative-ai`. */
export const google: Provider = dialectProvider({
  api: "google-generative-ai",
  encode: encodeGoogle,
  decoder: (reply, request) => new GoogleDecoder(reply, request),
});

const FILTER_REASONS = /SAFETY|RECITATION|BLOCKLIST|PROHIBITED_CONTENT|SPII|LANGUAGE/;
const BAD_CALL_REASONS = /MALFORMED_FUNCTION_CALL|UNEXPECTED_TOOL_CALL|TOO_MANY_TOOL_CALLS/;

class GoogleDecoder implements StreamDecoder {
  state: StreamDecoder["state"] = "open";
  readonly #reply: Reply;
  readonly #source: FailureSource;
  readonly #toolName: string;
  /** Parts have no index: a block goes on as long as its kind does. */
  #block = 0;
  #kind = "";
  #stop: StopReason = "stop";

  constructor(reply: Reply, request: ProviderRequest) {
    this.#reply = reply;
    this.#source = sourceOf(request);
    this.#toolName = request.tools[0]?.name ?? "";
  }

  accept(sse: SseEvent): void {
    const chunk = readEvent(sse, this.#source);
    if (!chunk) return;
    this.#reply.responseId ??= asString(chunk["responseId"]);
    this.#count(asObject(chunk["usageMetadata"]));
    const blocked = asString(asObject(chunk["promptFeedback"])?.["blockReason"]);
    if (blocked) this.#refuse(`the prompt was blocked (${blocked})`);
    const candidate = asObjects(chunk["candidates"])[0];
    if (!candidate) return;
    for (const part of asObjects(asObject(candidate["content"])?.["parts"])) this.#part(part);
    const reason = asString(candidate["finishReason"]);
    if (reason) this.#finish(reason, asString(candidate["finishMessage"]) ?? "");
  }

  complete(): void {
    this.#reply.finish(this.#stop);
  }

  #part(part: JsonObject): void {
    const call = asObject(part["functionCall"]);
    const signature = asString(part["thoughtSignature"]);
    if (call) {
      this.#reply.call(this.#keyFor("call", true), {
        id: asString(call["id"]) ?? "",
        name: asString(call["name"]) ?? "",
        arguments: JSON.stringify(call["args"] ?? {}),
        ...(signature ? { thoughtSignature: signature } : {}),
      });
      return;
    }
    const text = asString(part["text"]);
    if (text === undefined) return;
    if (part["thought"] === true) {
      const key = this.#keyFor("thinking");
      this.#reply.thinking(text, key);
      if (signature) this.#reply.signThinking(signature, key);
    } else if (text !== "" || this.#kind === "text") {
      const key = this.#keyFor("text");
      this.#reply.text(text, key);
      if (signature) this.#reply.signText(signature, key);
    }
  }

  #keyFor(kind: string, always = false): string {
    if (always || kind !== this.#kind) this.#block += 1;
    this.#kind = kind;
    return `part:${this.#block}`;
  }

  #finish(reason: string, message: string): void {
    const said = message === "" ? reason : `${reason}: ${message}`;
    if (FILTER_REASONS.test(reason)) this.#refuse(`the reply was stopped (${said})`);
    if (BAD_CALL_REASONS.test(reason)) {
      // The call itself is not shown to us; the model is told what became of it.
      const malformed = `the provider could not read it (${said})`;
      this.#reply.call(this.#keyFor("call", true), { name: this.#toolName, malformed });
    } else if (reason === "MAX_TOKENS") {
      this.#stop = "length";
    } else if (reason !== "STOP" && reason !== "FINISH_REASON_UNSPECIFIED") {
      const text = `the reply broke off (${said})`;
      throw new ProviderFault(failure(this.#source, "server", text, { retryable: true }));
    }
    this.state = "finished";
  }

  #refuse(text: string): never {
    throw new ProviderFault(failure(this.#source, "content_filter", text));
  }

  #count(usage: JsonObject | undefined): void {
    if (!usage) return;
    const read = (name: string) => asNumber(usage[name]) ?? 0;
    const cacheRead = read("cachedContentTokenCount");
    const prompt = read("promptTokenCount") + read("toolUsePromptTokenCount");
    const reasoning = asNumber(usage["thoughtsTokenCount"]);
    this.#reply.count({
      input: Math.max(0, prompt - cacheRead),
      output: read("candidatesTokenCount") + (reasoning ?? 0),
      cacheRead,
      ...(reasoning === undefined ? {} : { reasoning }),
    });
  }
}
