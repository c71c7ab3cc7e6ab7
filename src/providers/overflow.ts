/**
 * Recognises that a request did not fit the model's context window, in the
 * words of each provider, so that the caller compacts instead of giving up.
 * Rate limits speak of tokens too and must never be taken for an overflow.
 */

const OVERFLOW_TEXTS: readonly RegExp[] = [
  /context[_ ]length[_ ]exceeded/i, // OpenAI's code, and many that follow it
  /exceed_context_size_error/i, // llama.cpp's code
  /model_context_window_exceeded/i, // Anthropic and Z.ai, as a stop reason
  /prompt is too long/i, // Anthropic
  /exceeds? (?:the )?(?:model'?s? )?context (?:limit|window|length|size)/i, // Anthropic, OpenAI
  /exceeds? the available context size/i, // llama.cpp
  /context window exceeds limit/i, // MiniMax
  /maximum context length (?:is|of) \d/i, // OpenAI, OpenRouter, DeepSeek, vLLM
  /\d+ maximum context length/i, // Mistral
  /exceeded (?:the )?(?:max(?:imum)? )?context length/i, // Ollama
  /(?:greater|longer) than the (?:model'?s )?(?:maximum )?context length/i, // LM Studio, vLLM
  /input token count.{0,40} exceeds the maximum/i, // Gemini
  /maximum (?:prompt|input) length is \d/i, // xAI
  /exceeded model token limit/i, // Moonshot
  /reduce the length of the messages/i, // Groq, OpenAI
  /input is too long for (?:the )?requested model/i, // Bedrock behind a gateway
  /prompt token count .{0,40} exceeds the limit/i, // Copilot-style gateways
];

const RATE_LIMIT_TEXT =
  /rate.?limit|too many requests|throttl|per[ _-]?minute|\bTPM\b|\bRPM\b|quota|please wait|try again (?:later|in)/i;

/**
 * Whether an error text (with its codes) speaks of a context overflow. `status` is the HTTP
 * status if there is one: 413 always is one, 401, 403, 404 and 429 never.
 */
export function isContextOverflow(text: string, status?: number): boolean {
  if (status === 413) return true;
  if (status === 401 || status === 403 || status === 404 || status === 429) return false;
  if (RATE_LIMIT_TEXT.test(text)) return false;
  return OVERFLOW_TEXTS.some((pattern) => pattern.test(text));
}
