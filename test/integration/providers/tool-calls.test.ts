import { describe, expect, test } from "bun:test";
import { collect, messageIn, testModel, testRequest } from "../../support/provider-call.ts";
import type { ServedApi } from "../../support/provider-formats.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import type { ServedReply } from "../../support/provider-server.ts";

const CUT = `{"code":"import shutil; shutil.rmtree('a`;

async function callsOf(api: ServedApi, reply: ServedReply) {
  await using server = await ProviderServer.start([reply]);
  const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
  const message = messageIn(events);
  const calls = message.content.filter((block) => block.type === "toolCall");
  const ended = events.filter((event) => event.type === "tool_call_end");
  expect(ended.map((event) => event.call)).toEqual(calls);
  return { message, calls };
}

/** Gemini sends arguments as objects, so it can't send half of one. */
const TEXTUAL: ServedApi[] = ["openai-completions", "openai-responses", "anthropic-messages"];

describe.each(TEXTUAL)("a call of %s", (api) => {
  test.each([
    ["half a JSON object", CUT, /not valid JSON/],
    ["an array", `["rm"]`, /not a JSON object/],
    ["a string", `"1+1"`, /not a JSON object/],
    ["null", "null", /not a JSON object/],
    ["two objects", `{"code":"1"}{"code":"2"}`, /not valid JSON/],
    ["words", "run it", /not valid JSON/],
  ])("with %s as arguments is malformed and has none", async (_, json, why) => {
    const { calls, message } = await callsOf(api, {
      toolCalls: [{ name: "ipython", arguments: json }],
    });
    expect(calls).toMatchObject([{ name: "ipython", arguments: {} }]);
    expect(calls[0]?.malformed).toMatch(why);
    expect(message.stopReason).toBe("toolUse");
  });

  test("that the output limit cut off says so", async () => {
    const { calls, message } = await callsOf(api, {
      toolCalls: [{ name: "ipython", arguments: CUT }],
      finish: "length",
    });
    expect(calls).toMatchObject([
      { arguments: {}, malformed: "its arguments were cut off by the output limit" },
    ]);
    expect(message.stopReason).toBe("length");
  });

  test("that the output limit cut off before its first byte is malformed too", async () => {
    const { calls } = await callsOf(api, {
      toolCalls: [{ name: "ipython", arguments: "" }],
      finish: "length",
    });
    expect(calls[0]?.malformed).toBe("its arguments were cut off by the output limit");
  });

  test("that is complete stays whole when only what follows was cut off", async () => {
    const { calls } = await callsOf(api, {
      toolCalls: [
        { id: "call_a", name: "ipython", arguments: { code: "1" } },
        { id: "call_b", name: "ipython", arguments: CUT },
      ],
      finish: "length",
    });
    expect(calls).toMatchObject([
      { id: "call_a", arguments: { code: "1" } },
      { id: "call_b", arguments: {}, malformed: "its arguments were cut off by the output limit" },
    ]);
    expect(calls[0]).not.toHaveProperty("malformed");
  });

  test("without any arguments has an empty object", async () => {
    const { calls } = await callsOf(api, { toolCalls: [{ name: "ipython", arguments: "" }] });
    expect(calls).toMatchObject([{ arguments: {} }]);
    expect(calls[0]).not.toHaveProperty("malformed");
  });

  test("whose id repeats that of another gets one of its own", async () => {
    const same = { id: "call_1", name: "ipython", arguments: { code: "1" } };
    const { calls } = await callsOf(api, { toolCalls: [same, same] });
    expect(calls).toHaveLength(2);
    expect(new Set(calls.map((call) => call.id)).size).toBe(2);
  });

  test("without an id gets one", async () => {
    const { calls } = await callsOf(api, {
      toolCalls: [{ id: "", name: "ipython", arguments: { code: "1" } }],
    });
    expect(calls[0]?.id).toMatch(/^call_[0-9a-f]{32}$/);
  });

  test("without a name is malformed", async () => {
    const { calls } = await callsOf(api, { toolCalls: [{ name: "", arguments: { code: "1" } }] });
    expect(calls).toMatchObject([
      { name: "unknown", arguments: {}, malformed: "the call names no tool" },
    ]);
  });
});

test("a call that Gemini could not read becomes a malformed call of the tool", async () => {
  const { calls, message } = await callsOf("google-generative-ai", {
    text: "Running.",
    toolCalls: [{ name: "ipython", arguments: CUT }],
  });
  expect(calls).toMatchObject([
    {
      name: "ipython",
      arguments: {},
      malformed: "the provider could not read it (MALFORMED_FUNCTION_CALL)",
    },
  ]);
  expect(message.stopReason).toBe("toolUse");
});
