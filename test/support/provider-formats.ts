/** Writes a scripted reply as the stream of each provider's wire format, as their documentation shows it. */

import { anthropicStream } from "./format-anthropic.ts";
import { chatStream } from "./format-chat.ts";
import { googleStream } from "./format-google.ts";
import { responsesStream } from "./format-responses.ts";
import type { ServedContent } from "./served-content.ts";

/** The wire formats that the scripted server speaks. */
export type ServedApi =
  "openai-completions" | "openai-responses" | "anthropic-messages" | "google-generative-ai";

/** Every {@link ServedApi}, for tests that are tables over them. */
export const SERVED_APIS: readonly ServedApi[] = [
  "openai-completions",
  "openai-responses",
  "anthropic-messages",
  "google-generative-ai",
];

/** The events of a reply as server-sent events, each ending with a blank line. */
export function streamOf(api: ServedApi, content: ServedContent, model = "test-model"): string[] {
  switch (api) {
    case "openai-completions":
      return chatStream(content, model);
    case "openai-responses":
      return responsesStream(content, model);
    case "anthropic-messages":
      return anthropicStream(content, model);
    case "google-generative-ai":
      return googleStream(content, model);
  }
}

/** An error body as the provider writes it. */
export function errorBody(
  api: ServedApi,
  status: number,
  error: { type: string; message: string },
): string {
  switch (api) {
    case "anthropic-messages":
      return JSON.stringify({ type: "error", error, request_id: "req_1" });
    case "google-generative-ai":
      return JSON.stringify({
        error: { code: status, message: error.message, status: error.type, details: [] },
      });
    default:
      return JSON.stringify({ error: { ...error, param: null, code: error.type } });
  }
}
