/**
 * Assembles one reply from a provider's deltas and turns them into events.
 *
 * Tool calls are strict: what the model wrote must be one complete JSON object.
 * Nothing is repaired, since half a cell may be a different program.
 */

import { emptyUsage } from "../message.ts";
import type {
  AssistantMessage,
  StopReason,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  Usage,
} from "../message.ts";
import { asObject, parseJson } from "./json.ts";
import type { Model, ProviderEvent } from "./provider.ts";
import { priceUsage } from "./usage.ts";
import type { TokenCounts } from "./usage.ts";

/** What a delta may say about a tool call; `arguments` is a piece of JSON text. */
export interface CallPart {
  id?: string;
  name?: string;
  arguments?: string;
  thoughtSignature?: string;
  /** The provider itself says that the call is unusable, and why. */
  malformed?: string;
}

interface CallDraft {
  type: "toolCall";
  id: string;
  name: string;
  json: string;
  announced: boolean;
  malformed?: string;
  thoughtSignature?: string;
}

type Draft = TextBlock | ThinkingBlock | CallDraft;

/**
 * One reply in the making. `key` names the block that a delta belongs to, in
 * whatever way the provider tells blocks apart; a new key opens a new block.
 */
export class Reply {
  /** The provider's id of this reply, once known. */
  responseId: string | undefined;
  readonly #model: Model;
  readonly #drafts: Draft[] = [];
  readonly #byKey = new Map<string, Draft>();
  readonly #calls: ToolCallBlock[] = [];
  #events: ProviderEvent[] = [];
  #usage: Usage = emptyUsage();
  #stop: StopReason | undefined;

  constructor(model: Model) {
    this.#model = model;
  }

  /** Whether anything of the reply has arrived. */
  get hasContent(): boolean {
    return this.#drafts.some(isFilled);
  }

  /** Keeps a block's place among the others before its first delta; it is left out if none comes. */
  reserve(type: "text" | "thinking", key: string): void {
    if (type === "text") this.#open(key, type, newText);
    else this.#open(key, type, newThinking);
  }

  /** Appends to a text block. */
  text(delta: string, key = "text"): void {
    if (delta === "") return;
    this.#open(key, "text", newText).text += delta;
    this.#events.push({ type: "text_delta", text: delta });
  }

  /** Appends to a thinking block. */
  thinking(delta: string, key = "thinking"): void {
    if (delta === "") return;
    this.#open(key, "thinking", newThinking).thinking += delta;
    this.#events.push({ type: "thinking_delta", text: delta });
  }

  /** Sets the opaque state of a thinking block, which opens one if there is no text of it. */
  signThinking(signature: string, key = "thinking", redacted = false): void {
    const block = this.#open(key, "thinking", newThinking);
    block.thinkingSignature = signature;
    if (redacted) block.redacted = true;
  }

  /** Sets the opaque state of a text block, if there is such a block. */
  signText(signature: string, key = "text"): void {
    const block = this.#byKey.get(key);
    if (block?.type === "text") block.textSignature = signature;
  }

  /** Adds to a tool call. The first id and the first name count; later ones are repetitions. */
  call(key: string, part: CallPart): void {
    const draft = this.#open(key, "toolCall", () => newCall(this.#freeCallId(part.id)));
    if (draft.name === "" && part.name) draft.name = part.name;
    if (part.thoughtSignature) draft.thoughtSignature = part.thoughtSignature;
    if (part.malformed) draft.malformed = part.malformed;
    if (part.arguments) draft.json += part.arguments;
    if (draft.name === "") return;
    if (!draft.announced) {
      draft.announced = true;
      this.#events.push({ type: "tool_call_start", id: draft.id, name: draft.name });
      if (draft.json) {
        this.#events.push({ type: "tool_call_delta", id: draft.id, delta: draft.json });
      }
    } else if (part.arguments) {
      this.#events.push({ type: "tool_call_delta", id: draft.id, delta: part.arguments });
    }
  }

  /** Replaces the arguments of a call by the provider's own final text of them. */
  setArguments(key: string, json: string): void {
    const draft = this.#byKey.get(key);
    if (draft?.type === "toolCall") draft.json = json;
  }

  /** Whether the arguments of a call are a whole JSON value, so that what follows belongs to another call. */
  isCompleteCall(key: string): boolean {
    const draft = this.#byKey.get(key);
    return draft?.type === "toolCall" && parseJson(draft.json) !== undefined;
  }

  /** Replaces the usage: providers report totals, not increments. */
  count(counts: TokenCounts): void {
    this.#usage = priceUsage(counts, this.#model.cost);
  }

  /** The usage as far as it is known. */
  get usage(): Usage {
    return this.#usage;
  }

  /** Whether the output limit or the end of the context window cut the reply off. */
  get endedByLength(): boolean {
    return this.#stop === "length";
  }

  /** The reply is complete: judges its tool calls. `length` means that the output limit cut it off. */
  finish(reason: StopReason): void {
    for (const draft of this.#drafts) {
      if (draft.type !== "toolCall") continue;
      const call = sealCall(draft, reason);
      this.#calls.push(call);
      this.#events.push({ type: "tool_call_end", call });
    }
    this.#stop = reason === "stop" && this.#calls.length > 0 ? "toolUse" : reason;
    if (reason === "toolUse" && this.#calls.length === 0) this.#stop = "stop";
  }

  /** Takes the events since the last call. */
  drain(): ProviderEvent[] {
    const events = this.#events;
    this.#events = [];
    return events;
  }

  /** The reply as a message. Without {@link finish}, its calls are marked as never completed. */
  message(
    timestamp: number,
    broken?: { stopReason: "error" | "aborted"; errorMessage: string },
  ): AssistantMessage {
    let sealed = 0;
    const content = this.#drafts.filter(isFilled).map((draft) => {
      if (draft.type !== "toolCall") return draft;
      return this.#calls[sealed++] ?? sealCall(draft, "error");
    });
    return {
      role: "assistant",
      content,
      api: this.#model.api,
      provider: this.#model.provider,
      model: this.#model.id,
      usage: this.#usage,
      stopReason: broken?.stopReason ?? this.#stop ?? "stop",
      ...(broken ? { errorMessage: broken.errorMessage } : {}),
      ...(this.responseId === undefined ? {} : { responseId: this.responseId }),
      timestamp,
    };
  }

  #open<T extends Draft["type"]>(
    key: string,
    type: T,
    create: () => Extract<Draft, { type: T }>,
  ): Extract<Draft, { type: T }> {
    const known = this.#byKey.get(key);
    if (known?.type === type) return known as Extract<Draft, { type: T }>;
    const draft = create();
    this.#drafts.push(draft);
    this.#byKey.set(key, draft);
    return draft;
  }

  #freeCallId(wanted: string | undefined): string {
    const taken = this.#drafts.some((draft) => draft.type === "toolCall" && draft.id === wanted);
    return wanted && !taken ? wanted : `call_${crypto.randomUUID().replaceAll("-", "")}`;
  }
}

function isFilled(draft: Draft): boolean {
  if (draft.type === "text") return draft.text !== "";
  return draft.type === "toolCall" || draft.thinking !== "" || Boolean(draft.thinkingSignature);
}

function newText(): TextBlock {
  return { type: "text", text: "" };
}

function newThinking(): ThinkingBlock {
  return { type: "thinking", thinking: "" };
}

function newCall(id: string): CallDraft {
  return { type: "toolCall", id, name: "", json: "", announced: false };
}

function sealCall(draft: CallDraft, reason: StopReason): ToolCallBlock {
  const { parsed, fault } = readArguments(draft.json, reason);
  const malformed =
    draft.malformed ?? (draft.name === "" ? "the call names no tool" : undefined) ?? fault;
  return {
    type: "toolCall",
    id: draft.id,
    name: draft.name === "" ? "unknown" : draft.name,
    arguments: malformed === undefined && parsed ? parsed : {},
    ...(malformed === undefined ? {} : { malformed }),
    ...(draft.thoughtSignature === undefined ? {} : { thoughtSignature: draft.thoughtSignature }),
  };
}

function readArguments(json: string, reason: StopReason) {
  if (reason === "error") return { fault: "the reply broke off before the call was complete" };
  // A call without parameters may come without any text, unless the text was still to come.
  if (json.trim() === "" && reason !== "length") return { parsed: {} };
  try {
    const parsed = asObject(JSON.parse(json));
    return parsed ? { parsed } : { fault: "its arguments are not a JSON object" };
  } catch (error) {
    if (reason === "length") {
      return { fault: "its arguments were cut off by the output limit" };
    }
    return { fault: `its arguments are not valid JSON (${(error as Error).message})` };
  }
}
