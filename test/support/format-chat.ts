/** The stream of OpenAI's Chat Completions. */

import { dataEvent, deltasOf, endOf, idOf, jsonOf, usageOf } from "./served-content.ts";
import type { ServedContent } from "./served-content.ts";

/** `chat.completion.chunk` objects, usage in a chunk of its own, `[DONE]`. */
export function chatStream(content: ServedContent, model: string): string[] {
  const events: string[] = [];
  const base = { id: "chatcmpl-1", object: "chat.completion.chunk", created: 1, model };
  const push = (delta: object, finish: string | null = null) =>
    events.push(dataEvent({ ...base, choices: [{ index: 0, delta, finish_reason: finish }] }));
  push({ role: "assistant", content: "" });
  for (const piece of deltasOf(content, content.thinking ?? "")) {
    push({ reasoning_content: piece });
  }
  for (const piece of deltasOf(content, content.text ?? "")) push({ content: piece });
  for (const [index, call] of (content.toolCalls ?? []).entries()) {
    const id = idOf(call, index);
    push({
      tool_calls: [{ index, id, type: "function", function: { name: call.name, arguments: "" } }],
    });
    for (const piece of deltasOf(content, jsonOf(call))) {
      push({ tool_calls: [{ index, function: { arguments: piece } }] });
    }
  }
  if (content.errorEvent) events.push(dataEvent({ error: content.errorEvent }));
  const end = endOf(content);
  if (end === "none" || content.errorEvent) return events;
  const reasons = {
    stop: "stop",
    toolUse: "tool_calls",
    length: "length",
    filter: "content_filter",
    overflow: "model_context_window_exceeded",
  };
  push({}, reasons[end]);
  const usage = usageOf(content);
  const prompt = usage.input + usage.cacheRead + usage.cacheWrite;
  events.push(
    dataEvent({
      ...base,
      choices: [],
      usage: {
        prompt_tokens: prompt,
        completion_tokens: usage.output,
        total_tokens: prompt + usage.output,
        prompt_tokens_details: {
          cached_tokens: usage.cacheRead,
          cache_write_tokens: usage.cacheWrite,
        },
        completion_tokens_details: { reasoning_tokens: usage.reasoning },
      },
    }),
    "data: [DONE]\n\n",
  );
  return events;
}
