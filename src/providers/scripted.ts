/**
 * A provider that answers from a prepared script, offline: a normal provider
 * for tests and for `demo`, with the same events, retries and failures as the
 * others. Replies are taken in order; a reply with `when` waits for its request.
 */

import type { Message, StopReason } from "../message.ts";
import { messageText } from "../message.ts";
import { raceWithAbort } from "../async.ts";
import { sourceOf, streamAttempts } from "./attempts.ts";
import { ProviderFault } from "./errors.ts";
import { failure } from "./failure.ts";
import type { FailureKind, Model, Provider, ProviderEvent, ProviderRequest } from "./provider.ts";
import type { Reply } from "./reply.ts";
import type { TokenCounts } from "./usage.ts";

/** A tool call of a script; a string stands for the raw text of the arguments, valid or not. */
export interface ScriptedCall {
  id?: string;
  name: string;
  arguments: Record<string, unknown> | string;
}

/** One reply of a script. Everything is optional: `{}` is an empty reply. Plain JSON. */
export interface ScriptedReply {
  /** Only for a request whose last message contains this text; other requests take another reply. */
  when?: string;
  /** Names a gate to wait for before anything is sent; see {@link ScriptedOptions.gates}. */
  gate?: string;
  thinking?: string;
  text?: string;
  toolCalls?: ScriptedCall[];
  /** Estimated from the lengths when absent. */
  usage?: TokenCounts;
  /** `length` for a reply that the output limit cut off; otherwise it follows from the calls. */
  stopReason?: Extract<StopReason, "stop" | "length" | "toolUse">;
  /** Ends the reply so, after its text and calls; a retryable one takes the next reply of the script. */
  failure?: {
    kind: FailureKind;
    message: string;
    httpStatus?: number;
    retryable?: boolean;
    retryAfterMs?: number;
    imageRelated?: boolean;
  };
}

/** What a script may depend on. */
export interface ScriptedOptions {
  /** Promises that hold back the replies that name them, for tests that need an order without sleeping. */
  gates?: Record<string, PromiseLike<unknown>>;
  /** The size of the pieces that text is streamed in, in characters. */
  chunkChars?: number;
}

const DEFAULT_CHUNK_CHARS = 24;
const CHARS_PER_TOKEN = 4;

/** The model that scripts speak as; it costs nothing. */
export const SCRIPTED_MODEL: Model = {
  provider: "scripted",
  id: "script",
  name: "Scripted replies",
  api: "scripted",
  baseUrl: "",
  contextWindow: 200_000,
  maxTokens: 32_000,
  cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
  reasoning: true,
  input: ["text", "image"],
};

/** Answers from a queue of replies. A request beyond the script's end fails as `invalid_request`. */
export class ScriptedProvider implements Provider {
  readonly api = "scripted" as const;
  /** The requests that came, in order, one for each attempt. */
  readonly requests: ProviderRequest[] = [];
  readonly #replies: ScriptedReply[];
  readonly #options: ScriptedOptions;

  constructor(replies: readonly ScriptedReply[], options: ScriptedOptions = {}) {
    this.#replies = [...replies];
    this.#options = options;
  }

  /** How many replies of the script were not used yet. */
  get remaining(): number {
    return this.#replies.length;
  }

  stream(request: ProviderRequest): AsyncIterable<ProviderEvent> {
    return streamAttempts(request, (reply) => this.#attempt(request, reply));
  }

  async *#attempt(
    request: ProviderRequest,
    reply: Reply,
  ): AsyncGenerator<ProviderEvent, void, void> {
    request.signal.throwIfAborted();
    this.requests.push({ ...request, messages: [...request.messages] });
    const script = this.#take(request);
    const gate = script.gate === undefined ? undefined : this.#options.gates?.[script.gate];
    if (gate) await raceWithAbort(Promise.resolve(gate), request.signal);
    for (const write of this.#writes(script)) {
      write(reply);
      yield* reply.drain();
      // Lets an abort in between take effect, as it would on a network.
      await Promise.resolve();
      request.signal.throwIfAborted();
    }
    reply.count(script.usage ?? estimate(request, script));
    if (script.failure) {
      const { kind, message, ...more } = script.failure;
      throw new ProviderFault(failure(sourceOf(request), kind, message, more));
    }
    reply.finish(script.stopReason ?? "stop");
    yield* reply.drain();
  }

  #take(request: ProviderRequest): ScriptedReply {
    const last = lastText(request.messages);
    const index = this.#replies.findIndex(
      (reply) => reply.when === undefined || last.includes(reply.when),
    );
    const [script] = index < 0 ? [] : this.#replies.splice(index, 1);
    if (script) return script;
    const text = "the script has no reply for this request";
    throw new ProviderFault(failure(sourceOf(request), "invalid_request", text));
  }

  /** The pieces of a reply in the order in which they are sent. */
  *#writes(script: ScriptedReply): Generator<(reply: Reply) => void> {
    const size = this.#options.chunkChars ?? DEFAULT_CHUNK_CHARS;
    for (const piece of pieces(script.thinking ?? "", size)) yield (reply) => reply.thinking(piece);
    for (const piece of pieces(script.text ?? "", size)) yield (reply) => reply.text(piece);
    for (const [index, call] of (script.toolCalls ?? []).entries()) {
      const key = `call:${index}`;
      const id = call.id ?? "";
      yield (reply) => reply.call(key, { id, name: call.name });
      const json =
        typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments);
      for (const piece of pieces(json, size)) {
        yield (reply) => reply.call(key, { arguments: piece });
      }
    }
  }
}

function* pieces(text: string, size: number): Generator<string> {
  const characters = [...text];
  for (let start = 0; start < characters.length; start += size) {
    yield characters.slice(start, start + size).join("");
  }
}

function lastText(messages: readonly Message[]): string {
  const last = messages.at(-1);
  return last ? messageText(last) : "";
}

function estimate(request: ProviderRequest, script: ScriptedReply): TokenCounts {
  const input = JSON.stringify([request.systemPrompt, request.tools, request.messages]).length;
  const output = JSON.stringify([script.thinking, script.text, script.toolCalls]).length;
  return {
    input: Math.ceil(input / CHARS_PER_TOKEN),
    output: Math.ceil(output / CHARS_PER_TOKEN),
  };
}
