/** What a saved session cost: totals, per model, and the share of its sub-agents. */

import { addUsage, emptyUsage, type Usage } from "../message.ts";
import type { SessionEntry } from "./session-entry.ts";

/** The usage of one model. */
export interface ModelUsage {
  /** `PROVIDER/ID`, as in the selector. */
  model: string;
  usage: Usage;
  /** Replies of this model. */
  replies: number;
}

/** What a session cost in all. */
export interface UsageTotals {
  /** Own replies and sub-agents together. */
  total: Usage;
  /** What of `total` sub-agents used. */
  children: Usage;
  /** Own replies only, in order of first use. */
  models: ModelUsage[];
}

/** Adds up what the entries of a session say; records of other programs may lack parts. */
export function sessionUsage(entries: readonly SessionEntry[]): UsageTotals {
  const total = emptyUsage();
  const children = emptyUsage();
  const models = new Map<string, ModelUsage>();
  for (const entry of entries) {
    if (entry.type === "child_usage_attributed") {
      addUsage(children, wholeUsage(entry.childUsage));
      addUsage(total, wholeUsage(entry.childUsage));
    } else if (entry.type === "message" && entry.message.role === "assistant") {
      const { provider, model: id } = entry.message;
      const usage = wholeUsage(entry.message.usage);
      const model = `${provider}/${id}`;
      const sum = models.get(model) ?? { model, usage: emptyUsage(), replies: 0 };
      models.set(model, sum);
      addUsage(sum.usage, usage);
      sum.replies += 1;
      addUsage(total, usage);
    }
  }
  return { total, children, models: [...models.values()] };
}

function wholeUsage(usage: Partial<Usage> | undefined): Usage {
  const empty = emptyUsage();
  return { ...empty, ...usage, cost: { ...empty.cost, ...usage?.cost } };
}
