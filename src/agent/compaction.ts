/**
 * Compaction: the older part of the context gives way to a summary. Here it is decided what goes
 * and what stays, and a summary is asked for; nothing is stored.
 */

import { throwIfAborted } from "../async.ts";
import type { Message } from "../message.ts";
import { storedSummary, summaryInstructions, summaryRequest } from "./compaction-text.ts";
import { CompactionError, SummaryOverflowError, type CompactionFault } from "./errors.ts";
import { summaryText, type ContextItem } from "./session-context.ts";
import type { CompactionEntry, EntryBase } from "./session-entry.ts";
import { estimateTokens, textTokens, tokenLimit, type ModelWindow } from "./tokens.ts";

/**
 * Asks a model for a summary: `messages` to read, `instructions` as system prompt. Throws
 * {@link SummaryOverflowError} when the request was too long; whatever else it throws ends the
 * compaction unchanged.
 */
export type Summarize = (
  messages: readonly Message[],
  instructions: string,
  signal: AbortSignal,
) => Promise<string>;

/** What a compaction works on. */
export interface CompactionInput {
  items: readonly ContextItem[];
  /** Tokens of the context now. */
  tokensBefore: number;
  window: ModelWindow;
  /** What the person or the model wants kept. */
  instructions?: string;
  summarize: Summarize;
  signal: AbortSignal;
}

/** The entry to append to the session, and the estimated size of the context with it. */
export interface Compaction {
  entry: Omit<CompactionEntry, keyof EntryBase>;
  tokensAfter: number;
}

/**
 * Summarises the older part of the context. Tries at most {@link MAX_ATTEMPTS} times, keeping and
 * sending less each time, and throws {@link CompactionError} when the context does not get smaller.
 */
export async function compact(input: CompactionInput): Promise<Compaction> {
  let fault: CompactionFault = "nothing_to_remove";
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    throwIfAborted(input.signal);
    const outcome = await attemptCompaction(input, attempt);
    if (typeof outcome === "object") return outcome;
    fault = outcome;
  }
  throw compactionError(fault);
}

/** The error for `fault`, in words for a person. */
export function compactionError(fault: CompactionFault): CompactionError {
  return new CompactionError(fault, FAULTS[fault]);
}

const MAX_ATTEMPTS = 3;

/** Recent messages that stay word for word, in tokens. */
const KEPT_TOKENS = 20_000;
const CHARS_PER_TOKEN = 4;

/** Below this size estimates say nothing, and whoever asks for a summary knows better. */
const MEANINGFUL_TOKENS = 2_000;

/** A summary of less text than this is not worth asking for. */
const MIN_REQUEST_CHARS = 8_000;

const FAULTS: Record<CompactionFault, string> = {
  nothing_to_remove: "compaction failed: nothing is left to summarise",
  no_summary: "compaction failed: the model gave no summary",
  no_gain: "compaction failed: the summary is no shorter than what it replaces",
  fills_again: "compaction failed: the context fills up again right after each summary",
};

async function attemptCompaction(
  input: CompactionInput,
  attempt: number,
): Promise<Compaction | CompactionFault> {
  const limit = tokenLimit(input.window);
  const isLast = attempt === MAX_ATTEMPTS - 1;
  const keep = isLast ? 0 : Math.min(KEPT_TOKENS, limit / 4) / 4 ** attempt;
  const cut = chooseCut(input.items, keep);
  const removed = input.items.slice(0, cut);
  const kept = input.items.slice(cut);
  if (!removed.some((item) => item.entry.type !== "compaction")) return "nothing_to_remove";
  const maxChars = Math.max((limit * CHARS_PER_TOKEN) / 2 ** (attempt + 1), MIN_REQUEST_CHARS);
  const text = await requestSummary(input, removed, maxChars);
  if (text === "") return "no_summary";
  const summary = storedSummary(text, removed, kept);
  const removedTokens = sum(removed);
  const gained = removedTokens - textTokens(summaryText(summary));
  const tokensAfter = Math.max(0, input.tokensBefore - gained);
  if (removedTokens >= MEANINGFUL_TOKENS) {
    // Still over the limit is too little, unless there is nothing more to give.
    if (gained <= 0 || (tokensAfter > limit && !isLast)) return "no_gain";
  }
  return {
    entry: {
      type: "compaction",
      summary,
      firstKeptEntryId: kept[0]?.entry.id ?? NOTHING_KEPT,
      tokensBefore: Math.round(input.tokensBefore),
    },
    tokensAfter: Math.round(tokensAfter),
  };
}

/** Names no entry, so that none from before the summary is kept. */
const NOTHING_KEPT = "";

/** The trimmed summary; empty when the model gave none or could not read that much. */
async function requestSummary(
  { summarize, instructions, signal }: CompactionInput,
  removed: readonly ContextItem[],
  maxChars: number,
): Promise<string> {
  const request = summaryRequest(removed, maxChars);
  try {
    return (await summarize([request], summaryInstructions(instructions), signal)).trim();
  } catch (error) {
    if (error instanceof SummaryOverflowError) return "";
    throw error;
  }
}

/**
 * How many items to remove so that the rest has at most `keepTokens`: the fewest possible, never
 * between a call and its results. All of them when even the last piece is too large.
 */
export function chooseCut(items: readonly ContextItem[], keepTokens: number): number {
  const allowed = cutsAllowed(items);
  let cut = items.length;
  let tokens = 0;
  for (let index = items.length - 1; index >= 0; index -= 1) {
    tokens += estimateTokens((items[index] as ContextItem).message);
    if (tokens > keepTokens) break;
    if (allowed[index]) cut = index;
  }
  return cut;
}

/** For each index, whether the items may be split before it: not between a reply and its last result. */
function cutsAllowed(items: readonly ContextItem[]): boolean[] {
  const allowed = items.map(() => true);
  let resultFollows = false;
  for (let index = items.length - 1; index >= 0; index -= 1) {
    const { role } = (items[index] as ContextItem).message;
    if (role === "toolResult") resultFollows = true;
    if (role === "assistant") resultFollows = false;
    if (resultFollows) allowed[index] = false;
  }
  return allowed;
}

function sum(items: readonly ContextItem[]): number {
  return items.reduce((tokens, item) => tokens + estimateTokens(item.message), 0);
}
