/** What a run is, in the words of `system/init`: told before anything is sent. */

import type { ModelBinding } from "./agent/loop.ts";
import type { Session } from "./agent/session.ts";
import { modelName } from "./app-binding.ts";
import type { ProjectReading } from "./app-project.ts";
import type { Config } from "./config.ts";
import { IPYTHON_TOOL } from "./tool/ipython.ts";

/** The parts that tell; absent when the run could not even be built. */
export interface InitParts {
  binding: ModelBinding;
  session: Session;
  reading: ProjectReading;
}

/** The facts that `system/init` sends beside its own. */
export function initFields(config: Config, parts?: InitParts): object {
  const skills = parts?.reading.skills.filter((skill) => !skill.hidden) ?? [];
  return {
    cwd: config.cwd,
    model: parts ? modelName(parts.binding) : (config.model.selector ?? null),
    tools: [IPYTHON_TOOL.name],
    skills: skills.map((skill) => skill.name),
    context_files: parts?.reading.contextFiles ?? [],
    session_file: parts?.session.path ?? null,
    resumed: parts?.session.entries.some((entry) => entry.type === "message") ?? false,
    limits: {
      timeout_ms: config.limits.timeoutMs ?? null,
      cell_timeout_ms: config.kernel.cellTimeoutMs ?? null,
      max_turns: config.limits.maxTurns ?? null,
      max_tokens: config.limits.maxTokens ?? null,
      max_budget_usd: config.limits.maxBudgetUsd ?? null,
      max_retries: config.limits.maxRetries,
    },
  };
}
