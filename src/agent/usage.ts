/** What a run or a session cost: totals, per model, and the share of its sub-agents. */

import { addUsage, emptyUsage, type AssistantMessage, type Usage } from "../message.ts";
import type { SessionEntry } from "./session-entry.ts";

/** The usage of one model. */
export interface ModelUsage {
  /** `PROVIDER/ID`, as in the selector. */
  model: string;
  usage: Usage;
  /** Replies of this model. */
  replies: number;
}

/** Totals at one moment; later changes don't show in it. */
export interface UsageTotals {
  /** Own replies and sub-agents together. */
  total: Usage;
  /** What of `total` sub-agents used. */
  children: Usage;
  /** Own replies only, in order of first use. */
  models: ModelUsage[];
}

/** Adds up usage while a run goes on. */
export class UsageLedger {
  readonly #total = emptyUsage();
  readonly #children = emptyUsage();
  readonly #models = new Map<string, ModelUsage>();

  /** Counts one reply of the model. */
  addReply(reply: AssistantMessage): void {
    const model = `${reply.provider}/${reply.model}`;
    const entry = this.#models.get(model) ?? { model, usage: emptyUsage(), replies: 0 };
    this.#models.set(model, entry);
    addUsage(entry.usage, reply.usage);
    addUsage(this.#total, reply.usage);
    entry.replies += 1;
  }

  /** Counts what a sub-agent used, once it is known. */
  addChild(usage: Usage): void {
    addUsage(this.#children, usage);
    addUsage(this.#total, usage);
  }

  /** A copy of the totals so far. */
  totals(): UsageTotals {
    return structuredClone({
      total: this.#total,
      children: this.#children,
      models: [...this.#models.values()],
    });
  }
}

/** What the entries of a saved session cost in all, sub-agents included. */
export function sessionUsage(entries: readonly SessionEntry[]): UsageTotals {
  const ledger = new UsageLedger();
  for (const entry of entries) {
    if (entry.type === "child_usage_attributed") ledger.addChild(wholeUsage(entry.childUsage));
    else if (entry.type === "message" && entry.message.role === "assistant") {
      ledger.addReply({ ...entry.message, usage: wholeUsage(entry.message.usage) });
    }
  }
  return ledger.totals();
}

/** Other programs leave out parts of a usage record. */
function wholeUsage(usage: Partial<Usage> | undefined): Usage {
  const empty = emptyUsage();
  return { ...empty, ...usage, cost: { ...empty.cost, ...usage?.cost } };
}
