/** Finds the key of a provider, and refuses what can't be one before anything is sent. */

import { MissingKeyError } from "./errors.ts";
import { KNOWN_PROVIDERS, knownProvider } from "./model-table.ts";

/** Where keys come from. */
export interface KeySources {
  /** The environment; a variable that is set but empty, or to a variable's name, counts as unset. */
  env: Readonly<Record<string, string | undefined>>;
  /** Keys that were saved with `auth set`, by provider. */
  savedKeys?: Readonly<Record<string, string>>;
}

/** A key and where it was found, for `auth status`. The key itself is never shown. */
export interface FoundKey {
  key: string;
  /** Such as `ANTHROPIC_API_KEY` or `auth.json`. */
  source: string;
}

/** The environment variables that hold provider keys; cells don't get to see them. */
export function keyVariables(): string[] {
  return KNOWN_PROVIDERS.flatMap((provider) => provider.keyVariable ?? []);
}

/** The key that a variable of the environment holds. */
export function keyInVariable(name: string, sources: KeySources): FoundKey | undefined {
  const key = usable(sources.env[name]);
  return key === undefined ? undefined : { key, source: name };
}

/** The key of a provider: from its environment variable, else a saved one. */
export function findKey(provider: string, sources: KeySources): FoundKey | undefined {
  const variable = knownProvider(provider)?.keyVariable;
  const fromEnv = variable === undefined ? undefined : keyInVariable(variable, sources);
  if (fromEnv) return fromEnv;
  const saved = usable(sources.savedKeys?.[provider]);
  return saved === undefined ? undefined : { key: saved, source: "auth.json" };
}

/**
 * The key that a configured value stands for. `NAME_IN_CAPITALS`, `$NAME` and `${NAME}` are variables
 * of the environment, never keys themselves; a command (`!…`) is not run and gives none; anything
 * else is the key.
 */
export function readConfiguredKey(value: string, sources: KeySources): FoundKey | undefined {
  if (value.startsWith("!")) return undefined;
  const variable = configuredVariable(value);
  if (variable !== undefined) return keyInVariable(variable, sources);
  const key = usable(value);
  return key === undefined ? undefined : { key, source: "models.json" };
}

/** The variable that a configured key names, if it names one. */
export function configuredVariable(value: string): string | undefined {
  const marked = /^\$(?:\{(\w+)\}|(\w+))$/.exec(value.trim());
  if (marked) return marked[1] ?? marked[2];
  return /^[A-Z][A-Z0-9]*(_[A-Z0-9]+)+$/.test(value.trim()) ? value.trim() : undefined;
}

/** What is missing, and how to mend it. `place` is the variable, or what else ought to hold the key; `value` what it holds. */
export function missingKey(provider: string, place: string, value?: string): MissingKeyError {
  const state = value?.trim() ? `holds the name of a variable, not a key` : "is unset or empty";
  const message = `there is no key for ${provider}: ${place} ${state}`;
  const hint = `Set it, or run \`prime-agent auth set ${provider}\`.`;
  return new MissingKeyError(provider, message, hint);
}

/** Nothing was chosen, no key is there, and no local server answers. */
export function noCredential(): MissingKeyError {
  const message = "no model can be used: no provider has a key, and no local model server answers";
  const hint = `Set one of ${keyVariables().join(", ")}, run \`prime-agent auth set PROVIDER\`, or see \`prime-agent demo\`.`;
  return new MissingKeyError("", message, hint);
}

/** Throws {@link MissingKeyError} for a key that no HTTP header can carry. */
export function checkKey(provider: string, { key, source }: FoundKey): void {
  if (/^[\x21-\x7e]+$/.test(key)) return;
  const message = `the key for ${provider} in ${source} has spaces or other characters that no key has`;
  throw new MissingKeyError(
    provider,
    message,
    "Copy the key again, without quotes or line breaks.",
  );
}

/** A name in place of its value is what a shell or a file left that did not expand it. */
function usable(value: string | undefined): string | undefined {
  const key = value?.trim();
  return key && configuredVariable(key) === undefined ? key : undefined;
}
