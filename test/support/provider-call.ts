/** Builds requests for providers and collects what their streams yield. */

import type {
  ApiKind,
  Model,
  ProviderEvent,
  ProviderFailure,
  ProviderRequest,
  ToolDefinition,
} from "../../src/providers/provider.ts";
import { providerFor } from "../../src/providers/registry.ts";
import { user } from "./transcript.ts";

/** The tool of every test. */
export const IPYTHON: ToolDefinition = {
  name: "ipython",
  description: "Runs a cell.",
  parameters: {
    type: "object",
    properties: { code: { type: "string" } },
    required: ["code"],
  },
};

/** The key of every test; no output may ever show it. */
export const TEST_KEY = "sk-test-0123456789abcdef";

/** A model that speaks `api` at `baseUrl`. */
export function testModel(api: ApiKind, baseUrl: string, more: Partial<Model> = {}): Model {
  return {
    provider: "tested",
    id: "test-model",
    name: "Test model",
    api,
    baseUrl,
    contextWindow: 100_000,
    maxTokens: 8_000,
    cost: { input: 1, output: 2, cacheRead: 0.1, cacheWrite: 1.25 },
    reasoning: true,
    input: ["text", "image"],
    ...more,
  };
}

/** A request with one user message. */
export function testRequest(model: Model, more: Partial<ProviderRequest> = {}): ProviderRequest {
  return {
    model,
    apiKey: TEST_KEY,
    systemPrompt: "Be brief.",
    messages: [user("Hello")],
    tools: [IPYTHON],
    maxRetries: 0,
    signal: new AbortController().signal,
    ...more,
  };
}

/** Everything that a call yields; `act` is called with each event before the next one is asked for. */
export async function collect(
  request: ProviderRequest,
  act: (event: ProviderEvent) => void = () => undefined,
): Promise<ProviderEvent[]> {
  const provider = await providerFor(request.model.api);
  const events: ProviderEvent[] = [];
  for await (const event of provider.stream(request)) {
    events.push(event);
    act(event);
  }
  return events;
}

/** The last event, which must be the only final one. */
export function finalEvent(events: readonly ProviderEvent[]) {
  const finals = events.filter((event) => event.type === "done" || event.type === "failed");
  const last = events.at(-1);
  if (finals.length !== 1 || finals[0] !== last || !last) {
    throw new Error(`expected one final event at the end: ${JSON.stringify(events)}`);
  }
  return last as Extract<ProviderEvent, { type: "done" | "failed" }>;
}

/** The failure that a call ended with. */
export function failureIn(events: readonly ProviderEvent[]): ProviderFailure {
  const last = finalEvent(events);
  if (last.type !== "failed") throw new Error(`the call did not fail: ${JSON.stringify(last)}`);
  return last.failure;
}

/** The message that a call ended with, whether it failed or not. */
export function messageIn(events: readonly ProviderEvent[]) {
  return finalEvent(events).message;
}

/** The deltas of one kind, joined. */
export function joined(events: readonly ProviderEvent[], type: "text_delta" | "thinking_delta") {
  return events.map((event) => (event.type === type ? event.text : "")).join("");
}
