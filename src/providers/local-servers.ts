/** Looks for model servers on this machine, for somebody who has no credential at all. */

import { debug } from "../log.ts";
import { asNumber, asObject, asObjects, asString } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { isLoopback } from "./address.ts";
import { KNOWN_PROVIDERS } from "./model-table.ts";
import type { KnownProvider } from "./model-table.ts";
import { resolveModel } from "./models.ts";
import type { ModelSources, ResolvedModel } from "./models.ts";

/** A server that does not answer within this time is not there. */
const PROBE_TIMEOUT_MS = 500;

/**
 * The models of the servers that answer on the usual ports (Ollama, LM Studio, llama.cpp), in that
 * order; empty when there are none. Never throws.
 */
export async function probeLocalServers(
  sources: ModelSources,
  signal: AbortSignal,
  servers: readonly KnownProvider[] = KNOWN_PROVIDERS.filter(({ baseUrl }) => isLoopback(baseUrl)),
): Promise<ResolvedModel[]> {
  const lists = await Promise.all(servers.map((server) => listServer(server, signal)));
  return servers.flatMap((server, index) =>
    (lists[index] ?? []).map((entry) => toModel(server, entry, sources)),
  );
}

async function listServer(server: KnownProvider, signal: AbortSignal): Promise<JsonObject[]> {
  try {
    const response = await fetch(`${server.baseUrl}/models`, {
      signal: AbortSignal.any([signal, AbortSignal.timeout(PROBE_TIMEOUT_MS)]),
      redirect: "error",
      proxy: false,
    });
    const list = asObject(await response.json())?.["data"];
    return response.ok ? asObjects(list).filter((entry) => asString(entry["id"])) : [];
  } catch (error) {
    debug("providers", `no ${server.name} at ${server.baseUrl}`, error);
    return [];
  }
}

function toModel(server: KnownProvider, entry: JsonObject, sources: ModelSources): ResolvedModel {
  const selector = `${server.name}/${String(entry["id"])}`;
  const resolved = resolveModel(selector, { ...sources, baseUrl: server.baseUrl });
  const window =
    asNumber(entry["loaded_context_length"]) ??
    asNumber(entry["max_model_len"]) ??
    asNumber(asObject(entry["meta"])?.["n_ctx"]);
  if (window === undefined || window <= 0) return resolved;
  const maxTokens = Math.min(resolved.model.maxTokens, window);
  return {
    ...resolved,
    model: { ...resolved.model, contextWindow: window, maxTokens },
    warnings: [],
  };
}
