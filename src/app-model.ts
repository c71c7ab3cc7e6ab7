/** Chooses the model of a run and binds it to its provider. */

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { ModelBinding } from "./agent/loop.ts";
import { readSavedKeys } from "./auth-file.ts";
import { variable, type Config } from "./config.ts";
import { errorMessage, UsageError } from "./errors.ts";
import { noCredential } from "./providers/credentials.ts";
import {
  defaultModel,
  resolveModel,
  type ModelSources,
  type ResolvedModel,
} from "./providers/models.ts";
import { EFFORTS, type Effort, type TlsOptions } from "./providers/provider.ts";
import { providerFor } from "./providers/registry.ts";
import type { ScriptedReply } from "./providers/scripted.ts";

const LOCAL_PROBE_MS = 1_000;

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

/**
 * Binds the model that flags, environment, the session (`saved`, a selector) or the settings choose, else
 * the best one of the first credential found, else one of a local server.
 *
 * @throws ModelError, MissingKeyError; nothing was sent to a provider that needs a key.
 */
export async function bindModel(config: Config, saved?: string): Promise<ModelChoice> {
  const sources = modelSources(config);
  const selector = config.model.selector ?? saved ?? config.settings.model;
  const resolved =
    selector === undefined ? await chooseModel(sources) : resolveModel(selector, sources);
  return await bindResolved(config, resolved);
}

/** Binds another model for the rest of a session, as `/model` does. @throws ModelError, MissingKeyError. */
export async function rebindModel(config: Config, selector: string): Promise<ModelChoice> {
  return await bindResolved(config, resolveModel(selector, modelSources(config)));
}

/** What models and keys there are. */
export function modelSources(config: Config): ModelSources {
  const { environment, model, bare } = config;
  return {
    env: environment.variables,
    savedKeys: readSavedKeys(environment.home),
    // A model that is named may be one of the person's own.
    ...((!bare || model.selector !== undefined) && {
      customModels: readCustomModelsFile(environment.home),
    }),
    ...(model.baseUrl !== undefined && { baseUrl: model.baseUrl }),
    ...(model.api !== undefined && { api: model.api }),
    ...(model.apiKeyEnv !== undefined && { apiKeyEnv: model.apiKeyEnv }),
  };
}

async function chooseModel(sources: ModelSources): Promise<ResolvedModel> {
  const found = defaultModel(sources);
  if (found) return found;
  const { probeLocalServers } = await import("./providers/local-servers.ts");
  const [local] = await probeLocalServers(sources, AbortSignal.timeout(LOCAL_PROBE_MS));
  if (!local) throw noCredential();
  const { model, warnings } = local;
  const note = `no provider has a key; using the local server's ${model.provider}/${model.id}`;
  return { ...local, warnings: [...warnings, note] };
}

async function bindResolved(config: Config, resolved: ResolvedModel): Promise<ModelChoice> {
  const { model, apiKey } = resolved;
  if (config.offline && !isLoopback(model.baseUrl)) {
    throw new UsageError(`--offline: ${model.provider} at ${model.baseUrl} is not on this machine`);
  }
  const asked = config.model.effort;
  const level = asked ?? config.settings.effort;
  const effort = level === undefined ? undefined : parseEffort(level);
  const warnings = [...resolved.warnings];
  const name = `${model.provider}/${model.id}`;
  if (asked !== undefined && effort !== "off" && !model.reasoning)
    warnings.push(`--effort has no effect: ${name} is not known to think; models.json can say so`);
  if (config.limits.maxBudgetUsd !== undefined && model.cost === undefined)
    warnings.push(
      `--max-budget-usd can't be kept: the price of ${name} is unknown; models.json can say it`,
    );
  return {
    binding: {
      model,
      provider: await providerFor(model.api),
      apiKey,
      ...(effort && { effort }),
      request: requestOptions(config, model.baseUrl),
    },
    warnings,
  };
}

function requestOptions(config: Config, baseUrl: string): ModelBinding["request"] {
  const tls = baseUrl.startsWith("https:") ? tlsOptions(config) : undefined;
  return { maxRetries: config.limits.maxRetries, ...(tls && { tls }) };
}

/** A level of `--effort`. @throws UsageError naming the levels. */
export function parseEffort(text: string): Effort {
  const level = EFFORTS.find((effort) => effort === text.toLowerCase());
  if (level) return level;
  throw new UsageError(`--effort takes ${EFFORTS.join(", ")}, not "${text}"`);
}

/** The authorities of `SSL_CERT_FILE`, where it is set. @throws UsageError when it can't be read. */
function tlsOptions(config: Config): TlsOptions | undefined {
  const path = variable(config.environment, "SSL_CERT_FILE");
  if (path === undefined) return undefined;
  try {
    return { ca: [readFileSync(path, "utf8")] };
  } catch (error) {
    throw new UsageError(`SSL_CERT_FILE: ${path} can't be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

function readCustomModelsFile(home: string): unknown {
  const path = join(home, "models.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || code === "EACCES") return undefined;
    throw new UsageError(`${path} can't be read: ${errorMessage(error)}`, { cause: error });
  }
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new UsageError(`${path} is not valid JSON: ${errorMessage(error)}`, { cause: error });
  }
}

function isLoopback(url: string): boolean {
  const host = URL.parse(url)?.hostname ?? "";
  return host === "localhost" || host === "[::1]" || /^127\./.test(host);
}
