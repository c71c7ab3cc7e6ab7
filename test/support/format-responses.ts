/** The stream of OpenAI's Responses. */

import { deltasOf, endOf, idOf, jsonOf, namedEvent, usageOf } from "./served-content.ts";
import type { ServedContent } from "./served-content.ts";

/** Items with their deltas, then the response. */
export function responsesStream(content: ServedContent, model: string): string[] {
  const events: string[] = [];
  const push = (type: string, fields: object) =>
    events.push(namedEvent(type, { type, sequence_number: events.length, ...fields }));
  const response = { id: "resp_1", object: "response", model, status: "in_progress" };
  push("response.created", { response });
  let index = 0;
  const item = (start: object, end: object, deltas: (place: object) => void) => {
    const place = { output_index: index, item_id: `item_${index}` };
    push("response.output_item.added", { output_index: index, item: start });
    deltas(place);
    push("response.output_item.done", { output_index: index, item: { ...start, ...end } });
    index += 1;
  };
  const { thinking, text } = content;
  if (thinking) {
    const summary = [{ type: "summary_text", text: thinking }];
    item(
      { id: "rs_1", type: "reasoning", summary: [] },
      { summary, encrypted_content: `sealed:${thinking}` },
      (place) => {
        push("response.reasoning_summary_part.added", { ...place, summary_index: 0 });
        for (const delta of deltasOf(content, thinking)) {
          push("response.reasoning_summary_text.delta", { ...place, summary_index: 0, delta });
        }
      },
    );
  }
  if (text) {
    const parts = [{ type: "output_text", text, annotations: [] }];
    item(
      { id: "msg_1", type: "message", role: "assistant", content: [] },
      { content: parts, status: "completed" },
      (place) => {
        for (const delta of deltasOf(content, text)) {
          push("response.output_text.delta", { ...place, content_index: 0, delta });
        }
      },
    );
  }
  for (const [number, call] of (content.toolCalls ?? []).entries()) {
    const start = {
      id: `fc_${number}`,
      type: "function_call",
      call_id: idOf(call, number),
      name: call.name,
      arguments: "",
    };
    item(start, { arguments: jsonOf(call) }, (place) => {
      for (const delta of deltasOf(content, jsonOf(call))) {
        push("response.function_call_arguments.delta", { ...place, delta });
      }
    });
  }
  endResponses(content, response, push);
  return events;
}

function endResponses(
  content: ServedContent,
  response: object,
  push: (type: string, fields: object) => void,
): void {
  const { errorEvent } = content;
  if (errorEvent) push("error", { code: errorEvent.type, message: errorEvent.message });
  const end = endOf(content);
  if (end === "none" || errorEvent) return;
  if (end === "overflow") {
    const error = { code: "context_length_exceeded", message: "input exceeds the context window" };
    push("response.failed", { response: { ...response, status: "failed", error } });
    return;
  }
  const usage = usageOf(content);
  const input = usage.input + usage.cacheRead + usage.cacheWrite;
  const incomplete = { length: "max_output_tokens", filter: "content_filter" }[end as string];
  push(incomplete ? "response.incomplete" : "response.completed", {
    response: {
      ...response,
      status: incomplete ? "incomplete" : "completed",
      incomplete_details: incomplete ? { reason: incomplete } : null,
      usage: {
        input_tokens: input,
        input_tokens_details: {
          cached_tokens: usage.cacheRead,
          cache_write_tokens: usage.cacheWrite,
        },
        output_tokens: usage.output,
        output_tokens_details: { reasoning_tokens: usage.reasoning },
        total_tokens: input + usage.output,
      },
    },
  });
}
