/** Which values are secrets, and how they are kept out of what the program shows. */

import { credentialVariables } from "./app-credentials.ts";
import type { Config } from "./config.ts";

/** Shorter values are words rather than secrets. */
const MIN_SECRET_CHARS = 8;

/** Takes secrets out of texts. */
export interface Redactor {
  /** Names of the variables that hold provider credentials. */
  variables: string[];
  redact(text: string): string;
  /** For text that comes in pieces: what can be shown, redacted, and the end that could begin a secret. */
  split(text: string): { shown: string; held: string };
  /** Keeps one more value out of what is shown; a short one, or none, changes nothing. */
  add(secret: string | undefined): void;
}

/** A redactor for the credentials in the environment and the key in use. @throws UsageError as reading `models.json` does. */
export function createRedactor(config: Config, apiKey: string | undefined): Redactor {
  const { variables } = config.environment;
  const names = credentialVariables(config);
  const secrets: string[] = [];
  const add = (secret: string | undefined) => {
    if (secret === undefined || secret.length < MIN_SECRET_CHARS) return;
    secrets.push(secret);
    // A secret that contains another one must go first.
    secrets.sort((a, b) => b.length - a.length);
  };
  for (const secret of [apiKey, ...names.map((name) => variables[name])]) add(secret);
  const redact = (text: string) =>
    secrets.reduce((shown, secret) => shown.replaceAll(secret, "[redacted]"), text);
  return {
    variables: names,
    add,
    redact,
    split(text) {
      const shown = redact(text);
      const held = Math.max(0, ...secrets.map((secret) => begunLength(shown, secret)));
      const end = shown.length - held;
      return { shown: shown.slice(0, end), held: shown.slice(end) };
    },
  };
}

/** How many characters at the end of `text` are the beginning of `secret`. */
function begunLength(text: string, secret: string): number {
  for (let length = Math.min(secret.length - 1, text.length); length > 0; length -= 1) {
    if (text.endsWith(secret.slice(0, length))) return length;
  }
  return 0;
}
