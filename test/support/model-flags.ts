/** Flags and variables that point the program at a local provider. */

import type { ServedApi } from "./provider-formats.ts";
import type { ProviderServer } from "./provider-server.ts";

/** The variable that holds the key of {@link modelFlags}. */
export const MODEL_ENV = { TEST_KEY: "a-key-for-tests" };

/** `-m …` for a server that speaks `api`. */
export function modelFlags(
  server: ProviderServer,
  api: ServedApi = "openai-completions",
): string[] {
  return [
    "-m",
    "local/test",
    "--base-url",
    server.baseUrl(api),
    "--api",
    api,
    "--api-key-env",
    "TEST_KEY",
  ];
}
