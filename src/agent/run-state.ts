/** The counters of one run, and the limits that they may not pass. */

import { addUsage, emptyUsage, type AssistantMessage, type Usage } from "../message.ts";
import type { RunOutcome } from "./events.ts";

/** Limits of a run; absent means none. */
export interface RunLimits {
  maxTurns?: number;
  /** Tokens of input and output together, over all turns. */
  maxTokens?: number;
  maxBudgetUsd?: number;
}

/** What a run has used so far. */
export class RunState {
  turns = 0;
  toolCalls = 0;
  apiMs = 0;
  toolMs = 0;
  /** From the first request to its first content. */
  ttftMs: number | undefined;
  readonly usage: Usage = emptyUsage();
  /** Usage by `provider/model`. */
  readonly modelUsage = new Map<string, Usage>();
  /** Whether every reply so far had a known price. */
  costKnown = true;
  /** Hears of all usage as it is counted; for a sub-agent, its parent counts it too. */
  onUsage?: (model: string, usage: Usage, priceKnown: boolean) => void;

  /** Counts one reply. */
  addReply(message: AssistantMessage, priceKnown: boolean): void {
    this.turns += 1;
    this.addUsage(`${message.provider}/${message.model}`, message.usage, priceKnown);
  }

  /** Counts usage that is not a turn of this run: a sub-agent's, or a summary's. */
  addUsage(model: string, usage: Usage, priceKnown: boolean): void {
    addUsage(this.usage, usage);
    const sum = this.modelUsage.get(model) ?? emptyUsage();
    addUsage(sum, usage);
    this.modelUsage.set(model, sum);
    if (!priceKnown) this.costKnown = false;
    this.onUsage?.(model, usage, priceKnown);
  }

  /** The outcome that a passed limit means, or undefined while all hold. `next` says that another turn is due. */
  exceeded(limits: RunLimits, text: string): RunOutcome | undefined {
    const stop = (subtype: RunOutcome["subtype"], message: string): RunOutcome => ({
      subtype,
      text,
      error: { code: subtype.replace("error_", ""), message, retryable: false },
    });
    if (limits.maxTurns !== undefined && this.turns >= limits.maxTurns) {
      return stop(
        "error_max_turns",
        `stopped after ${this.turns} turns (--max-turns); resume to go on`,
      );
    }
    if (limits.maxTokens !== undefined && this.usage.totalTokens >= limits.maxTokens) {
      return stop(
        "error_max_tokens",
        `stopped after ${this.usage.totalTokens} tokens (--max-tokens); resume to go on`,
      );
    }
    if (limits.maxBudgetUsd !== undefined && this.usage.cost.total >= limits.maxBudgetUsd) {
      const spent = this.usage.cost.total.toFixed(4);
      return stop(
        "error_max_budget_usd",
        `stopped after US$ ${spent} (--max-budget-usd); resume to go on`,
      );
    }
    return undefined;
  }
}
