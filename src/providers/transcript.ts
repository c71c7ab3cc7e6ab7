/**
 * Makes a transcript acceptable to any provider before it is sent: sessions
 * are interrupted, resumed, repaired, and continued with other models, but each
 * request must hold exactly one result directly after each call, valid ids,
 * and only content that its model can take.
 *
 * It is deterministic, so that the same history gives the same bytes every
 * turn, which is what provider caches match.
 */

import type {
  AssistantMessage,
  ImageBlock,
  Message,
  TextBlock,
  ThinkingBlock,
  ToolCallBlock,
  ToolResultMessage,
  UserMessage,
} from "../message.ts";
import { asObject, asObjects } from "./json.ts";
import type { Model } from "./provider.ts";

/** What a call without a result is answered with. */
export const LOST_RESULT_TEXT =
  "No result: the call was interrupted, or its result was lost when the program ended. It may have run in part.";

/** What an empty result is sent as. */
export const EMPTY_RESULT_TEXT = "(no output)";

/** What stands in for an image that the model can't see. */
export const OMITTED_IMAGE_TEXT = "(an image was left out: this model reads text only)";

/** Makes an id that the provider accepts out of any id; deterministic, and unchanged when it is valid. */
export type IdRule = (id: string) => string;

/**
 * The messages to send to `model`. Thinking and opaque signatures of other models are dropped.
 * User and assistant messages that hold nothing are left out.
 */
export function prepareTranscript(
  messages: readonly Message[],
  model: Model,
  idRule: IdRule,
): Message[] {
  const prepared: Message[] = [];
  const ids = new UniqueIds(idRule);
  for (let index = 0; index < messages.length; index += 1) {
    const message = messages[index];
    if (message?.role === "user") {
      const user = prepareUser(message, model);
      if (user) prepared.push(user);
    } else if (message?.role === "assistant") {
      const assistant = prepareAssistant(message, model);
      if (!assistant) continue;
      const results = resultsAfter(messages, index);
      const answered = answerCalls(assistant, results, model, ids);
      prepared.push(...answered);
    }
    // Results are sent with their calls; one that has none is left out.
  }
  return prepared;
}

function prepareUser(message: UserMessage, model: Model): UserMessage | undefined {
  const content = contentBlocks(message.content, model);
  return content.length === 0 ? undefined : { ...message, content };
}

function prepareAssistant(message: AssistantMessage, model: Model): AssistantMessage | undefined {
  const own =
    message.provider === model.provider && message.api === model.api && message.model === model.id;
  const broken = message.stopReason === "error" || message.stopReason === "aborted";
  const content: AssistantMessage["content"] = [];
  for (const block of blocksOf(message.content)) {
    if (block.type === "text" && isText(block.text)) {
      content.push(prepareText(block, own && !broken));
    } else if (block.type === "thinking" && own && !broken) {
      content.push(prepareThinking(block));
    } else if (block.type === "toolCall" && !broken) {
      // A reply that broke off never had its calls executed.
      content.push(prepareCall(block, own));
    }
  }
  return content.some((block) => block.type !== "thinking") ? { ...message, content } : undefined;
}

function prepareText(block: TextBlock, own: boolean): TextBlock {
  const text = block.text.toWellFormed();
  const { textSignature } = block;
  return own && textSignature ? { type: "text", text, textSignature } : { type: "text", text };
}

function prepareThinking(block: ThinkingBlock): ThinkingBlock {
  // Signed thinking must go back exactly as it came.
  if (block.thinkingSignature) return { ...block, thinking: block.thinking ?? "" };
  return { type: "thinking", thinking: (block.thinking ?? "").toWellFormed() };
}

function prepareCall(block: ToolCallBlock, own: boolean): ToolCallBlock {
  const { thoughtSignature } = block;
  return {
    type: "toolCall",
    id: block.id,
    name: block.name,
    arguments: cleanValue(asObject(block.arguments) ?? {}) as Record<string, unknown>,
    ...(own && thoughtSignature ? { thoughtSignature } : {}),
  };
}

/** The results that stand between the assistant message at `index` and the next one. */
function resultsAfter(messages: readonly Message[], index: number): ToolResultMessage[] {
  const results: ToolResultMessage[] = [];
  for (let next = index + 1; next < messages.length; next += 1) {
    const message = messages[next];
    if (message?.role === "assistant") break;
    if (message?.role === "toolResult") results.push(message);
  }
  return results;
}

/** The assistant message with valid ids, followed by one result for each call, in the order of the calls. */
function answerCalls(
  assistant: AssistantMessage,
  results: ToolResultMessage[],
  model: Model,
  ids: UniqueIds,
): Message[] {
  const unused = [...results];
  const answers: Message[] = [];
  const content = assistant.content.map((block) => {
    if (block.type !== "toolCall") return block;
    const found = unused.findIndex((result) => result.toolCallId === block.id);
    const [result] = found < 0 ? [] : unused.splice(found, 1);
    const call = { ...block, id: ids.next(block.id) };
    answers.push(answer(call, result, model, assistant.timestamp));
    return call;
  });
  return [{ ...assistant, content }, ...answers];
}

function answer(
  call: ToolCallBlock,
  result: ToolResultMessage | undefined,
  model: Model,
  timestamp: number,
): ToolResultMessage {
  const base = { role: "toolResult", toolCallId: call.id, toolName: call.name } as const;
  if (!result) {
    const content: TextBlock[] = [{ type: "text", text: LOST_RESULT_TEXT }];
    return { ...base, content, isError: true, timestamp };
  }
  const content = contentBlocks(result.content, model);
  if (content.length === 0) content.push({ type: "text", text: EMPTY_RESULT_TEXT });
  return { ...base, content, isError: result.isError === true, timestamp: result.timestamp };
}

/** Text and images without what is empty, malformed or beyond the model. */
function contentBlocks(content: unknown, model: Model): Array<TextBlock | ImageBlock> {
  if (typeof content === "string") {
    return isText(content) ? [{ type: "text", text: content.toWellFormed() }] : [];
  }
  const kept: Array<TextBlock | ImageBlock> = [];
  for (const block of blocksOf(content as ReadonlyArray<TextBlock | ImageBlock>)) {
    if (block.type === "text" && isText(block.text)) {
      kept.push({ type: "text", text: block.text.toWellFormed() });
    } else if (block.type === "image" && block.data) {
      if (model.input.includes("image")) kept.push(block);
      else kept.push({ type: "text", text: OMITTED_IMAGE_TEXT });
    }
  }
  return kept;
}

/** The blocks of a message that may come from a damaged or foreign session file. */
function blocksOf<T extends { type: string }>(content: readonly T[]): T[] {
  return asObjects(content) as unknown as T[];
}

/** Providers reject text that is empty or only white space. */
function isText(text: unknown): text is string {
  return typeof text === "string" && text.trim() !== "";
}

/** `value` without lone surrogates, which are no valid JSON text for many servers. */
function cleanValue(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(cleanValue);
  const object = asObject(value);
  if (!object) return value;
  return Object.fromEntries(
    Object.entries(object).map(([key, item]) => [key.toWellFormed(), cleanValue(item)]),
  );
}

/** Gives each call of the transcript an id of its own: gateways that number from zero repeat theirs every turn. */
class UniqueIds {
  readonly #rule: IdRule;
  readonly #taken = new Set<string>();

  constructor(rule: IdRule) {
    this.#rule = rule;
  }

  next(id: string): string {
    for (let repetition = 0; ; repetition += 1) {
      const candidate = this.#rule(repetition === 0 ? id : `${id}#${repetition}`);
      if (this.#taken.has(candidate)) continue;
      this.#taken.add(candidate);
      return candidate;
    }
  }
}

/**
 * Ids of letters, digits, `_` and `-` up to `maxLength`: what the strictest of the common
 * providers take. Any other id is replaced by one made from its hash.
 */
export function plainIds(maxLength: number): IdRule {
  return (id) => (id.length <= maxLength && /^[a-zA-Z0-9_-]+$/.test(id) ? id : `call_${hash(id)}`);
}

/** Ids of exactly `length` letters and digits, as Mistral wants them. */
export function exactIds(length: number): IdRule {
  return (id) =>
    id.length === length && /^[a-zA-Z0-9]+$/.test(id) ? id : hash(id).slice(0, length);
}

/** Sixteen hex digits. */
function hash(text: string): string {
  return Bun.hash.xxHash64(text).toString(16).padStart(16, "0");
}
