/** The notice that a sub-agent leaves its parent when its work ended without a message to it. */

import { messageText } from "../message.ts";
import { clipMiddle } from "./compaction-text.ts";
import type { FamilyMember } from "./family.ts";
import type { InboxMessage } from "./inbox.ts";
import { attribute, withoutTags } from "./messages.ts";
import type { SessionEntry } from "./session-entry.ts";

/** How a sub-agent's work ended. */
export interface Ending {
  outcome: "completed" | "error" | "cancelled";
  /** Why, unless it completed. */
  reason?: string;
  /** Why its kernel died on the way, if it did. */
  kernelLoss?: string;
  /** What it said last; "" for nothing. */
  lastText: string;
}

/** What of a sub-agent's last text goes into the notice. */
export const MAX_PREVIEW_CHARS = 2_000;
const MAX_REASON_CHARS = 1_000;

/** Makes the notice about `child`. */
export function endingNotice(child: FamilyMember, ending: Ending): InboxMessage {
  const lines = [`It sent you no message. ${OUTCOMES[ending.outcome]}`];
  if (ending.reason) lines.push(`Reason: ${clipMiddle(ending.reason, MAX_REASON_CHARS)}`);
  if (ending.kernelLoss)
    lines.push(`Its kernel died meanwhile: ${clipMiddle(ending.kernelLoss, MAX_REASON_CHARS)}`);
  const text = ending.lastText.trim();
  lines.push(text ? `Its last text:\n${clipMiddle(text, MAX_PREVIEW_CHARS)}` : "It said nothing.");
  const subject = `name="${attribute(child.name)}" id="${child.id}" outcome="${ending.outcome}"`;
  const body = withoutTags(lines.join("\n"), "subagent_ended");
  return {
    source: "agent-notice",
    content: `<subagent_ended ${subject}>\n${body}\n</subagent_ended>`,
    details: { child: child.id, name: child.name, ...ending, lastText: undefined },
  };
}

const OUTCOMES: Record<Ending["outcome"], string> = {
  completed: "It ended its work as done.",
  error: "It failed.",
  cancelled: "It was cancelled before it was done.",
};

/** The last text that a reply among `entries` holds, from the entry at index `since` on. */
export function lastText(entries: readonly SessionEntry[], since: number): string {
  for (let index = entries.length - 1; index >= since; index -= 1) {
    const entry = entries[index];
    if (entry?.type !== "message" || entry.message.role !== "assistant") continue;
    const text = messageText(entry.message).trim();
    if (text !== "") return text;
  }
  return "";
}
