import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { AbortedError } from "../../../src/errors.ts";
import type { ProviderEvent } from "../../../src/providers/provider.ts";
import { SCRIPTED_MODEL, ScriptedProvider } from "../../../src/providers/scripted.ts";
import type { ScriptedReply } from "../../../src/providers/scripted.ts";
import { failureIn, joined, messageIn, testRequest } from "../../support/provider-call.ts";
import { result, user } from "../../support/transcript.ts";

async function run(
  provider: ScriptedProvider,
  request: Partial<Parameters<typeof testRequest>[1]> = {},
): Promise<ProviderEvent[]> {
  const events: ProviderEvent[] = [];
  for await (const event of provider.stream(testRequest(SCRIPTED_MODEL, request))) {
    events.push(event);
  }
  return events;
}

describe("a scripted reply", () => {
  test("streams thinking, text and calls in pieces", async () => {
    const replies: ScriptedReply[] = [
      {
        thinking: "hm, hm",
        text: "Grüße 👋",
        toolCalls: [{ id: "c1", name: "ipython", arguments: { code: "1" } }],
      },
    ];
    const events = await run(new ScriptedProvider(replies, { chunkChars: 2 }));
    expect(joined(events, "thinking_delta")).toBe("hm, hm");
    expect(joined(events, "text_delta")).toBe("Grüße 👋");
    expect(events.filter((event) => event.type === "text_delta")).toHaveLength(4);
    expect(messageIn(events)).toMatchObject({
      stopReason: "toolUse",
      content: [
        { type: "thinking", thinking: "hm, hm" },
        { type: "text", text: "Grüße 👋" },
        { type: "toolCall", id: "c1", arguments: { code: "1" } },
      ],
    });
  });

  test("with broken arguments is judged as a real one", async () => {
    const toolCalls = [{ name: "ipython", arguments: '{"code":"1' }];
    const events = await run(new ScriptedProvider([{ toolCalls, stopReason: "length" }]));
    expect(messageIn(events).content).toMatchObject([
      { arguments: {}, malformed: "its arguments were cut off by the output limit" },
    ]);
  });

  test("has the usage that it names, or an estimate", async () => {
    const usage = { input: 7, output: 3, cacheRead: 5 };
    const provider = new ScriptedProvider([{ text: "a", usage }, { text: "a" }]);
    expect(messageIn(await run(provider)).usage).toMatchObject({ ...usage, totalTokens: 15 });
    expect(messageIn(await run(provider)).usage.input).toBeGreaterThan(10);
  });

  test("waits for its gate, and an abort ends the wait", async () => {
    const gate = defer<void>();
    const provider = new ScriptedProvider(
      [
        { text: "late", gate: "open" },
        { text: "never", gate: "shut" },
      ],
      { gates: { open: gate.promise, shut: defer<void>().promise } },
    );
    const first = run(provider);
    gate.resolve();
    expect(joined(await first, "text_delta")).toBe("late");
    const abort = new AbortController();
    const second = run(provider, { signal: abort.signal });
    abort.abort(new AbortedError("user"));
    expect(failureIn(await second).kind).toBe("aborted");
  });

  test("with `when` answers the request that contains it, in any order", async () => {
    const provider = new ScriptedProvider([
      { when: "child", text: "I am the child" },
      { text: "first" },
      { when: "output of c1", text: "second" },
    ]);
    expect(joined(await run(provider), "text_delta")).toBe("first");
    const messages = [user("x"), result("c1")];
    expect(joined(await run(provider, { messages }), "text_delta")).toBe("second");
    const child = { messages: [user("task for a child")] };
    expect(joined(await run(provider, child), "text_delta")).toBe("I am the child");
    expect(provider.remaining).toBe(0);
  });
});

describe("a scripted failure", () => {
  test("that may be retried takes the next reply", async () => {
    const busy = { kind: "overloaded", message: "busy", retryable: true, retryAfterMs: 0 } as const;
    const provider = new ScriptedProvider([{ text: "par", failure: busy }, { text: "whole" }]);
    const events = await run(provider, { maxRetries: 1 });
    expect(events.map((event) => event.type)).toEqual([
      "text_delta",
      "retry",
      "restart",
      "text_delta",
      "done",
    ]);
    expect(provider.requests).toHaveLength(2);
  });

  test("that may not ends the call with what had arrived", async () => {
    const failure = { kind: "auth", message: "no" } as const;
    const events = await run(new ScriptedProvider([{ text: "par", failure }]), { maxRetries: 3 });
    expect(failureIn(events)).toEqual({
      kind: "auth",
      message: "scripted: no",
      provider: "scripted",
      retryable: false,
    });
    expect(messageIn(events).content).toEqual([{ type: "text", text: "par" }]);
  });

  test("is what a request beyond the script's end gets", async () => {
    expect(failureIn(await run(new ScriptedProvider([])))).toMatchObject({
      kind: "invalid_request",
      message: "scripted: the script has no reply for this request",
    });
  });
});

test("requests are kept as they were when they came", async () => {
  const messages = [user("one")];
  const provider = new ScriptedProvider([{ text: "a" }]);
  await run(provider, { messages });
  messages.push(user("two"));
  expect(provider.requests[0]?.messages).toEqual([user("one")]);
});
