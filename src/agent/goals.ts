/**
 * The goal of an agent: one objective that it works on, turn after turn, until it says that it is
 * reached or the token budget is used up. Everything is derived from the session's entries, so a
 * resumed session goes on with its goal.
 */

import { HostRequestError } from "../kernel/host-bridge.ts";
import continuationText from "./goal.txt" with { type: "text" };
import spentText from "./goal-spent.txt" with { type: "text" };
import startText from "./goal-start.txt" with { type: "text" };
import type { SessionEntry } from "./session-entry.ts";
import type { Session } from "./session.ts";
import { sessionUsage } from "./usage.ts";

/** `spent`: its budget is used up; `cleared`: the user took it back. */
export type GoalStatus = "active" | "complete" | "spent" | "cleared";

/** A goal and what was used for it so far. */
export interface Goal {
  /** As it was given, word for word. */
  objective: string;
  status: GoalStatus;
  tokenBudget: number | undefined;
  /** Of all replies since it was set, sub-agents' that have ended included. */
  tokensUsed: number;
  /** ISO 8601. */
  createdAt: string;
}

/** What an entry of the session says about the goal. */
interface GoalRecord {
  objective: string;
  status: GoalStatus;
  tokenBudget?: number;
}

/** An objective is a sentence or a page, not a book. */
export const MAX_OBJECTIVE_CHARS = 16_384;
/** What the session's entries and the transcript's messages about goals are called. */
export const GOAL_TYPE = "goal";
/** So many turns in a row without a cell mean that nothing moves any more. */
const MAX_IDLE_TURNS = 3;

/** See the head of this file. */
export class Goals {
  readonly #session: Session;
  readonly #warn: (message: string) => void;

  /** `warn` tells the person why the pursuit ended without success. */
  constructor(session: Session, warn: (message: string) => void) {
    this.#session = session;
    this.#warn = warn;
  }

  /** The goal that was set last, unless it was taken back. */
  current(): Goal | undefined {
    const { entries } = this.#session;
    const last = entries.findLastIndex((entry) => recordOf(entry) !== undefined);
    const record = recordOf(entries[last]);
    if (!record || record.status === "cleared") return undefined;
    const first = entries.findLastIndex(
      (entry, index) => index <= last && recordOf(entry)?.status === "active",
    );
    const end = record.status === "complete" ? last : entries.length;
    return {
      objective: record.objective,
      status: record.status,
      tokenBudget: record.tokenBudget,
      tokensUsed: sessionUsage(entries.slice(first + 1, end)).total.totalTokens,
      createdAt: entries[first]?.timestamp ?? "",
    };
  }

  /** Sets a goal. @throws HostRequestError while another is open. */
  create(objective: string, tokenBudget?: number): Goal {
    const open = this.current();
    if (open?.status === "active") {
      throw new HostRequestError(
        `There is an open goal already: "${firstChars(open.objective)}". Complete it first; only the user can take it back.`,
      );
    }
    this.#record({
      objective,
      status: "active",
      ...(tokenBudget !== undefined && { tokenBudget }),
    });
    return this.current() as Goal;
  }

  /** Marks the goal as reached. @throws HostRequestError when there is none. */
  complete(): Goal {
    const goal = this.current();
    if (!goal || goal.status === "complete")
      throw new HostRequestError("There is no open goal to complete.");
    this.#close(goal, "complete");
    return this.current() as Goal;
  }

  /**
   * Sets a goal for the user, in the place of any other, or takes it back. Returns what the agent must
   * be told; undefined when nothing changed.
   */
  set(objective: string | undefined): string | undefined {
    const open = this.current();
    if (open && open.status !== "complete") this.#close(open, "cleared");
    if (objective !== undefined) {
      this.#record({ objective, status: "active" });
      return startText.trim().replace("{objective}", () => objective);
    }
    return open?.status === "active" ? TAKEN_BACK : undefined;
  }

  /** The prompt that keeps the agent at work when it would end; undefined when it may. */
  nextPrompt(): string | undefined {
    const goal = this.current();
    if (goal?.status !== "active") return undefined;
    const left = remainingTokens(goal);
    if (left !== null && left <= 0) {
      this.#close(goal, "spent");
      this.#warn(`the goal is not complete and its token budget is used up: ${budgetReport(goal)}`);
      return fill(spentText, goal);
    }
    if (idleTurns(this.#session.entries) >= MAX_IDLE_TURNS) {
      this.#warn(
        `the goal is not complete, but ${MAX_IDLE_TURNS} turns went by without a cell; prompt again to go on`,
      );
      return undefined;
    }
    return fill(continuationText, goal);
  }

  #close({ objective, tokenBudget }: Goal, status: GoalStatus): void {
    this.#record({ objective, status, ...(tokenBudget !== undefined && { tokenBudget }) });
  }

  #record(data: GoalRecord): void {
    this.#session.append({ type: "custom", customType: GOAL_TYPE, data });
  }
}

/** Tokens that are left of the budget; null without one. */
export function remainingTokens({ tokenBudget, tokensUsed }: Goal): number | null {
  return tokenBudget === undefined ? null : Math.max(0, tokenBudget - tokensUsed);
}

/** What was used of the budget, as a sentence. */
export function budgetReport({ tokenBudget, tokensUsed }: Goal): string {
  const used = tokensUsed.toLocaleString("en");
  if (tokenBudget === undefined) return `${used} tokens used, without a budget.`;
  const percent = Math.round((tokensUsed / tokenBudget) * 100);
  return `${used} of ${tokenBudget.toLocaleString("en")} tokens used (${percent} %).`;
}

const TAKEN_BACK = "<goal>\nThe user has taken the goal back. It no longer counts.\n</goal>";
const STATUSES: readonly GoalStatus[] = ["active", "complete", "spent", "cleared"];

function fill(text: string, goal: Goal): string {
  return text
    .trim()
    .replace("{budget}", () => budgetReport(goal))
    .replace("{objective}", () => goal.objective);
}

function firstChars(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200).toWellFormed()}…` : text;
}

/** What an entry says about the goal; undefined for other entries, and for records that can't be read. */
function recordOf(entry: SessionEntry | undefined): GoalRecord | undefined {
  if (entry?.type !== "custom" || entry.customType !== GOAL_TYPE) return undefined;
  const record = entry.data as Partial<GoalRecord> | null | undefined;
  if (typeof record?.objective !== "string") return undefined;
  const status = STATUSES.find((known) => known === record.status);
  if (!status) return undefined;
  const { objective, tokenBudget } = record;
  return { objective, status, ...(typeof tokenBudget === "number" && { tokenBudget }) };
}

/** How many continuations in a row led to no cell, since the last prompt or message of anybody else. */
function idleTurns(entries: readonly SessionEntry[]): number {
  let turns = 0;
  for (const entry of entries.toReversed()) {
    if (entry.type === "custom_message" && entry.customType === GOAL_TYPE) turns += 1;
    else if (entry.type === "custom_message") break;
    else if (entry.type === "message" && entry.message.role !== "assistant") break;
  }
  return turns;
}
