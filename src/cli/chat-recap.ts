/** Where a resumed conversation stopped, in a few lines. */

import type { SessionEntry } from "../agent/session-entry.ts";
import { messageText } from "../message.ts";
import { firstLine, printable } from "../printable.ts";

const PROMPT_WIDTH = 76;
const MAX_ANSWER_LINES = 8;

/** The last prompt in one line, and the end of the answer to it; empty when nothing was said. */
export function recapLines(entries: readonly SessionEntry[]): string[] {
  const messages = entries.flatMap((entry) => (entry.type === "message" ? [entry.message] : []));
  const asked = messages.findLastIndex(({ role }) => role === "user");
  const prompt = messages[asked];
  if (!prompt) return [];
  const answers = messages.slice(asked + 1).filter(({ role }) => role === "assistant");
  const answer = answers.map(messageText).findLast((text) => text.trim() !== "") ?? "";
  const lines = printable(answer.trim()).split("\n");
  const shown = lines.slice(-MAX_ANSWER_LINES);
  if (shown.length < lines.length) shown.unshift("…");
  return [`> ${firstLine(messageText(prompt), PROMPT_WIDTH)}`, ...(answer === "" ? [] : shown), ""];
}
