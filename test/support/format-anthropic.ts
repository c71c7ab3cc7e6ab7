/** The stream of Anthropic's Messages. */

import { deltasOf, endOf, idOf, jsonOf, namedEvent, usageOf } from "./served-content.ts";
import type { ServedContent } from "./served-content.ts";

/** A message of content blocks. */
export function anthropicStream(content: ServedContent, model: string): string[] {
  const events: string[] = [];
  const push = (type: string, fields: object) => events.push(namedEvent(type, { type, ...fields }));
  push("message_start", { message: emptyMessage(content, model) });
  push("ping", {});
  let index = 0;
  const block = (content_block: object, deltas: object[]) => {
    push("content_block_start", { index, content_block });
    for (const delta of deltas) push("content_block_delta", { index, delta });
    push("content_block_stop", { index });
    index += 1;
  };
  const deltas = (type: string, field: string, text: string) =>
    deltasOf(content, text).map((piece) => ({ type, [field]: piece }));
  if (content.thinking) {
    block({ type: "thinking", thinking: "", signature: "" }, [
      ...deltas("thinking_delta", "thinking", content.thinking),
      { type: "signature_delta", signature: `signed:${content.thinking}` },
    ]);
  }
  if (content.text) {
    block({ type: "text", text: "" }, deltas("text_delta", "text", content.text));
  }
  for (const [number, call] of (content.toolCalls ?? []).entries()) {
    const start = { type: "tool_use", id: idOf(call, number), name: call.name, input: {} };
    block(start, deltas("input_json_delta", "partial_json", jsonOf(call)));
  }
  if (content.errorEvent) push("error", { error: content.errorEvent });
  const end = endOf(content);
  if (end === "none" || content.errorEvent) return events;
  const reasons = {
    stop: "end_turn",
    toolUse: "tool_use",
    length: "max_tokens",
    filter: "refusal",
    overflow: "model_context_window_exceeded",
  };
  const { output, reasoning } = usageOf(content);
  push("message_delta", {
    delta: { stop_reason: reasons[end], stop_sequence: null },
    usage: { output_tokens: output, output_tokens_details: { thinking_tokens: reasoning } },
  });
  push("message_stop", {});
  return events;
}

function emptyMessage(content: ServedContent, model: string): object {
  const usage = usageOf(content);
  return {
    id: "msg_1",
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    usage: {
      input_tokens: usage.input,
      cache_read_input_tokens: usage.cacheRead,
      cache_creation_input_tokens: usage.cacheWrite,
      output_tokens: 1,
    },
  };
}
