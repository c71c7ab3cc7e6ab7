/** Finds the provider of a wire format, and loads only that one: start-up time matters. */

import { ModelError } from "./errors.ts";
import type { ApiKind, Provider } from "./provider.ts";

/** The provider that speaks `api`. Throws {@link ModelError} for `scripted`, which needs a script. */
export async function providerFor(api: ApiKind): Promise<Provider> {
  switch (api) {
    case "openai-completions":
      return (await import("./openai-chat.ts")).openAiChat;
    case "openai-responses":
      return (await import("./openai-responses.ts")).openAiResponses;
    case "anthropic-messages":
      return (await import("./anthropic.ts")).anthropic;
    case "google-generative-ai":
      return (await import("./google.ts")).google;
    case "scripted":
      throw new ModelError("the scripted provider answers only from a script, as `demo` has one");
  }
}
