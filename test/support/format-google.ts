/** The stream of Google's Gemini. */

import { dataEvent, deltasOf, endOf, idOf, jsonOf, usageOf } from "./served-content.ts";
import type { ServedContent } from "./served-content.ts";

/** Partial responses; usage and the finish reason are in the last one. */
export function googleStream(content: ServedContent, model: string): string[] {
  const events: string[] = [];
  const push = (parts: object[], more: object = {}, top: object = {}) =>
    events.push(
      dataEvent({
        candidates: [{ content: { role: "model", parts }, index: 0, ...more }],
        modelVersion: model,
        responseId: "response-1",
        ...top,
      }),
    );
  for (const piece of deltasOf(content, content.thinking ?? "")) {
    push([{ text: piece, thought: true }]);
  }
  for (const piece of deltasOf(content, content.text ?? "")) push([{ text: piece }]);
  let unreadable = false;
  for (const [index, call] of (content.toolCalls ?? []).entries()) {
    const args = parsed(jsonOf(call));
    if (args === undefined) unreadable = true;
    else {
      const functionCall = { id: idOf(call, index), name: call.name, args };
      push([{ functionCall, ...(index === 0 ? { thoughtSignature: "c2lnbmF0dXJl" } : {}) }]);
    }
  }
  const end = endOf(content);
  const error = content.errorEvent ?? (end === "overflow" ? OVERFLOW : undefined);
  if (error) events.push(dataEvent({ error: { message: error.message, status: error.type } }));
  if (end === "none" || error) return events;
  const reasons = { length: "MAX_TOKENS", filter: "SAFETY" };
  const finish = reasons[end as keyof typeof reasons] ?? "STOP";
  const finishReason = unreadable && finish === "STOP" ? "MALFORMED_FUNCTION_CALL" : finish;
  const usage = usageOf(content);
  const promptTokenCount = usage.input + usage.cacheRead;
  push(
    [{ text: "" }],
    { finishReason },
    {
      usageMetadata: {
        promptTokenCount,
        cachedContentTokenCount: usage.cacheRead,
        candidatesTokenCount: usage.output - usage.reasoning,
        thoughtsTokenCount: usage.reasoning,
        totalTokenCount: promptTokenCount + usage.output,
      },
    },
  );
  return events;
}

const OVERFLOW = {
  type: "INVALID_ARGUMENT",
  message: "The input token count (9) exceeds the maximum number of tokens allowed (8).",
};

/** A server can only send arguments that it could parse. */
function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    // The server tells with its finish reason.
    return undefined;
  }
}
