/** The model of a running session, and how a person changes it. */

import type { Agent, ModelBinding } from "./agent/loop.ts";
import type { Session } from "./agent/session.ts";
import { parseEffort, rebindModel } from "./app-model.ts";
import type { Redactor } from "./app-redact.ts";
import type { Config } from "./config.ts";
import { EFFORTS } from "./providers/provider.ts";

/** See the head of this file. Changes hold from the next request on, and are saved with the session. */
export interface ModelSwitch {
  /** `provider/id`. */
  readonly name: string;
  /** The effort level that was chosen; undefined when the model's own holds. */
  readonly effort: string | undefined;
  /** Takes another model; returns what the person should know. @throws ModelError, MissingKeyError. */
  change(selector: string): Promise<string[]>;
  /** Takes another effort level. @throws UsageError naming the levels. */
  changeEffort(level: string): void;
}

/** The switch of one agent. */
export function createModelSwitch(
  config: Config,
  agent: Agent,
  session: Session,
  redactor: Redactor,
): ModelSwitch {
  return {
    get name() {
      return modelName(agent.binding);
    },
    get effort() {
      return agent.binding.effort;
    },
    async change(selector) {
      const { binding, warnings } = await rebindModel(config, selector);
      const { effort } = agent.binding;
      agent.binding = redacted({ ...binding, ...(effort && { effort }) }, redactor);
      const { provider, id } = binding.model;
      session.append({ type: "model_change", provider, modelId: id });
      return warnings;
    },
    changeEffort(level) {
      const effort = parseEffort(level);
      agent.binding = { ...agent.binding, effort };
      session.append({ type: "thinking_level_change", thinkingLevel: effort });
    },
  };
}

/** `provider/id`. */
export function modelName({ model }: ModelBinding): string {
  return `${model.provider}/${model.id}`;
}

/** The binding whose failures are told without secrets, its own key among them. */
export function redacted(binding: ModelBinding, redactor: Redactor): ModelBinding {
  redactor.add(binding.apiKey);
  return { ...binding, request: { ...binding.request, redact: redactor.redact } };
}

/** The binding with the effort level of a resumed session, where no flag asks for another. */
export function withSavedEffort(
  config: Config,
  binding: ModelBinding,
  session: Session,
): ModelBinding {
  const saved = EFFORTS.find((level) => level === session.thinkingLevel);
  return saved && config.model.effort === undefined ? { ...binding, effort: saved } : binding;
}
