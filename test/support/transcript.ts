/** Short forms of transcript messages for tests. */

import {
  emptyUsage,
  type AssistantMessage,
  type ToolCallBlock,
  type ToolResultMessage,
  type UserMessage,
} from "../../src/message.ts";

/** What a person says. */
export function user(text: string): UserMessage {
  return { role: "user", content: text, timestamp: 1 };
}

/** A reply of text, followed by calls of the given ids. */
export function assistant(text: string, ...callIds: string[]): AssistantMessage {
  const content: AssistantMessage["content"] = callIds.map(call);
  if (text !== "") content.unshift({ type: "text", text });
  return {
    role: "assistant",
    content,
    api: "scripted",
    provider: "test",
    model: "test-1",
    usage: emptyUsage(),
    stopReason: callIds.length > 0 ? "toolUse" : "stop",
    timestamp: 2,
  };
}

/** A call of the one tool. */
export function call(id: string): ToolCallBlock {
  return { type: "toolCall", id, name: "ipython", arguments: { code: `print("${id}")` } };
}

/** The result of the call `id`. */
export function result(id: string, text = `output of ${id}`): ToolResultMessage {
  return {
    role: "toolResult",
    toolCallId: id,
    toolName: "ipython",
    content: [{ type: "text", text }],
    isError: false,
    timestamp: 3,
  };
}
