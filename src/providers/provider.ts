/**
 * What a provider is: one request in, a stream of events out, the same for
 * every wire format. Nothing above this folder knows a provider's own format.
 *
 * A provider never throws: whatever goes wrong ends the stream as a `failed`
 * event, so that partial text, usage and the reason arrive together.
 */

import type { AssistantMessage, Message, ToolCallBlock } from "../message.ts";

/** A tool that the model may call. */
export interface ToolDefinition {
  name: string;
  description: string;
  /** JSON schema of the arguments; its top level is an object. */
  parameters: Record<string, unknown>;
}

/** How hard the model shall think, from not at all to as hard as it can; each provider maps it to what it has. */
export type Effort = "off" | "minimal" | "low" | "medium" | "high" | "xhigh" | "max";

/** Every {@link Effort}, weakest first. */
export const EFFORTS: readonly Effort[] = [
  "off",
  "minimal",
  "low",
  "medium",
  "high",
  "xhigh",
  "max",
];

/** The wire formats that we speak; `scripted` answers from a prepared list of replies. */
export type ApiKind =
  | "openai-completions"
  | "openai-responses"
  | "anthropic-messages"
  | "google-generative-ai"
  | "scripted";

/** Every {@link ApiKind}. */
export const API_KINDS: readonly ApiKind[] = [
  "openai-completions",
  "openai-responses",
  "anthropic-messages",
  "google-generative-ai",
  "scripted",
];

/** Prices in US dollars per million tokens. */
export interface ModelCost {
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
}

/** One model at one provider: everything a request needs to know about it but the key. */
export interface Model {
  /** The provider's name, as in the selector `PROVIDER/ID`. */
  provider: string;
  /** The provider's own id of the model, sent as it is. */
  id: string;
  name: string;
  api: ApiKind;
  /** Without a trailing slash; the version (`/v1`) belongs to it except for Anthropic. */
  baseUrl: string;
  /** Tokens of input and output together. */
  contextWindow: number;
  /** The most tokens that one reply can have. */
  maxTokens: number;
  /** `undefined` when nobody knows the price; a local model costs zero. */
  cost: ModelCost | undefined;
  /** Whether the model can think; {@link Effort} is ignored otherwise. */
  reasoning: boolean;
  input: Array<"text" | "image">;
  /** Sent with every request, over our own headers. */
  headers?: Record<string, string>;
}

/** TLS settings beyond the system's. */
export interface TlsOptions {
  /** PEM texts of the authorities to trust, instead of the built-in ones. */
  ca?: string[];
}

/** One call of the model. */
export interface ProviderRequest {
  model: Model;
  /** Leave it `undefined` for servers that want none (a local one). */
  apiKey: string | undefined;
  systemPrompt: string;
  /** The transcript as it is; the provider mends and translates it. */
  messages: readonly Message[];
  tools: readonly ToolDefinition[];
  /** The most tokens of this reply; the model's own limit when absent. */
  maxTokens?: number;
  /** The provider's default when absent. */
  effort?: Effort;
  /** Routes requests of one session to the same cache where the provider has such a hint. */
  sessionId?: string;
  /** How often a retryable failure is tried again; 0 means never. */
  maxRetries: number;
  /** Ends the request, a wait before a retry included, at once. */
  signal: AbortSignal;
  /** The longest silence on an open stream, comments counting as life; {@link DEFAULT_IDLE_TIMEOUT_MS} when absent. */
  idleTimeoutMs?: number;
  /** URL of the proxy; `false` connects directly; absent means Bun's own rules (`HTTPS_PROXY`, `NO_PROXY`). */
  proxy?: string | false;
  tls?: TlsOptions;
  /** Applied to every text of a failure, so that no secret is shown; the request's own key is always removed. */
  redact?: (text: string) => string;
}

/** The default of {@link ProviderRequest.idleTimeoutMs}. */
export const DEFAULT_IDLE_TIMEOUT_MS = 300_000;

/** What kind of failure it was, which decides exit codes and what can be done about it. */
export type FailureKind =
  | "auth"
  | "not_found"
  | "invalid_request"
  | "overflow"
  | "rate_limit"
  | "overloaded"
  | "server"
  | "network"
  | "timeout"
  | "protocol"
  | "content_filter"
  | "aborted";

/** Why a call failed. `kind` is `aborted` only when our own signal fired. */
export interface ProviderFailure {
  kind: FailureKind;
  /** One readable sentence with the provider's own words; bounded, without secrets. */
  message: string;
  httpStatus?: number;
  provider: string;
  /** Whether the same request could succeed later. It was retried already as often as allowed. */
  retryable: boolean;
  /** How long the provider asked to wait, in milliseconds. */
  retryAfterMs?: number;
  /** An `invalid_request` about an image in the transcript: without it, the request may pass. */
  imageRelated?: boolean;
}

/**
 * What a stream yields. Exactly one `done` or `failed` ends it. Deltas belong to
 * the reply as a whole; tool-call events carry the call's id. `retry` comes
 * before the wait; `restart` follows it when parts of the reply were already
 * delivered: the consumer drops them, since the reply starts over.
 */
export type ProviderEvent =
  | { type: "text_delta"; text: string }
  | { type: "thinking_delta"; text: string }
  | { type: "tool_call_start"; id: string; name: string }
  | { type: "tool_call_delta"; id: string; delta: string }
  | { type: "tool_call_end"; call: ToolCallBlock }
  | {
      type: "retry";
      /** From 1 to `maxRetries`. */
      attempt: number;
      maxRetries: number;
      delayMs: number;
      reason: string;
      httpStatus?: number;
    }
  | { type: "restart" }
  | {
      type: "done";
      message: AssistantMessage;
      /** From sending the request that succeeded to its first content. */
      ttftMs: number;
      /** From sending the request that succeeded to its end. */
      durationMs: number;
    }
  | {
      type: "failed";
      failure: ProviderFailure;
      /** What had arrived; `stopReason` is `error` or `aborted`. Its tool calls must not run. */
      message: AssistantMessage;
    };

/** Speaks one wire format. */
export interface Provider {
  readonly api: ApiKind;
  /** Makes one call, retries included. Never throws; leaving the loop early ends the request. */
  stream(request: ProviderRequest): AsyncIterable<ProviderEvent>;
}
