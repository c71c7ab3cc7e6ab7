/** Which providers have a key, and where it comes from. Names only: no key leaves this file. */

import { modelSources } from "./app-model.ts";
import type { Config } from "./config.ts";
import { configuredVariable, findKey, readConfiguredKey } from "./providers/credentials.ts";
import { readCustomModels, type CustomProvider } from "./providers/custom-models.ts";
import { KNOWN_PROVIDERS } from "./providers/model-table.ts";

/** Variables that hold credentials, beside those that are configured by name. */
const CREDENTIAL_NAME = /(_API_KEY|_API_TOKEN|_AUTH_TOKEN)$/;

/** One provider's state. */
export interface CredentialState {
  provider: string;
  /** Such as `ANTHROPIC_API_KEY` or `auth.json`; null without a key. */
  source: string | null;
}

/** The state of every provider that wants a key, and of those in `models.json`. */
export function credentialStatus(config: Config): CredentialState[] {
  const sources = modelSources(config);
  const custom = customProviders(config);
  return providerNames(config).map((provider) => {
    const found =
      findKey(provider, sources) ?? readConfiguredKey(custom[provider]?.apiKey ?? "", sources);
    return { provider, source: found?.source ?? null };
  });
}

/** Whether a key can be saved for this provider. */
export function isKnownProvider(config: Config, provider: string): boolean {
  return providerNames(config).includes(provider);
}

/** Whether a key can be this text: one word of what headers can carry, and not the name of a variable. */
export function looksLikeKey(text: string): boolean {
  return /^[\x21-\x7e]+$/.test(text) && configuredVariable(text) === undefined;
}

/** The variables of the environment that hold provider credentials: by their name, by a flag, or by `models.json`. */
export function credentialVariables(config: Config): string[] {
  const configured = Object.values(customProviders(config)).map(({ apiKey = "" }) =>
    configuredVariable(apiKey),
  );
  return Object.keys(config.environment.variables).filter(
    (name) =>
      CREDENTIAL_NAME.test(name) || name === config.model.apiKeyEnv || configured.includes(name),
  );
}

function providerNames(config: Config): string[] {
  const known = KNOWN_PROVIDERS.filter(({ keyVariable }) => keyVariable).map(({ name }) => name);
  return [...new Set([...known, ...Object.keys(customProviders(config))])];
}

function customProviders(config: Config): Record<string, CustomProvider> {
  return readCustomModels(modelSources(config).customModels).providers;
}
