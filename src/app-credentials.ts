/** Which providers have a key, and where it comes from. Names only: no key leaves this file. */

import { modelSources } from "./app-model.ts";
import type { Config } from "./config.ts";
import { findKey } from "./providers/credentials.ts";
import { readCustomModels } from "./providers/custom-models.ts";
import { KNOWN_PROVIDERS } from "./providers/model-table.ts";

/** One provider's state. */
export interface CredentialState {
  provider: string;
  /** Such as `ANTHROPIC_API_KEY` or `auth.json`; null without a key. */
  source: string | null;
}

/** The state of every provider that wants a key, and of those in `models.json`. */
export function credentialStatus(config: Config): CredentialState[] {
  const sources = modelSources(config);
  return providerNames(config).map((provider) => ({
    provider,
    source: findKey(provider, sources)?.source ?? null,
  }));
}

/** Whether a key can be saved for this provider. */
export function isKnownProvider(config: Config, provider: string): boolean {
  return providerNames(config).includes(provider);
}

function providerNames(config: Config): string[] {
  const known = KNOWN_PROVIDERS.filter(({ keyVariable }) => keyVariable).map(({ name }) => name);
  const custom = Object.keys(readCustomModels(modelSources(config).customModels).providers);
  return [...new Set([...known, ...custom])];
}
