/**
 * `auth.json` in the program's folder: saved provider keys,
 * `{"PROVIDER": {"type": "api_key", "key": "…"}}`, readable by its owner only.
 * Entries of other types, which other programs of the family write, are kept.
 */

import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { errorMessage, UsageError } from "./errors.ts";

type AuthEntries = Record<string, { type?: unknown; key?: unknown } | undefined>;

/** The saved keys by provider; empty without a file that we may read. @throws UsageError when the file is not a JSON object. */
export function readSavedKeys(home: string): Record<string, string> {
  const keys: Record<string, string> = {};
  for (const [provider, entry] of Object.entries(readEntries(home, [...MISSING, "EACCES"]))) {
    if (entry?.type === "api_key" && typeof entry.key === "string") keys[provider] = entry.key;
  }
  return keys;
}

/** Saves a provider's key, or removes it with `undefined`; true when something changed. @throws UsageError. */
export function saveKey(home: string, provider: string, key: string | undefined): boolean {
  const entries = readEntries(home, MISSING);
  if (key === undefined && !(provider in entries)) return false;
  if (key === undefined) delete entries[provider];
  else entries[provider] = { type: "api_key", key };
  const path = join(home, "auth.json");
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
    const stage = `${path}.${process.pid}`;
    writeFileSync(stage, `${JSON.stringify(entries, null, 2)}\n`, { mode: 0o600 });
    chmodSync(stage, 0o600);
    renameSync(stage, path);
  } catch (error) {
    throw new UsageError(`${path} can't be written: ${errorMessage(error)}`, { cause: error });
  }
  return true;
}

/** Errors that mean that there is no file. */
const MISSING = ["ENOENT", "ENOTDIR"];

/** `empty` holds the codes of errors that count as an empty file. */
function readEntries(home: string, empty: readonly string[]): AuthEntries {
  const path = join(home, "auth.json");
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if (empty.includes((error as NodeJS.ErrnoException).code ?? "")) return {};
    throw new UsageError(`${path} can't be read: ${errorMessage(error)}`, { cause: error });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value))
      return value as AuthEntries;
  } catch (error) {
    throw new UsageError(`${path} is not valid JSON: ${errorMessage(error)}`, { cause: error });
  }
  throw new UsageError(`${path} must hold a JSON object`);
}
