/** One request to the model: streams its reply as events and returns how it ended. */

import type { AssistantMessage } from "../message.ts";
import type {
  Provider,
  ProviderEvent,
  ProviderFailure,
  ProviderRequest,
} from "../providers/provider.ts";
import type { EventSink } from "./events.ts";

/** A finished reply, or the failure that ended it with what had arrived. */
export interface Reply {
  message: AssistantMessage;
  failure?: ProviderFailure;
  ttftMs?: number;
  durationMs: number;
}

/** Makes one request and forwards its stream. Never throws. */
export async function requestReply(
  provider: Provider,
  request: ProviderRequest,
  emit: EventSink,
): Promise<Reply> {
  const started = performance.now();
  const names = new Map<string, string>();
  for await (const event of provider.stream(request)) {
    if (event.type === "done") {
      return { message: event.message, ttftMs: event.ttftMs, durationMs: event.durationMs };
    }
    if (event.type === "failed") {
      return {
        message: event.message,
        failure: event.failure,
        durationMs: performance.now() - started,
      };
    }
    forward(event, names, emit);
  }
  // A provider that breaks its contract must not look like an empty answer.
  throw new Error(`the provider ${provider.api} ended its stream without a result`);
}

function forward(
  event: Exclude<ProviderEvent, { type: "done" | "failed" }>,
  names: Map<string, string>,
  emit: EventSink,
): void {
  switch (event.type) {
    case "restart":
      emit({ type: "reply_restart" });
      return;
    case "tool_call_start":
      names.set(event.id, event.name);
      return;
    case "tool_call_delta":
      emit({
        type: "tool_call_delta",
        id: event.id,
        name: names.get(event.id) ?? "",
        delta: event.delta,
      });
      return;
    case "tool_call_end":
      return;
    default:
      emit(event);
  }
}
