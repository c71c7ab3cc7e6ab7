/** The models that can be asked, for people and scripts to list. */

import type { FoundModel } from "./agent/host-handlers.ts";
import { modelSources } from "./app-model.ts";
import type { Config } from "./config.ts";
import { debug } from "./log.ts";
import { probeLocalServers } from "./providers/local-servers.ts";
import { defaultModel, listModels, resolveModel, type ModelSources } from "./providers/models.ts";

const LOCAL_PROBE_MS = 500;

/** One model of the list. */
export interface AvailableModel {
  selector: string;
  name: string;
  /** Tokens. */
  contextWindow: number;
  /** Whether a key is there, or none is needed. */
  usable: boolean;
  /** Whether a run without `--model` takes it. */
  default: boolean;
}

/** Known models and those of local servers, usable ones first; `search` keeps those with all of its words. */
export async function availableModels(config: Config, search: string): Promise<AvailableModel[]> {
  const sources = modelSources(config);
  const preferred = defaultSelector(config, sources);
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  const local = await probeLocalServers(sources, AbortSignal.timeout(LOCAL_PROBE_MS));
  const locals = local
    .map(({ model }) => ({ selector: `${model.provider}/${model.id}`, model, usable: true }))
    .filter(({ selector }) => words.every((word) => selector.toLowerCase().includes(word)));
  return [...locals, ...listModels(search, sources)].map(({ selector, model, usable }) => ({
    selector,
    name: model.name,
    contextWindow: model.contextWindow,
    usable,
    default: selector === preferred,
  }));
}

/** The model of a run without `--model`; undefined when there is none, or the chosen one can't be used. */
function defaultSelector(config: Config, sources: ModelSources): string | undefined {
  const chosen = config.model.selector ?? config.settings.model;
  try {
    const found = chosen === undefined ? defaultModel(sources) : resolveModel(chosen, sources);
    return found && `${found.model.provider}/${found.model.id}`;
  } catch (error) {
    debug("models", "there is no default model", error);
    return undefined;
  }
}

/** The models that can be used now and contain all words of `query`, at most `limit`, as cells see them. */
export async function usableModels(
  config: Config,
  query: string,
  limit: number,
): Promise<FoundModel[]> {
  const models = await availableModels(config, query);
  return models
    .filter(({ usable }) => usable)
    .slice(0, limit)
    .map(({ selector, name }) => {
      const slash = selector.indexOf("/");
      return { provider: selector.slice(0, slash), id: selector.slice(slash + 1), name, selector };
    });
}
