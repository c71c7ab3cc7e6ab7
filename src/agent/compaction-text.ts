/** The texts around a compaction: what the summarising model reads, and what the agent reads after. */

import { messageText, type Message } from "../message.ts";
import type { ContextItem } from "./session-context.ts";
import instructionText from "./compaction.txt" with { type: "text" };

/** The instructions for a summary; `wish` is what the person or the model wants kept. */
export function summaryInstructions(wish?: string): string {
  const instructions = instructionText.trim();
  return wish ? `${instructions}\n\nAbove all, heed this wish: ${wish}` : instructions;
}

/** The one message of a request for a summary: the conversation as text, in at most about `maxChars`. */
export function summaryRequest(items: readonly ContextItem[], maxChars: number): Message {
  const conversation = items.map(({ message }) => renderMessage(message)).join("\n\n");
  return {
    role: "user",
    content: `<conversation>\n${clipMiddle(conversation, maxChars)}\n</conversation>\n\nWrite the notes now.`,
    timestamp: 0,
  };
}

/**
 * The summary as it is stored: the model's text, bounded, and word for word what the user asked
 * last, if that is among what is removed. A poor summary must never lose the task.
 */
export function storedSummary(
  text: string,
  removed: readonly ContextItem[],
  kept: readonly ContextItem[],
): string {
  const summary = clipMiddle(text.trim(), MAX_SUMMARY_CHARS);
  if (kept.some(isUserRequest)) return summary;
  const request = removed.findLast(isUserRequest);
  if (!request) return summary;
  const words = clipMiddle(messageText(request.message).trim(), MAX_REQUEST_CHARS);
  return `${summary}\n\n## The user's last request, word for word\n${words}`;
}

/** What the kernel's namespace holds and has lost. */
export interface NamespaceReport {
  names: readonly string[];
  gone: ReadonlyArray<{ name: string; reason: string }>;
}

/** After what the model is told about the namespace. */
export type NamespaceOccasion = "compaction" | "resume" | "restart";

/** Tells the model which names exist and which are gone, so that it relies on neither memory nor luck. */
export function namespaceNote(occasion: NamespaceOccasion, report: NamespaceReport): string {
  const lines = [OCCASIONS[occasion]];
  lines.push(
    report.names.length > 0
      ? `These names exist: ${listed(report.names)}.`
      : "No names of yours exist in it.",
  );
  if (report.gone.length > 0) {
    const gone = report.gone.map(({ name, reason }) => `${name} (${reason})`);
    lines.push(`These are gone: ${listed(gone)}.`);
  }
  return `<kernel_state>\n${lines.join("\n")}\n</kernel_state>`;
}

const OCCASIONS: Record<NamespaceOccasion, string> = {
  compaction: "The conversation was summarised; the kernel goes on.",
  resume: "The session goes on in a new kernel; what was saved has been brought back.",
  restart: "The kernel was restarted; what was saved has been brought back.",
};

const MAX_SUMMARY_CHARS = 24_000;
const MAX_REQUEST_CHARS = 8_000;
const MAX_TEXT_CHARS = 6_000;
const MAX_OUTPUT_CHARS = 2_000;
const MAX_LISTED = 150;

function isUserRequest({ entry, message }: ContextItem): boolean {
  return entry.type === "message" && message.role === "user";
}

function renderMessage(message: Message): string {
  if (message.role === "assistant") {
    return message.content.map(renderBlock).filter(Boolean).join("\n\n");
  }
  if (message.role === "user") return `[user]\n${clipMiddle(contentText(message), MAX_TEXT_CHARS)}`;
  const label = message.isError ? "[output, error]" : "[output]";
  return `${label}\n${clipMiddle(contentText(message), MAX_OUTPUT_CHARS)}`;
}

type AssistantBlock = Extract<Message, { role: "assistant" }>["content"][number];

function renderBlock(block: AssistantBlock): string {
  switch (block.type) {
    case "text":
      return `[agent]\n${clipMiddle(block.text, MAX_TEXT_CHARS)}`;
    case "toolCall": {
      const { code } = block.arguments;
      const cell = typeof code === "string" ? code : JSON.stringify(block.arguments);
      return `[cell]\n${clipMiddle(cell, MAX_TEXT_CHARS)}`;
    }
    case "thinking":
      return "";
  }
}

function contentText(message: Message): string {
  const images =
    typeof message.content === "string"
      ? 0
      : message.content.filter((block) => block.type === "image").length;
  const text = messageText(message);
  return images > 0 ? `${text}\n(${images} image(s))` : text;
}

/** `text` in at most about `maxChars`: its beginning, what was left out, and its end. */
export function clipMiddle(text: string, maxChars: number): string {
  if (text.length <= maxChars) return text;
  const half = Math.floor(maxChars / 2);
  const left = text.length - 2 * half;
  const head = text.slice(0, half).toWellFormed();
  return `${head}\n[... ${left} characters left out ...]\n${text.slice(-half).toWellFormed()}`;
}

function listed(items: readonly string[]): string {
  const shown = items.slice(0, MAX_LISTED).join(", ");
  return items.length > MAX_LISTED ? `${shown} and ${items.length - MAX_LISTED} more` : shown;
}
