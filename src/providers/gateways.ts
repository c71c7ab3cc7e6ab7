/**
 * Where servers that speak OpenAI's Chat Completions differ. The default suits
 * OpenAI's own documentation and local servers (llama.cpp, vLLM, Ollama, LM
 * Studio); an entry names only what must be different.
 */

import { nearestEffort, openAiEffort } from "./effort.ts";
import type { JsonObject } from "./json.ts";
import type { Effort, Model } from "./provider.ts";
import { exactIds, plainIds } from "./transcript.ts";
import type { IdRule } from "./transcript.ts";

/** How to write a request for one server. */
export interface Gateway {
  /** The field that limits the reply. */
  limitField: "max_tokens" | "max_completion_tokens";
  /** Whether the server wants to be asked for usage in the stream. */
  asksForUsage: boolean;
  idRule: IdRule;
  /** Whether the session's id may be sent as `prompt_cache_key`, which routes to the same cache. */
  cacheKey: boolean;
  /** Whether parts of the prompt must be marked to be cached, as Anthropic's models want it. */
  cacheMarkers: boolean;
  /** Whether thinking comes and goes as parts of the content. */
  thinkingParts: boolean;
  /** Whether each reply needs the field of its reasoning, even where another model left none. */
  alwaysReasoning: boolean;
  /** Whether a user message may not follow a tool result directly. */
  assistantAfterResult: boolean;
  /** The fields that set the effort of a model that can think. */
  effortFields(effort: Effort, modelId: string): JsonObject;
}

const DEFAULT: Gateway = {
  limitField: "max_tokens",
  asksForUsage: true,
  idRule: plainIds(40),
  cacheKey: false,
  cacheMarkers: false,
  thinkingParts: false,
  alwaysReasoning: false,
  assistantAfterResult: false,
  // "none" is not known everywhere, and leaving the field out is what "off" meant before it.
  effortFields: (effort) =>
    effort === "off" ? {} : { reasoning_effort: nearestEffort(effort, ["low", "medium", "high"]) },
};

/** What to change for the servers of a provider; the key is a part of the provider's name or of its host. */
const SPECIAL: ReadonlyArray<readonly [RegExp, (model: Model) => Partial<Gateway>]> = [
  [
    /openrouter/,
    (model) => ({
      cacheMarkers: model.id.startsWith("anthropic/"),
      effortFields: (effort) => ({
        reasoning: {
          effort: effort === "off" ? "none" : nearestEffort(effort, OPENROUTER_EFFORTS),
        },
      }),
    }),
  ],
  [
    /deepseek/,
    (model) => ({
      alwaysReasoning: model.reasoning,
      effortFields: (effort) =>
        effort === "off"
          ? { thinking: { type: "disabled" } }
          : {
              thinking: { type: "enabled" },
              // Its documentation takes "medium" for "high".
              reasoning_effort:
                effort === "medium" ? "high" : nearestEffort(effort, ["low", "high", "max"]),
            },
    }),
  ],
  [
    /mistral/,
    () => ({
      asksForUsage: false,
      cacheKey: true,
      idRule: exactIds(9),
      thinkingParts: true,
      assistantAfterResult: true,
      effortFields: (effort, id) =>
        /^mistral-(small|medium)/.test(id)
          ? { reasoning_effort: effort === "off" ? "none" : "high" }
          : {},
    }),
  ],
  [/\bx\.?ai\b/, () => ({ limitField: "max_completion_tokens", effortFields: xaiEffort })],
  [/groq|cerebras/, () => ({ limitField: "max_completion_tokens", effortFields: hostedEffort })],
  [
    /openai\.com|openai\.azure\.com/,
    () => ({
      limitField: "max_completion_tokens",
      cacheKey: true,
      effortFields: (effort, id) => ({ reasoning_effort: openAiEffort(id, effort) }),
    }),
  ],
];

const OPENROUTER_EFFORTS = ["minimal", "low", "medium", "high", "xhigh"] as const;

/** How to talk to the server of `model`. */
export function gatewayOf(model: Model): Gateway {
  const host = URL.canParse(model.baseUrl) ? new URL(model.baseUrl).host : "";
  const special = SPECIAL.find(([name]) => name.test(model.provider) || name.test(host));
  return { ...DEFAULT, ...special?.[1](model) };
}

function xaiEffort(effort: Effort, id: string): JsonObject {
  const version = Number(/^grok-(\d+(?:\.\d+)?)/.exec(id)?.[1] ?? 0);
  // Grok 4.20 came before 4.3, and like all before it has its effort in the model's name.
  if (version < 4.3 || /^grok-4\.20/.test(id)) return {};
  if (effort === "off") return version === 4.3 ? { reasoning_effort: "none" } : {};
  return { reasoning_effort: nearestEffort(effort, ["low", "medium", "high"]) };
}

function hostedEffort(effort: Effort, id: string): JsonObject {
  if (/gpt-oss/.test(id)) {
    return { reasoning_effort: nearestEffort(effort, ["low", "medium", "high"]) };
  }
  if (/qwen/.test(id)) return { reasoning_effort: effort === "off" ? "none" : "default" };
  return {};
}
