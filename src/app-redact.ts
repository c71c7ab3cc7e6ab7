/** Which values are secrets, and how they are kept out of what the program shows. */

import type { Config } from "./config.ts";

/** Shorter values are words rather than secrets. */
const MIN_SECRET_CHARS = 8;
/** Variables that hold credentials of providers, beside those of the table of providers. */
const CREDENTIAL_NAME = /(_API_KEY|_API_TOKEN|_AUTH_TOKEN)$/;

/** Takes secrets out of texts. */
export interface Redactor {
  /** Names of the variables that hold provider credentials. */
  variables: string[];
  redact(text: string): string;
  /** Keeps one more value out of what is shown; a short one, or none, changes nothing. */
  add(secret: string | undefined): void;
}

/** A redactor for the credentials in the environment and the key in use. */
export function createRedactor(config: Config, apiKey: string | undefined): Redactor {
  const { variables } = config.environment;
  const names = Object.keys(variables).filter(
    (name) => CREDENTIAL_NAME.test(name) || name === config.model.apiKeyEnv,
  );
  const secrets: string[] = [];
  const add = (secret: string | undefined) => {
    if (secret === undefined || secret.length < MIN_SECRET_CHARS) return;
    secrets.push(secret);
    // A secret that contains another one must go first.
    secrets.sort((a, b) => b.length - a.length);
  };
  for (const secret of [apiKey, ...names.map((name) => variables[name])]) add(secret);
  return {
    variables: names,
    add,
    redact: (text) =>
      secrets.reduce((shown, secret) => shown.replaceAll(secret, "[redacted]"), text),
  };
}
