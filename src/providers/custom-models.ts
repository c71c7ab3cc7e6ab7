/**
 * Reads the content of `models.json` in the user's folder: providers of their
 * own, and other addresses or models for known ones. What is wrong in it is
 * left out and told, so that one mistake doesn't stop everything.
 */

import { asNumber, asObject, asObjects, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { isHttpUrl } from "./address.ts";
import { API_KINDS } from "./provider.ts";
import type { ApiKind, ModelCost } from "./provider.ts";

/** A model as the user describes it; what is absent is taken from the table or assumed. */
export interface CustomModel {
  id: string;
  name?: string;
  contextWindow?: number;
  maxTokens?: number;
  cost?: ModelCost;
  reasoning?: boolean;
  input?: Array<"text" | "image">;
}

/** A provider as the user describes it. */
export interface CustomProvider {
  baseUrl?: string;
  api?: ApiKind;
  /** A key, or the name of the environment variable that holds it. */
  apiKey?: string;
  headers?: Record<string, string>;
  models: CustomModel[];
}

/** The providers of a `models.json`, and what could not be used of it. */
export interface CustomModels {
  providers: Record<string, CustomProvider>;
  warnings: string[];
}

/** Reads parsed JSON; anything at all is accepted. */
export function readCustomModels(json: unknown): CustomModels {
  const result: CustomModels = { providers: {}, warnings: [] };
  if (json === undefined) return result;
  const providers = asObject(asObject(json)?.["providers"]);
  if (!providers) {
    result.warnings.push('models.json: expected an object {"providers": {…}}');
    return result;
  }
  for (const [name, value] of Object.entries(providers)) {
    const provider = asObject(value);
    if (!provider) {
      result.warnings.push(`models.json: ${name} is not an object`);
      continue;
    }
    result.providers[name] = readProvider(name, provider, result.warnings);
  }
  return result;
}

function readProvider(name: string, json: JsonObject, warnings: string[]): CustomProvider {
  const api = asString(json["api"]);
  const known = API_KINDS.find((kind) => kind === api);
  if (api !== undefined && !known) {
    warnings.push(
      `models.json: ${name} has the unknown api "${api}" (known: ${API_KINDS.join(", ")})`,
    );
  }
  const models: CustomModel[] = [];
  for (const entry of asObjects(json["models"])) {
    const model = readModel(entry);
    if (model) models.push(model);
    else warnings.push(`models.json: a model of ${name} has no id`);
  }
  const baseUrl = asString(json["baseUrl"]);
  if (baseUrl !== undefined && !isHttpUrl(baseUrl)) {
    warnings.push(`models.json: the baseUrl of ${name} is no http(s) address`);
  }
  const apiKey = asString(json["apiKey"]);
  const headers = readHeaders(json["headers"]);
  return {
    models,
    ...(baseUrl && isHttpUrl(baseUrl) ? { baseUrl } : {}),
    ...(known ? { api: known } : {}),
    ...(apiKey ? { apiKey } : {}),
    ...(headers ? { headers } : {}),
  };
}

function readModel(json: JsonObject): CustomModel | undefined {
  const id = asString(json["id"]);
  if (!id) return undefined;
  const name = asString(json["name"]);
  const contextWindow = positive(json["contextWindow"]);
  const maxTokens = positive(json["maxTokens"]);
  const cost = readCost(json["cost"]);
  const input = Array.isArray(json["input"]) ? json["input"] : undefined;
  return {
    id,
    ...(name ? { name } : {}),
    ...(contextWindow ? { contextWindow } : {}),
    ...(maxTokens ? { maxTokens } : {}),
    ...(cost ? { cost } : {}),
    ...(typeof json["reasoning"] === "boolean" ? { reasoning: json["reasoning"] } : {}),
    ...(input ? { input: input.includes("image") ? ["text", "image"] : ["text"] } : {}),
  };
}

function readCost(value: unknown): ModelCost | undefined {
  const cost = asObject(value);
  if (!cost) return undefined;
  const price = (name: string) => Math.max(0, asNumber(cost[name]) ?? 0);
  return {
    input: price("input"),
    output: price("output"),
    cacheRead: price("cacheRead"),
    cacheWrite: price("cacheWrite"),
  };
}

function readHeaders(value: unknown): Record<string, string> | undefined {
  const headers = asObject(value);
  if (!headers) return undefined;
  return Object.fromEntries(
    Object.entries(headers).filter(
      (entry): entry is [string, string] => asString(entry[1]) !== undefined,
    ),
  );
}

function positive(value: unknown): number | undefined {
  const number = asNumber(value);
  return number !== undefined && number > 0 ? Math.floor(number) : undefined;
}
