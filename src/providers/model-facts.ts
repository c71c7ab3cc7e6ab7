/** Says what a model is like: what the user and the table know, and careful assumptions for the rest. */

import { nearest } from "../nearest.ts";
import type { CustomModel, CustomModels, CustomProvider } from "./custom-models.ts";
import { isLoopback } from "./address.ts";
import { knownProvider, listedModels, sameModelElsewhere } from "./model-table.ts";
import type { ApiKind, Model } from "./provider.ts";

/** Assumed of a model that nobody described: small enough to be true of most. */
const UNKNOWN_CONTEXT_WINDOW = 128_000;
/** Local servers cut what exceeds the window that they were started with, which is often small. */
const LOCAL_CONTEXT_WINDOW = 32_768;
const UNKNOWN_MAX_TOKENS = 8_192;

/** Where a provider is, and how it speaks. */
export interface Place {
  baseUrl: string;
  /** The format that was asked for or configured; otherwise it depends on the model. */
  api: ApiKind | undefined;
  moved: boolean;
  custom: CustomProvider | undefined;
}

/**
 * The facts of a model: from the user's `models.json`, the table, the same model elsewhere, or
 * assumed; the warning says what was assumed.
 */
export function describeModel(
  provider: string,
  id: string,
  place: Place,
  custom: CustomModels,
): { model: Model; warnings: string[] } {
  const own = place.custom?.models.find((model) => model.id === id);
  const listed = listedModels(provider).find((model) => model.id === id);
  const facts = listed ?? borrow(id, place) ?? assume(id, place);
  const model: Model = {
    ...facts,
    ...(own ? overrides(own) : {}),
    provider,
    id,
    api: place.api ?? listed?.api ?? foreignApi(provider, place),
    baseUrl: place.baseUrl,
    ...(place.custom?.headers ? { headers: place.custom.headers } : {}),
  };
  model.maxTokens = Math.min(model.maxTokens, model.contextWindow);
  const known = listed !== undefined || own?.contextWindow !== undefined;
  return { model, warnings: known ? [] : [assumption(model, custom)] };
}

/** A server that took a provider's place, and what we know nothing of, speak the common format. */
function foreignApi(provider: string, place: Place): ApiKind {
  const known = knownProvider(provider);
  if (!known || (provider === "openai" && place.moved)) return "openai-completions";
  return known.api;
}

function overrides(own: CustomModel): Partial<Model> {
  const { id: _, ...facts } = own;
  return facts;
}

function borrow(id: string, place: Place): Model | undefined {
  const same = isLoopback(place.baseUrl) ? undefined : sameModelElsewhere(id);
  return same && { ...same, cost: undefined };
}

function assume(id: string, place: Place): Model {
  const local = isLoopback(place.baseUrl);
  return {
    provider: "",
    id,
    name: id,
    api: "openai-completions",
    baseUrl: place.baseUrl,
    contextWindow: local ? LOCAL_CONTEXT_WINDOW : UNKNOWN_CONTEXT_WINDOW,
    maxTokens: UNKNOWN_MAX_TOKENS,
    cost: local ? { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } : undefined,
    reasoning: false,
    input: ["text"],
  };
}

function assumption(model: Model, custom: CustomModels): string {
  const [near] = nearest(model.id, modelIds(model.provider, custom), 1);
  const size = `${model.contextWindow} tokens of context and ${model.maxTokens} of reply`;
  const meant = near === undefined ? "" : ` (the nearest that is known: ${near})`;
  return `${model.provider}/${model.id} is not a known model${meant}: assuming ${size}; models.json can say otherwise`;
}

/** The ids that a provider is known to have: the user's own first. */
export function modelIds(provider: string, custom: CustomModels): string[] {
  const own = custom.providers[provider]?.models.map((model) => model.id) ?? [];
  return [...new Set([...own, ...listedModels(provider).map((model) => model.id)])];
}
