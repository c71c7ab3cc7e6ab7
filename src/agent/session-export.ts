/** A saved conversation as a list of sections, from which Markdown and HTML are made. */

import type { ImageBlock, Message, TextBlock, ThinkingBlock, ToolCallBlock } from "../message.ts";
import { printable } from "../printable.ts";
import { entryMessage } from "./session-context.ts";
import type { SessionEntry } from "./session-entry.ts";
import type { StoredConversation } from "./session-store.ts";
import { sessionUsage } from "./usage.ts";

/** One piece of a section. Texts are {@link printable}. */
export type ExportPart =
  | { kind: "text" | "thinking" | "output"; text: string }
  | { kind: "code"; text: string; language: "python" | "bash" }
  | { kind: "image"; mimeType: string; data: string };

/** What one side said or did. */
export interface ExportSection {
  kind: "user" | "assistant" | "result" | "notice";
  title: string;
  parts: ExportPart[];
}

/** A conversation ready to be written in any format. */
export interface ConversationExport {
  title: string;
  /** Labelled facts: id, folder, time, models, usage. */
  facts: Array<[label: string, value: string]>;
  sections: ExportSection[];
}

/** Turns a stored conversation into sections, compacted parts included. */
export function exportConversation(conversation: StoredConversation): ConversationExport {
  const { header, entries } = conversation;
  const name = entries.findLast((entry) => entry.type === "session_info")?.name;
  const usage = sessionUsage(entries);
  const models = usage.models.map((model) => model.model).join(", ");
  return {
    title: printable(name ?? `Session ${header.id}`),
    facts: (
      [
        ["Session", header.id],
        ["Folder", header.cwd],
        ["Started", header.timestamp],
        ["Models", models],
        ["Tokens", usage.total.totalTokens > 0 ? String(usage.total.totalTokens) : ""],
        ["Cost", usage.total.cost.total > 0 ? `$${usage.total.cost.total.toFixed(4)}` : ""],
      ] satisfies Array<[string, string]>
    )
      .filter(([, value]) => value !== "")
      .map(([label, value]) => [label, printable(value)]),
    sections: entries.map(entrySection).filter((section) => section !== undefined),
  };
}

function entrySection(entry: SessionEntry): ExportSection | undefined {
  switch (entry.type) {
    case "message": {
      const message = entryMessage(entry);
      return message && messageSection(message);
    }
    case "model_change":
      return notice(`Model: ${entry.provider}/${entry.modelId}`);
    case "thinking_level_change":
      return notice(`Effort: ${entry.thinkingLevel}`);
    case "compaction":
      return notice("The conversation so far was summarised", [text(entry.summary)]);
    case "branch_summary":
      return notice("Another branch was left", [text(entry.summary)]);
    case "custom_message":
      return entry.display ? notice("Notice", contentParts(entry.content)) : undefined;
    default:
      return undefined;
  }
}

function messageSection(message: Message): ExportSection {
  switch (message.role) {
    case "user":
      return { kind: "user", title: "User", parts: contentParts(message.content) };
    case "toolResult":
      return {
        kind: "result",
        title: message.isError ? "Output (error)" : "Output",
        parts: message.content.map((block) => {
          return block.type === "image"
            ? image(block)
            : { kind: "output", text: printable(block.text) };
        }),
      };
    case "assistant": {
      const parts = message.content.map(assistantPart);
      if (message.errorMessage) parts.push(text(`${message.stopReason}: ${message.errorMessage}`));
      return { kind: "assistant", title: `Assistant ${message.model}`.trim(), parts };
    }
  }
}

function assistantPart(block: TextBlock | ThinkingBlock | ToolCallBlock): ExportPart {
  switch (block.type) {
    case "text":
      return text(block.text);
    case "thinking":
      return { kind: "thinking", text: printable(block.redacted ? "(hidden)" : block.thinking) };
    case "toolCall": {
      const { code } = block.arguments;
      const source = typeof code === "string" ? code : JSON.stringify(block.arguments, null, 2);
      const language = /^\s*%%(?:bash|sh)\b/.test(source) ? "bash" : "python";
      return { kind: "code", text: printable(source), language };
    }
  }
}

function contentParts(content: string | Array<TextBlock | ImageBlock>): ExportPart[] {
  if (typeof content === "string") return [text(content)];
  return content.map((block) => (block.type === "image" ? image(block) : text(block.text)));
}

function notice(title: string, parts: ExportPart[] = []): ExportSection {
  return { kind: "notice", title: printable(title), parts };
}

function text(value: string): ExportPart {
  return { kind: "text", text: printable(value) };
}

function image(block: ImageBlock): ExportPart {
  return { kind: "image", mimeType: block.mimeType, data: block.data };
}
