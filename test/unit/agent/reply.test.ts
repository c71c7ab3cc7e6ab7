/** One request: its stream as events, and how it ended. */

import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../../../src/agent/events.ts";
import { requestReply } from "../../../src/agent/reply.ts";
import { messageText } from "../../../src/message.ts";
import type { Provider, ProviderEvent, ProviderRequest } from "../../../src/providers/provider.ts";
import {
  SCRIPTED_MODEL,
  ScriptedProvider,
  type ScriptedReply,
} from "../../../src/providers/scripted.ts";
import { user } from "../../support/transcript.ts";

const REQUEST: ProviderRequest = {
  model: SCRIPTED_MODEL,
  apiKey: undefined,
  systemPrompt: "",
  messages: [user("hi")],
  tools: [],
  maxRetries: 1,
  signal: new AbortController().signal,
};

async function ask(provider: Provider) {
  const events: AgentEvent[] = [];
  const reply = await requestReply(provider, REQUEST, (event) => events.push(event));
  return { reply, events };
}

const scripted = (...script: ScriptedReply[]) =>
  ask(new ScriptedProvider(script, { chunkChars: 4 }));

describe("requestReply", () => {
  test("forwards text, thoughts and arguments as they come, with the name of the call", async () => {
    const { reply, events } = await scripted({
      thinking: "hm",
      text: "look",
      toolCalls: [{ id: "c", name: "ipython", arguments: "{}" }],
    });
    expect(events).toEqual([
      { type: "thinking_delta", text: "hm" },
      { type: "text_delta", text: "look" },
      { type: "tool_call_delta", id: "c", name: "ipython", delta: "{}" },
    ]);
    expect(reply.failure).toBeUndefined();
    expect(messageText(reply.message)).toBe("look");
    expect(reply.ttftMs).toBeNumber();
  });

  test("tells a retry and that the reply starts over", async () => {
    const { reply, events } = await scripted(
      {
        text: "half",
        failure: { kind: "network", message: "cut", retryable: true, retryAfterMs: 0 },
      },
      { text: "all" },
    );
    expect(events.map(({ type }) => type)).toEqual([
      "text_delta",
      "retry",
      "reply_restart",
      "text_delta",
    ]);
    expect(messageText(reply.message)).toBe("all");
  });

  test("returns a failure with what had arrived", async () => {
    const { reply } = await scripted({ text: "half", failure: { kind: "auth", message: "no" } });
    expect(reply).toMatchObject({ failure: { kind: "auth", message: "scripted: no" } });
    expect(messageText(reply.message)).toBe("half");
  });

  test("takes a stream that ends without a result for a mistake, not for an empty answer", async () => {
    const broken: Provider = {
      api: "scripted",
      stream: async function* (): AsyncGenerator<ProviderEvent> {
        yield { type: "text_delta", text: "half" };
      },
    };
    await expect(ask(broken)).rejects.toThrow("ended its stream without a result");
  });
});
