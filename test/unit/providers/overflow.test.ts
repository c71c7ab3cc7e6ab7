import { describe, expect, test } from "bun:test";
import { isContextOverflow } from "../../../src/providers/overflow.ts";

/** What servers answer when a request does not fit. */
const OVERFLOWS: ReadonlyArray<readonly [string, number | undefined, string]> = [
  ["Anthropic", 400, "prompt is too long: 213462 tokens > 200000 maximum"],
  [
    "Anthropic, with the reply",
    400,
    "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
  ],
  [
    "OpenAI",
    400,
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
  ],
  ["OpenAI's code", 400, "context_length_exceeded invalid_request_error"],
  [
    "OpenAI's older text",
    400,
    "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
  ],
  [
    "Gemini",
    400,
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
  ],
  [
    "xAI",
    400,
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  ],
  ["Groq", 400, "Please reduce the length of the messages or completion."],
  [
    "OpenRouter",
    400,
    "This endpoint's maximum context length is 131072 tokens. However, you requested about 180000 tokens",
  ],
  [
    "Mistral",
    400,
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
  ],
  [
    "llama.cpp",
    400,
    "exceed_context_size_error the request exceeds the available context size, try increasing it",
  ],
  [
    "llama.cpp, older",
    500,
    "the request exceeds the available context size. try increasing the context size",
  ],
  [
    "LM Studio",
    400,
    "The number of tokens to keep from the initial prompt is greater than the context length",
  ],
  ["Ollama", 400, "prompt too long; exceeded max context length by 4 tokens"],
  [
    "vLLM",
    400,
    "The decoder prompt (length 9000) is longer than the maximum context length of 8192",
  ],
  ["MiniMax", 400, "invalid params, context window exceeds limit"],
  ["Moonshot", 400, "Invalid request: Your request exceeded model token limit: 262144"],
  ["Bedrock behind a gateway", 400, "Input is too long for requested model."],
  ["a stop reason", undefined, "model_context_window_exceeded"],
  ["413 without a text", 413, ""],
  [
    "413 that speaks of a limit per minute, which only a shorter request gets past",
    413,
    "Request too large on tokens per minute (TPM)",
  ],
];

const OTHERS: ReadonlyArray<readonly [string, number | undefined, string]> = [
  [
    "a rate limit in tokens",
    429,
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
  ],
  ["a rate limit whose text could be one", 429, "context_length_exceeded"],
  ["throttling", 400, "ThrottlingException: Too many tokens, please wait before trying again."],
  ["a quota", 400, "You exceeded your current quota; maximum context length is 9"],
  ["a key", 401, "prompt is too long"],
  ["a model that is not there", 404, "maximum context length is 8192"],
  [
    "a bad request",
    400,
    "max_tokens: 200000 > 128000, which is the maximum allowed number of output tokens",
  ],
  [
    "a server's prose",
    500,
    "The server had an error while processing your request. Sorry about that!",
  ],
  ["an overload", 529, "Overloaded"],
  ["a long field", 400, "messages.0.content: string too long"],
];

describe("an overflow", () => {
  test.each(OVERFLOWS)("is recognised in the words of %s", (_, status, text) => {
    expect(isContextOverflow(text, status)).toBe(true);
  });

  test.each(OTHERS)("is not seen in %s", (_, status, text) => {
    expect(isContextOverflow(text, status)).toBe(false);
  });
});
