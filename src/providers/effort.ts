/** Maps our effort levels to the levels that a model has. */

import { EFFORTS } from "./provider.ts";
import type { Effort } from "./provider.ts";

/**
 * The level of `levels` that is nearest to `effort`: itself, else the next weaker one, else the
 * weakest. Only `off` itself turns thinking off.
 */
export function nearestEffort<T extends Effort>(effort: Effort, levels: readonly T[]): T {
  const wanted = EFFORTS.indexOf(effort);
  const ranked = levels
    .filter((level) => level !== "off" || effort === "off")
    .sort((a, b) => EFFORTS.indexOf(a) - EFFORTS.indexOf(b));
  const nearest = ranked.findLast((level) => EFFORTS.indexOf(level) <= wanted) ?? ranked[0];
  if (nearest === undefined) throw new RangeError("a model needs at least one effort level");
  return nearest;
}

/** The levels of an OpenAI model, by its id; `off` stands for OpenAI's `none`. */
export function openAiEfforts(modelId: string): readonly Effort[] {
  const id = modelId.replace(/^.*\//, "");
  if (/^o\d/.test(id)) return ["low", "medium", "high"];
  const version = /^gpt-(\d+)(?:\.(\d+))?/.exec(id);
  const major = Number(version?.[1] ?? 0);
  const minor = Number(version?.[2] ?? 0);
  if (major < 5) return ["low", "medium", "high"];
  if (/-pro\b/.test(id)) return minor >= 2 ? ["medium", "high", "xhigh"] : ["high"];
  if (/-codex-max\b/.test(id)) return ["low", "medium", "high", "xhigh"];
  if (/-codex\b/.test(id))
    return minor >= 2 ? ["low", "medium", "high", "xhigh"] : ["low", "medium", "high"];
  if (major === 5 && minor === 0) return ["minimal", "low", "medium", "high"];
  if (major === 5 && minor === 1) return ["off", "low", "medium", "high"];
  return ["off", "low", "medium", "high", "xhigh"];
}

/** OpenAI's name of a level. */
export function openAiEffort(modelId: string, effort: Effort): string {
  const level = nearestEffort(effort, openAiEfforts(modelId));
  return level === "off" ? "none" : level;
}
