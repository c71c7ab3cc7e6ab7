/** What is known about providers and their models without asking anybody. The data is in `models.json`. */

import table from "./models.json";
import type { ApiKind, Model } from "./provider.ts";

/** A provider that is known by name. */
export interface KnownProvider {
  name: string;
  baseUrl: string;
  api: ApiKind;
  /** The environment variable with its key; absent for local servers, which want none. */
  keyVariable?: string;
  /** The environment variable that moves it to another address. */
  baseUrlVariable?: string;
  /** The id of the model to take when nothing else is said. */
  bestModel?: string;
}

/** Known providers in the order in which their credentials are looked for. */
export const KNOWN_PROVIDERS: readonly KnownProvider[] = [
  {
    ...listed("anthropic"),
    keyVariable: "ANTHROPIC_API_KEY",
    baseUrlVariable: "ANTHROPIC_BASE_URL",
    bestModel: "claude-opus-5",
  },
  {
    ...listed("openai"),
    keyVariable: "OPENAI_API_KEY",
    baseUrlVariable: "OPENAI_BASE_URL",
    bestModel: "gpt-5.6",
  },
  { ...listed("google"), keyVariable: "GEMINI_API_KEY", bestModel: "gemini-3.1-pro-preview" },
  {
    name: "openrouter",
    baseUrl: "https://openrouter.ai/api/v1",
    api: "openai-completions",
    keyVariable: "OPENROUTER_API_KEY",
    bestModel: "anthropic/claude-opus-5",
  },
  { ...listed("prime-inference"), keyVariable: "PRIME_API_KEY", bestModel: "z-ai/glm-5.3" },
  { ...listed("groq"), keyVariable: "GROQ_API_KEY", bestModel: "openai/gpt-oss-120b" },
  { ...listed("deepseek"), keyVariable: "DEEPSEEK_API_KEY", bestModel: "deepseek-v4-pro" },
  { ...listed("xai"), keyVariable: "XAI_API_KEY", bestModel: "grok-4.6" },
  { ...listed("mistral"), keyVariable: "MISTRAL_API_KEY", bestModel: "mistral-medium-latest" },
  { ...listed("cerebras"), keyVariable: "CEREBRAS_API_KEY", bestModel: "gpt-oss-120b" },
  { name: "ollama", baseUrl: "http://127.0.0.1:11434/v1", api: "openai-completions" },
  { name: "lmstudio", baseUrl: "http://127.0.0.1:1234/v1", api: "openai-completions" },
  { name: "llamacpp", baseUrl: "http://127.0.0.1:8080/v1", api: "openai-completions" },
];

/** The provider of that name. */
export function knownProvider(name: string): KnownProvider | undefined {
  return KNOWN_PROVIDERS.find((provider) => provider.name === name);
}

/** The models that the table lists for a provider; none if it lists nothing. */
export function listedModels(provider: string): Model[] {
  const entry = rows()[provider];
  if (!entry) return [];
  return entry.models.map((row) => modelOfRow(provider, entry, row));
}

/** The same model elsewhere: its size and abilities hold on any gateway, its price does not. */
export function sameModelElsewhere(id: string): Model | undefined {
  const plain = normalize(id);
  for (const provider of Object.keys(rows())) {
    const same = listedModels(provider).find((model) => normalize(model.id) === plain);
    if (same) return same;
  }
  return undefined;
}

/** Gateways put the maker before the id and write versions with points. */
function normalize(id: string): string {
  return id.toLowerCase().replace(/^.*\//, "").replace(/:.*$/, "").replaceAll(".", "-");
}

/** id, name, context window, longest reply, prices, abilities: `r` reasons, `i` sees images. */
type Row = [string, string, number, number, [number, number, number, number], string];

interface ProviderRows {
  baseUrl: string;
  api: ApiKind;
  models: Row[];
}

function rows(): Record<string, ProviderRows> {
  return table as unknown as Record<string, ProviderRows>;
}

function listed(name: string): Pick<KnownProvider, "name" | "baseUrl" | "api"> {
  const entry = rows()[name];
  if (!entry) throw new Error(`models.json lists no provider ${name}`);
  return { name, baseUrl: entry.baseUrl, api: entry.api };
}

function modelOfRow(provider: string, entry: ProviderRows, row: Row): Model {
  const [id, name, contextWindow, maxTokens, prices, abilities] = row;
  const [input, output, cacheRead, cacheWrite] = prices;
  return {
    provider,
    id,
    name,
    api: entry.api,
    baseUrl: entry.baseUrl,
    contextWindow,
    maxTokens,
    cost: { input, output, cacheRead, cacheWrite },
    reasoning: abilities.includes("r"),
    input: abilities.includes("i") ? ["text", "image"] : ["text"],
  };
}
