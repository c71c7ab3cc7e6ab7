/** Makes a local provider the model of a home, as a person's own `models.json` would. */

import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { MODEL_ENV } from "./model-flags.ts";
import type { UserHome } from "./program.ts";
import type { ServedApi } from "./provider-formats.ts";
import type { ProviderServer } from "./provider-server.ts";

/** What every test model is; each field can be replaced. */
const MODEL = {
  id: "test",
  contextWindow: 200_000,
  maxTokens: 8_000,
  cost: { input: 1, output: 2, cacheRead: 0.5, cacheWrite: 4 },
  input: ["text", "image"],
  reasoning: true,
};

/** Writes a file into the program's folder of this home. */
export function writeOwnFile(user: UserHome, name: string, content: unknown): string {
  const path = join(user.home, ".prime/agent", name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

/**
 * Makes the server the provider `local` of this home with one model, `local/test`, and returns the
 * variables that choose it. `model` changes what the model can and costs.
 */
export function useServer(
  user: UserHome,
  server: ProviderServer,
  options: { api?: ServedApi; model?: object } = {},
): Record<string, string> {
  const api = options.api ?? "openai-completions";
  const models = [{ ...MODEL, ...options.model }];
  const local = { baseUrl: server.baseUrl(api), api, apiKey: "TEST_KEY", models };
  writeOwnFile(user, "models.json", { providers: { local } });
  return { ...MODEL_ENV, PRIME_AGENT_MODEL: "local/test" };
}
