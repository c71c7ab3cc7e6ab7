import { describe, expect, test } from "bun:test";
import type { AssistantMessage } from "../../../src/message.ts";
import { openAiEffort } from "../../../src/providers/effort.ts";
import type { Effort } from "../../../src/providers/provider.ts";
import { encodeResponses } from "../../../src/providers/responses-encoding.ts";
import { bodyOf } from "../../support/encoded-request.ts";
import { TEST_KEY, testModel, testRequest } from "../../support/provider-call.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const API = "openai-responses";

function own(content: AssistantMessage["content"]): AssistantMessage {
  return { ...assistant(""), content, api: API, provider: "tested", model: "test-model" };
}

test("a request keeps no state on the server and asks for sealed reasoning", () => {
  const http = encodeResponses(
    testRequest(testModel(API, "https://x.test/v1"), { sessionId: "s1" }),
  );
  expect(http.url).toBe("https://x.test/v1/responses");
  expect(http.headers["authorization"]).toBe(`Bearer ${TEST_KEY}`);
  expect(JSON.parse(http.body)).toEqual({
    model: "test-model",
    stream: true,
    store: false,
    prompt_cache_key: "s1",
    include: ["reasoning.encrypted_content"],
    tools: [expect.objectContaining({ type: "function", name: "ipython", strict: false })],
    instructions: "Be brief.",
    input: [{ role: "user", content: [{ type: "input_text", text: "Hello" }] }],
    max_output_tokens: 8_000,
  });
});

test("reasoning items go back as they came, and those without sealed content don't", () => {
  const item = { id: "rs_1", type: "reasoning", summary: [], encrypted_content: "sealed" };
  const open = { id: "rs_2", type: "reasoning", summary: [] };
  const reply = own([
    { type: "thinking", thinking: "hm", thinkingSignature: JSON.stringify(item) },
    { type: "thinking", thinking: "hm", thinkingSignature: JSON.stringify(open) },
    { type: "text", text: "a", textSignature: `{"v":1,"id":"msg_1","phase":"commentary"}` },
    call("c1"),
  ]);
  expect(bodyOf(API, [user("x"), reply, result("c1")]).input.slice(1)).toEqual([
    item,
    {
      type: "message",
      role: "assistant",
      status: "completed",
      content: [{ type: "output_text", text: "a", annotations: [] }],
      id: "msg_1",
      phase: "commentary",
    },
    {
      type: "function_call",
      call_id: "c1",
      name: "ipython",
      arguments: `{"code":"print(\\"c1\\")"}`,
    },
    { type: "function_call_output", call_id: "c1", output: "output of c1" },
  ]);
});

test("a result with an image is a list of parts", () => {
  const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
  const shown = { ...result("c1"), content: [{ type: "text" as const, text: "fig" }, image] };
  const { input } = bodyOf(API, [user("x"), assistant("", "c1"), shown]);
  expect(input.at(-1).output).toEqual([
    { type: "input_text", text: "fig" },
    { type: "input_image", image_url: "data:image/png;base64,aGk=", detail: "auto" },
  ]);
});

test("ids of other programs' sessions lose the item's id behind the bar", () => {
  const id = "call_abc|fc_0123456789";
  const { input } = bodyOf(API, [user("x"), assistant("", id), result(id)]);
  expect(input.at(-2).call_id).toBe("call_abc");
  expect(input.at(-1).call_id).toBe("call_abc");
});

describe("effort", () => {
  test.each<[string, Effort, string]>([
    ["o3", "off", "low"],
    ["o4-mini", "max", "high"],
    ["gpt-5", "off", "minimal"],
    ["gpt-5-mini", "xhigh", "high"],
    ["gpt-5-pro", "low", "high"],
    ["gpt-5.1", "off", "none"],
    ["gpt-5.1", "max", "high"],
    ["gpt-5.1-codex", "off", "low"],
    ["gpt-5.1-codex-max", "max", "xhigh"],
    ["gpt-5.3-codex", "xhigh", "xhigh"],
    ["gpt-5.2-pro", "low", "medium"],
    ["gpt-5.6", "off", "none"],
    ["gpt-5.6-sol", "minimal", "low"],
    ["openai/gpt-5.4", "max", "xhigh"],
  ])("of %s at %s is %s", (id, effort, level) => {
    expect(openAiEffort(id, effort)).toBe(level);
  });

  test("asks for a summary unless thinking is off", () => {
    const ask = (effort: Effort) => bodyOf(API, [user("x")], { id: "gpt-5.4" }, { effort });
    expect(ask("high").reasoning).toEqual({ effort: "high", summary: "auto" });
    expect(ask("off").reasoning).toEqual({ effort: "none" });
  });

  test("and sealed reasoning are not asked of a model that can't think", () => {
    const body = bodyOf(API, [user("x")], { reasoning: false }, { effort: "high" });
    expect(body).not.toHaveProperty("reasoning");
    expect(body).not.toHaveProperty("include");
  });
});
