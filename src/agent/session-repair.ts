/**
 * Makes any stored transcript one that every provider accepts: each tool call has exactly one
 * result, directly after the reply that made it, and no result is without its call.
 */

import type { AssistantMessage, Message, ToolCallBlock, ToolResultMessage } from "../message.ts";

/**
 * The transcript with calls and results paired. Calls without a result get {@link lostResult};
 * results that come late but before the next reply move up to their call; results without a call
 * and replies without content are left out. The same input gives the same output, so the prefix
 * of a request stays stable. Messages that need no repair are passed on as they are.
 */
export function repairTranscript(messages: readonly Message[]): Message[] {
  const repaired: Message[] = [];
  let index = 0;
  while (index < messages.length) {
    const message = messages[index] as Message;
    index += 1;
    if (message.role === "toolResult") continue;
    if (message.role !== "assistant") {
      repaired.push(message);
      continue;
    }
    if (message.content.length > 0) repaired.push(message);
    const turn = messages.slice(index, turnEnd(messages, index));
    const results = takeResults(turn);
    for (const call of toolCalls(message)) {
      repaired.push(results.get(call.id)?.shift() ?? missingResult(call, message));
    }
    repaired.push(...turn.filter((other) => other.role !== "toolResult"));
    index += turn.length;
  }
  return repaired;
}

/** The tool calls of the last reply that may have run and have no result, in order. */
export function openCalls(messages: readonly Message[]): ToolCallBlock[] {
  const at = messages.findLastIndex((message) => message.role === "assistant");
  const last = messages[at];
  if (!last || isBroken(last)) return [];
  const results = takeResults(messages.slice(at + 1));
  return toolCalls(last).filter((call) => results.get(call.id)?.shift() === undefined);
}

/** The result that stands for one that was never written. */
export function lostResult(call: ToolCallBlock, timestamp: number): ToolResultMessage {
  return errorResult(
    call,
    "lost: the program ended before this call finished. It may have taken effect in part.",
    timestamp,
  );
}

/** The calls of a reply that broke off were never run, so nothing of them is lost. */
function missingResult(call: ToolCallBlock, reply: AssistantMessage): ToolResultMessage {
  return isBroken(reply)
    ? errorResult(call, "not run: the reply broke off before it was complete.", reply.timestamp)
    : lostResult(call, reply.timestamp);
}

function errorResult(call: ToolCallBlock, text: string, timestamp: number): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: call.id,
    toolName: call.name,
    content: [{ type: "text", text }],
    isError: true,
    timestamp,
  };
}

function isBroken(message: Message): boolean {
  return (
    message.role === "assistant" &&
    (message.stopReason === "error" || message.stopReason === "aborted")
  );
}

/** Where the next reply stands at or after `index`, or the end. */
function turnEnd(messages: readonly Message[], index: number): number {
  let end = index;
  while (end < messages.length && messages[end]?.role !== "assistant") end += 1;
  return end;
}

function toolCalls(message: Message): ToolCallBlock[] {
  if (message.role !== "assistant") return [];
  return message.content.filter((block) => block.type === "toolCall");
}

/** Results by call id, in order: some servers give the same id to several calls. */
function takeResults(turn: readonly Message[]): Map<string, ToolResultMessage[]> {
  const results = new Map<string, ToolResultMessage[]>();
  for (const message of turn) {
    if (message.role !== "toolResult") continue;
    const queue = results.get(message.toolCallId);
    if (queue) queue.push(message);
    else results.set(message.toolCallId, [message]);
  }
  return results;
}
