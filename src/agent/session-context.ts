/** From a session's entries to the messages that the model reads. */

import {
  emptyUsage,
  type AssistantMessage,
  type ImageBlock,
  type Message,
  type TextBlock,
  type ToolCallBlock,
} from "../message.ts";
import type { SessionEntry } from "./session-entry.ts";

/**
 * The path from the root to the active leaf, which is the last entry. An entry's parent is the
 * nearest earlier entry with that id, so duplicate ids and cycles can't hang it; a parent that is
 * lost is replaced by the entry before, so that a hole never cuts off the history.
 */
export function activeBranch(entries: readonly SessionEntry[]): SessionEntry[] {
  const indexOfId = new Map<string, number>();
  const parents = entries.map((entry, index) => {
    const parent =
      entry.parentId === null ? NO_PARENT : (indexOfId.get(entry.parentId) ?? index - 1);
    indexOfId.set(entry.id, index);
    return parent;
  });
  const branch: SessionEntry[] = [];
  let index = entries.length - 1;
  while (index >= 0) {
    branch.push(entries[index] as SessionEntry);
    index = parents[index] ?? NO_PARENT;
  }
  return branch.reverse();
}

const NO_PARENT = -1;

/** An entry of the branch and the message that it is in the model's context. */
export interface ContextItem {
  entry: SessionEntry;
  message: Message;
  /** From before the latest compaction: its usage measured a longer context than the present one. */
  kept: boolean;
}

/**
 * What of the branch the model reads: the summary of the latest compaction, the entries that it
 * kept, and all that came after.
 */
export function contextItems(branch: readonly SessionEntry[]): ContextItem[] {
  const at = branch.findLastIndex((entry) => entry.type === "compaction");
  const compaction = branch[at];
  if (compaction?.type !== "compaction") return toItems(branch, false);
  const firstKept = branch.findIndex((entry) => entry.id === compaction.firstKeptEntryId);
  const kept = firstKept >= 0 && firstKept < at ? branch.slice(firstKept, at) : [];
  return [
    ...toItems([compaction], false),
    // An earlier summary among the kept entries is covered by the latest.
    ...toItems(
      kept.filter((entry) => entry.type !== "compaction"),
      true,
    ),
    ...toItems(branch.slice(at + 1), false),
  ];
}

function toItems(entries: readonly SessionEntry[], kept: boolean): ContextItem[] {
  return entries.flatMap((entry) => {
    const message = entryMessage(entry);
    return message ? [{ entry, message, kept }] : [];
  });
}

/** The message that `entry` adds to the model's context, if any. */
export function entryMessage(entry: SessionEntry): Message | undefined {
  switch (entry.type) {
    case "message":
      return storedMessage(entry.message, timeOf(entry));
    case "compaction":
      return userMessage(summaryText(entry.summary), timeOf(entry));
    case "branch_summary":
      return userMessage(branchText(entry.summary), timeOf(entry));
    case "custom_message":
      return userMessage(entry.content, timeOf(entry));
    default:
      return undefined;
  }
}

/** How a compaction's summary reads to the model. */
export function summaryText(summary: string): string {
  return `The conversation before this point was replaced by this summary:\n\n<summary>\n${summary}\n</summary>`;
}

function branchText(summary: string): string {
  return `Another line of this conversation was left; this is its summary:\n\n<summary>\n${summary}\n</summary>`;
}

function timeOf(entry: SessionEntry): number {
  const time = Date.parse(entry.timestamp);
  return Number.isNaN(time) ? 0 : time;
}

function userMessage(content: string | Array<TextBlock | ImageBlock>, timestamp: number): Message {
  return { role: "user", content, timestamp };
}

/** Roles of other programs of the format, and messages that lack a part which we rely on. */
type LooseMessage = { role: string; timestamp?: number } & Record<string, unknown>;

function storedMessage(stored: unknown, entryTime: number): Message | undefined {
  const message = stored as LooseMessage;
  const timestamp = typeof message.timestamp === "number" ? message.timestamp : entryTime;
  switch (message.role) {
    case "user":
    case "custom":
      return userMessage(textOrBlocks(message.content), timestamp);
    case "assistant":
      return assistantMessage(message, timestamp);
    case "toolResult":
      return {
        role: "toolResult",
        toolCallId: String(message.toolCallId),
        toolName: String(message.toolName),
        content: blocks(message.content),
        ...(message.details === undefined ? {} : { details: message.details }),
        isError: message.isError === true,
        timestamp,
      };
    case "bashExecution":
      return message.excludeFromContext === true
        ? undefined
        : userMessage(`I ran \`${message.command}\`:\n\n${message.output}`, timestamp);
    case "branchSummary":
      return userMessage(branchText(String(message.summary)), timestamp);
    case "compactionSummary":
      return userMessage(summaryText(String(message.summary)), timestamp);
    default:
      return undefined;
  }
}

function assistantMessage(message: LooseMessage, timestamp: number): AssistantMessage {
  const content = (blocks(message.content) as AssistantMessage["content"]).map((block) =>
    block.type === "toolCall" ? withObjectArguments(block) : block,
  );
  return {
    api: "",
    provider: "",
    model: "",
    usage: emptyUsage(),
    stopReason: "stop",
    ...(message as Partial<AssistantMessage>),
    role: "assistant",
    content,
    timestamp,
  };
}

function textOrBlocks(content: unknown): string | Array<TextBlock | ImageBlock> {
  return typeof content === "string" ? content : blocks(content);
}

function blocks(content: unknown): Array<TextBlock | ImageBlock> {
  if (typeof content === "string") return [{ type: "text", text: content }];
  if (!Array.isArray(content)) return [];
  return content.filter((block) => typeof block?.type === "string");
}

/** Providers refuse a history whose call arguments are no object; some programs store their text. */
function withObjectArguments(call: ToolCallBlock): ToolCallBlock {
  const given: unknown = call.arguments;
  if (typeof given === "object" && given !== null && !Array.isArray(given)) return call;
  return { ...call, arguments: {}, malformed: "its arguments were not stored as an object" };
}
