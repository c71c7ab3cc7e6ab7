/** Chooses the model: from a selector `PROVIDER/ID` or from the credentials that are there, with everything a request needs. */

import { nearest } from "../nearest.ts";
import {
  checkKey,
  configuredVariable,
  findKey,
  keyInVariable,
  missingKey,
  readConfiguredKey,
} from "./credentials.ts";
import type { FoundKey, KeySources } from "./credentials.ts";
import { readCustomModels } from "./custom-models.ts";
import type { CustomModels } from "./custom-models.ts";
import { ModelError } from "./errors.ts";
import { describeModel, modelIds } from "./model-facts.ts";
import type { Place } from "./model-facts.ts";
import { isHttpUrl } from "./address.ts";
import { KNOWN_PROVIDERS, knownProvider } from "./model-table.ts";
import { API_KINDS } from "./provider.ts";
import type { ApiKind, Model } from "./provider.ts";

/** What models and keys there are, from flags, environment and files. */
export interface ModelSources extends KeySources {
  /** The parsed content of the user's `models.json`. */
  customModels?: unknown;
  /** `--base-url`: the address of the chosen model's provider. */
  baseUrl?: string;
  /** `--api`: the wire format of the chosen model. */
  api?: string;
  /** `--api-key-env`: the variable that holds the key. */
  apiKeyEnv?: string;
}

/** A model that can be asked now. */
export interface ResolvedModel {
  model: Model;
  /** Absent for servers that want none. */
  apiKey?: string;
  /** What had to be assumed; to be shown once. */
  warnings: string[];
}

/** A model as `models` lists it. */
export interface ListedModel {
  selector: string;
  model: Model;
  /** Whether a key for it is there, or none is needed. */
  usable: boolean;
}

const MAX_SUGGESTIONS = 3;

/** The parts of `PROVIDER/ID`; ids may hold slashes. Without a slash the provider is undefined. */
export function parseModelSelector(selector: string): { provider: string | undefined; id: string } {
  const trimmed = selector.trim();
  const slash = trimmed.indexOf("/");
  if (slash < 0) return { provider: undefined, id: trimmed };
  return { provider: trimmed.slice(0, slash), id: trimmed.slice(slash + 1) };
}

/**
 * The model that `selector` names, with its key. Throws {@link ModelError} when there is no such
 * provider or model, and `MissingKeyError` when the key is missing. Sends nothing.
 */
export function resolveModel(selector: string, sources: ModelSources): ResolvedModel {
  const custom = readCustomModels(sources.customModels);
  const { provider, id } = identify(selector, sources, custom);
  const place = locate(provider, sources, custom);
  const { model, warnings } = describeModel(provider, id, place, custom);
  const key = keyOf(provider, sources, place);
  return {
    model,
    ...(key ? { apiKey: key.key } : {}),
    warnings: [...custom.warnings, ...warnings],
  };
}

/** The best model of the first credential found, in the order of {@link KNOWN_PROVIDERS}, then of `models.json`. */
export function defaultModel(sources: ModelSources): ResolvedModel | undefined {
  const custom = readCustomModels(sources.customModels);
  for (const { name, bestModel } of KNOWN_PROVIDERS) {
    const configured = custom.providers[name]?.apiKey;
    const key =
      findKey(name, sources) ?? (configured ? readConfiguredKey(configured, sources) : undefined);
    if (key && bestModel) return resolveModel(`${name}/${bestModel}`, sources);
  }
  for (const [name, provider] of Object.entries(custom.providers)) {
    const [first] = provider.models;
    const ready = !provider.apiKey || readConfiguredKey(provider.apiKey, sources);
    if (first && ready && provider.baseUrl) return resolveModel(`${name}/${first.id}`, sources);
  }
  return undefined;
}

/** Every model that is known, those of usable providers first; `search` keeps those that contain each of its words. */
export function listModels(search: string, sources: ModelSources): ListedModel[] {
  const custom = readCustomModels(sources.customModels);
  const names = new Set([
    ...Object.keys(custom.providers),
    ...KNOWN_PROVIDERS.map((provider) => provider.name),
  ]);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const found: ListedModel[] = [];
  for (const name of names) {
    if (!knownProvider(name) && !custom.providers[name]?.baseUrl) continue;
    const place = locate(name, sources, custom);
    const usable = isUsable(name, sources, place);
    for (const id of modelIds(name, custom)) {
      const { model } = describeModel(name, id, place, custom);
      const selector = `${name}/${id}`;
      const text = `${selector} ${model.name}`.toLowerCase();
      if (words.every((word) => text.includes(word))) found.push({ selector, model, usable });
    }
  }
  return found.sort((a, b) => Number(b.usable) - Number(a.usable));
}

/** Which provider and which id a selector means. */
function identify(
  selector: string,
  sources: ModelSources,
  custom: CustomModels,
): { provider: string; id: string } {
  const parsed = parseModelSelector(selector);
  if (parsed.id === "") throw new ModelError("the name of the model is empty");
  const { provider } = parsed;
  if (provider !== undefined && (knownProvider(provider) || custom.providers[provider])) {
    return { provider, id: parsed.id };
  }
  // With an address of its own, a provider needs no more than a name.
  if (sources.baseUrl) return { provider: provider ?? "custom", id: parsed.id };
  const owner = ownerOf(selector.trim(), sources, custom);
  if (owner) return { provider: owner, id: selector.trim() };
  throw new ModelError(
    provider === undefined
      ? `no provider lists a model "${selector}"`
      : `there is no provider "${provider}"`,
    { hint: suggestion(selector, custom) },
  );
}

/** The provider that lists a bare id; one with a key goes first. */
function ownerOf(id: string, sources: ModelSources, custom: CustomModels): string | undefined {
  const names = [...Object.keys(custom.providers), ...KNOWN_PROVIDERS.map(({ name }) => name)];
  const owners = names.filter((name) => modelIds(name, custom).includes(id));
  return owners.find((name) => isUsable(name, sources, locate(name, sources, custom))) ?? owners[0];
}

/** Selectors that contain what was typed come first, then those that look like it. */
function suggestion(selector: string, custom: CustomModels): string {
  const { provider, id } = parseModelSelector(selector);
  const names = [...Object.keys(custom.providers), ...KNOWN_PROVIDERS.map(({ name }) => name)];
  const known = names.flatMap((name) =>
    modelIds(name, custom).map((model) => ({ id: model, selector: `${name}/${model}` })),
  );
  const selectors = known.map((model) => model.selector);
  const typed = selector.trim().toLowerCase();
  const containing = selectors.filter((candidate) => candidate.toLowerCase().includes(typed));
  const alike =
    provider === undefined
      ? nearest(id, [...new Set(known.map((model) => model.id))]).flatMap((near) =>
          known.filter((model) => model.id === near).map((model) => model.selector),
        )
      : [...nearest(selector, selectors), ...nearest(provider, names)];
  const best = (containing.length > 0 ? containing : alike).slice(0, MAX_SUGGESTIONS);
  const list = "`prime-agent models` lists what there is.";
  return best.length === 0 ? list : `Did you mean ${best.join(" or ")}? ${list}`;
}

function locate(provider: string, sources: ModelSources, custom: CustomModels): Place {
  const known = knownProvider(provider);
  const own = custom.providers[provider];
  const fromEnv = known?.baseUrlVariable && sources.env[known.baseUrlVariable]?.trim();
  const baseUrl = sources.baseUrl || fromEnv || own?.baseUrl || known?.baseUrl;
  if (!baseUrl) {
    throw new ModelError(`the provider ${provider} in models.json has no baseUrl`);
  }
  return {
    baseUrl: checkUrl(provider, baseUrl),
    api: readApi(sources.api) ?? own?.api,
    moved: known !== undefined && baseUrl !== known.baseUrl,
    custom: own,
  };
}

function checkUrl(provider: string, baseUrl: string): string {
  const url = baseUrl.trim().replace(/\/+$/, "");
  if (isHttpUrl(url)) return url;
  throw new ModelError(`the base URL of ${provider} is "${baseUrl}", which is no http(s) address`);
}

function readApi(api: string | undefined): ApiKind | undefined {
  if (api === undefined) return undefined;
  const kind = API_KINDS.find((candidate) => candidate === api);
  if (kind) return kind;
  throw new ModelError(`--api takes ${API_KINDS.join(", ")}, not "${api}"`, {
    hint: `Did you mean ${nearest(api, API_KINDS, 1)[0] ?? API_KINDS[0]}?`,
  });
}

/** The key for a provider. Throws `MissingKeyError` if it needs one and has none. */
function keyOf(provider: string, sources: ModelSources, place: Place): FoundKey | undefined {
  const found = lookUpKey(provider, sources, place);
  if (found) {
    checkKey(provider, found);
    return found;
  }
  const variable = keyVariable(provider, sources, place);
  if (variable !== undefined) throw missingKey(provider, variable, sources.env[variable]);
  return undefined;
}

function lookUpKey(provider: string, sources: ModelSources, place: Place): FoundKey | undefined {
  if (sources.apiKeyEnv !== undefined) {
    return keyInVariable(sources.apiKeyEnv, sources);
  }
  const found = findKey(provider, sources);
  if (found) return found;
  const configured = place.custom?.apiKey;
  return configured === undefined ? undefined : readConfiguredKey(configured, sources);
}

/** The variable that ought to hold the key; undefined for a provider that needs none. */
function keyVariable(provider: string, sources: ModelSources, place: Place): string | undefined {
  if (sources.apiKeyEnv !== undefined) return sources.apiKeyEnv;
  const configured = place.custom?.apiKey;
  if (configured !== undefined) return configuredVariable(configured) ?? "apiKey in models.json";
  return knownProvider(provider)?.keyVariable;
}

function isUsable(provider: string, sources: ModelSources, place: Place): boolean {
  const keyless = keyVariable(provider, sources, place) === undefined;
  return keyless || lookUpKey(provider, sources, place) !== undefined;
}
