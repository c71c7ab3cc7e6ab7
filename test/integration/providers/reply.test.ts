import { describe, expect, test } from "bun:test";
import { collect, joined, messageIn, testModel, testRequest } from "../../support/provider-call.ts";
import { SERVED_APIS } from "../../support/provider-formats.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import type { ServedReply } from "../../support/provider-server.ts";

const FULL: ServedReply = {
  thinking: "Let me think — gründlich 🤔.",
  text: "Grüße 👋\nfrom the model.",
  toolCalls: [
    { id: "call_a", name: "ipython", arguments: { code: "print('✓')\n" } },
    { id: "call_b", name: "ipython", arguments: { code: "1 + 1" } },
  ],
  usage: { input: 1_000, output: 50, cacheRead: 400, reasoning: 12 },
};

async function ask(api: (typeof SERVED_APIS)[number], reply: ServedReply) {
  await using server = await ProviderServer.start([reply]);
  return await collect(testRequest(testModel(api, server.baseUrl(api))));
}

describe.each([...SERVED_APIS])("a reply of %s", (api) => {
  test("gives its thinking, text, calls, usage and cost", async () => {
    const events = await ask(api, FULL);
    const message = messageIn(events);
    expect(joined(events, "text_delta")).toBe(FULL.text as string);
    expect(joined(events, "thinking_delta")).toBe(FULL.thinking as string);
    expect(message).toMatchObject({
      role: "assistant",
      api,
      provider: "tested",
      model: "test-model",
      stopReason: "toolUse",
      content: [
        { type: "thinking", thinking: FULL.thinking },
        { type: "text", text: FULL.text },
        { type: "toolCall", id: "call_a", name: "ipython", arguments: { code: "print('✓')\n" } },
        { type: "toolCall", id: "call_b", name: "ipython", arguments: { code: "1 + 1" } },
      ],
    });
    expect(message.content).toHaveLength(4);
    expect(message.usage).toEqual({
      input: 1_000,
      output: 50,
      cacheRead: 400,
      cacheWrite: 0,
      reasoning: 12,
      totalTokens: 1_450,
      cost: {
        input: 0.001,
        output: 0.0001,
        cacheRead: 0.00004,
        cacheWrite: 0,
        total: expect.closeTo(0.00114),
      },
    });
    expect(message.responseId).toBeString();
  });

  test("announces each call, streams its arguments and ends it once", async () => {
    const events = await ask(api, FULL);
    const starts = events.filter((event) => event.type === "tool_call_start");
    const ends = events.filter((event) => event.type === "tool_call_end");
    expect(starts).toEqual([
      { type: "tool_call_start", id: "call_a", name: "ipython" },
      { type: "tool_call_start", id: "call_b", name: "ipython" },
    ]);
    expect(ends.map((event) => event.call.id)).toEqual(["call_a", "call_b"]);
    const streamed = events
      .map((event) =>
        event.type === "tool_call_delta" && event.id === "call_b" ? event.delta : "",
      )
      .join("");
    expect(JSON.parse(streamed)).toEqual({ code: "1 + 1" });
  });

  test("ends with stop when it is only text", async () => {
    const message = messageIn(await ask(api, { text: "Done." }));
    expect(message.stopReason).toBe("stop");
    expect(message.content).toMatchObject([{ type: "text", text: "Done." }]);
  });

  test("ends with length when the output limit cut it off", async () => {
    const message = messageIn(await ask(api, { text: "And then", finish: "length" }));
    expect(message.stopReason).toBe("length");
    expect(message.content).toMatchObject([{ type: "text", text: "And then" }]);
  });

  test("times the first content and the whole", async () => {
    const last = (await ask(api, FULL)).at(-1);
    expect(last).toMatchObject({ type: "done" });
    if (last?.type === "done") expect(last.durationMs).toBeGreaterThanOrEqual(last.ttftMs);
  });

  test("arrives the same when every byte comes in a segment of its own", async () => {
    const whole = await ask(api, FULL);
    const dripped = await ask(api, { ...FULL, chunkBytes: 1 });
    const timeless = (events: Awaited<typeof whole>) =>
      events.map((event) => {
        if (event.type !== "done") return event;
        return { ...event, ttftMs: 0, durationMs: 0, message: { ...event.message, timestamp: 0 } };
      });
    expect(timeless(dripped)).toEqual(timeless(whole));
  });
});
