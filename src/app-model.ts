/** Chooses the model of a run and binds it to its provider. */

import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import type { ModelBinding } from "./agent/loop.ts";
import { variable, type Config } from "./config.ts";
import { errorMessage, UsageError } from "./errors.ts";
import type { ScriptedReply } from "./providers/scripted.ts";

/** A bound model with what the person should be told about the choice. */
export interface ModelChoice {
  binding: ModelBinding;
  warnings: string[];
}

/** Binds a scripted model: replies from a JSON file (`--script`), or the given ones (`demo`). */
export async function bindScript(replies: readonly ScriptedReply[]): Promise<ModelChoice> {
  const { SCRIPTED_MODEL, ScriptedProvider } = await import("./providers/scripted.ts");
  return {
    binding: {
      model: SCRIPTED_MODEL,
      provider: new ScriptedProvider(replies),
      apiKey: undefined,
      request: { maxRetries: 0 },
    },
    warnings: [],
  };
}

/** Reads a script of replies. @throws UsageError when it is not a JSON array. */
export function readScript(cwd: string, path: string): ScriptedReply[] {
  try {
    const replies: unknown = JSON.parse(readFileSync(resolve(cwd, path), "utf8"));
    if (Array.isArray(replies)) return replies as ScriptedReply[];
  } catch (error) {
    throw new UsageError(`the script ${path} can't be used: ${errorMessage(error)}`, {
      cause: error,
    });
  }
  throw new UsageError(`the script ${path} must hold a JSON array of replies`);
}

/** Binds the model that flags, environment and settings choose. @throws ModelError, AuthError. */
export async function bindModel(config: Config): Promise<ModelChoice> {
  const { providerFor } = await import("./providers/registry.ts");
  const [provider = "openai", ...rest] = (config.model.selector ?? "").split("/");
  const keyName = config.model.apiKeyEnv ?? "OPENAI_API_KEY";
  const baseUrl = config.model.baseUrl ?? variable(config.environment, "OPENAI_BASE_URL") ?? "";
  const apiKey = variable(config.environment, keyName);
  return {
    binding: {
      model: {
        provider,
        id: rest.join("/"),
        name: rest.join("/"),
        api: "openai-completions",
        baseUrl,
        contextWindow: 128_000,
        maxTokens: 16_000,
        cost: undefined,
        reasoning: false,
        input: ["text", "image"],
      },
      provider: await providerFor("openai-completions"),
      apiKey,
      request: { maxRetries: config.limits.maxRetries },
    },
    warnings: [],
  };
}
