import { describe, expect, test } from "bun:test";
import type { AssistantMessage, ImageBlock } from "../../../src/message.ts";
import { encodeChat } from "../../../src/providers/chat-encoding.ts";
import type { Effort, Model } from "../../../src/providers/provider.ts";
import { bodyOf } from "../../support/encoded-request.ts";
import { TEST_KEY, testModel, testRequest } from "../../support/provider-call.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const API = "openai-completions";
const IMAGE: ImageBlock = { type: "image", data: "aGk=", mimeType: "image/png" };
const IMAGE_PART = { type: "image_url", image_url: { url: "data:image/png;base64,aGk=" } };

function own(content: AssistantMessage["content"], model: Partial<Model> = {}): AssistantMessage {
  const { provider = "tested", id = "test-model" } = model;
  return { ...assistant(""), content, api: API, provider, model: id };
}

test("a request has its address, key and the fields that stay first", () => {
  const http = encodeChat(testRequest(testModel(API, "https://x.test/v1"), { sessionId: "s1" }));
  expect(http.url).toBe("https://x.test/v1/chat/completions");
  expect(http.headers["authorization"]).toBe(`Bearer ${TEST_KEY}`);
  expect(JSON.parse(http.body)).toEqual({
    model: "test-model",
    stream: true,
    stream_options: { include_usage: true },
    tools: [{ type: "function", function: expect.objectContaining({ name: "ipython" }) }],
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: "Hello" },
    ],
    max_tokens: 8_000,
  });
});

test("a reply of calls only has null content, and its arguments are JSON text", () => {
  const { messages } = bodyOf(API, [user("x"), assistant("", "c1"), result("c1")]);
  expect(messages.slice(2)).toEqual([
    {
      role: "assistant",
      content: null,
      tool_calls: [
        {
          id: "c1",
          type: "function",
          function: { name: "ipython", arguments: `{"code":"print(\\"c1\\")"}` },
        },
      ],
    },
    { role: "tool", tool_call_id: "c1", content: "output of c1" },
  ]);
});

test("images of results follow all results of the reply in a user message", () => {
  const shown = { ...result("c1"), content: [IMAGE] };
  const messages = [user("x"), assistant("", "c1", "c2"), shown, result("c2"), user("and?")];
  expect(bodyOf(API, messages).messages.slice(3)).toEqual([
    { role: "tool", tool_call_id: "c1", content: "(the result is an image, which follows)" },
    { role: "tool", tool_call_id: "c2", content: "output of c2" },
    {
      role: "user",
      content: [{ type: "text", text: "The images of the results above:" }, IMAGE_PART],
    },
    { role: "user", content: "and?" },
  ]);
});

test.each(["reasoning_content", "reasoning", "reasoning_text"])(
  "reasoning that came in %s goes back in it",
  (field) => {
    const reply = own([
      { type: "thinking", thinking: "hm", thinkingSignature: field },
      { type: "text", text: "a" },
    ]);
    const { messages } = bodyOf(API, [user("x"), reply, user("y")]);
    expect(messages[2]).toEqual({ role: "assistant", content: "a", [field]: "hm" });
  },
);

test("reasoning details go back unchanged", () => {
  const details = [{ type: "reasoning.encrypted", data: "sealed", index: 0 }];
  const reply = own([
    { type: "thinking", thinking: "hm", thinkingSignature: JSON.stringify(details) },
    call("c1"),
  ]);
  const { messages } = bodyOf(API, [user("x"), reply, result("c1")]);
  expect(messages[2]).toMatchObject({ reasoning_details: details });
  expect(messages[2]).not.toHaveProperty("reasoning");
});

describe("a server's own ways", () => {
  const at = (provider: string, id = "test-model") => ({ provider, id });

  test("Mistral gets ids of nine characters, no unknown fields, and thinking as parts", () => {
    const model = at("mistral", "magistral-small");
    const reply = own([{ type: "thinking", thinking: "hm" }, call("call_1")], model);
    const messages = [user("x"), reply, result("call_1"), user("y")];
    const body = bodyOf(API, messages, model, { sessionId: "s1", effort: "high" });
    expect(Object.keys(body)).toEqual([
      "model",
      "stream",
      "prompt_cache_key",
      "tools",
      "messages",
      "max_tokens",
    ]);
    const [, , said, answered, bridge] = body.messages;
    expect(said.content).toEqual([
      { type: "thinking", thinking: [{ type: "text", text: "hm" }], closed: true },
    ]);
    expect(said.tool_calls[0].id).toMatch(/^[a-zA-Z0-9]{9}$/);
    expect(answered.tool_call_id).toBe(said.tool_calls[0].id);
    expect(bridge).toEqual({ role: "assistant", content: "(continued)" });
  });

  test("Anthropic's models behind OpenRouter get cache marks", () => {
    const messages = [user("x"), assistant("", "c1"), result("c1")];
    const body = bodyOf(API, messages, at("openrouter", "anthropic/claude-opus-5"));
    const mark = { cache_control: { type: "ephemeral" } };
    expect(body.messages[0].content).toEqual([{ type: "text", text: "Be brief.", ...mark }]);
    expect(body.messages[1].content).toEqual([{ type: "text", text: "x", ...mark }]);
    expect(body.messages[3].content).toEqual([{ type: "text", text: "output of c1", ...mark }]);
    const other = bodyOf(API, messages, at("openrouter", "openai/gpt-5.4"));
    expect(JSON.stringify(other)).not.toContain("cache_control");
  });

  test("DeepSeek gets the field of its reasoning in each reply", () => {
    const model = at("deepseek", "deepseek-v4-pro");
    const thought = own(
      [{ type: "thinking", thinking: "hm", thinkingSignature: "reasoning_content" }, call("c1")],
      model,
    );
    const messages = [user("x"), assistant("a"), user("y"), thought, result("c1")];
    const [, , foreign, , mine] = bodyOf(API, messages, model).messages;
    expect(foreign.reasoning_content).toBe("");
    expect(mine.reasoning_content).toBe("hm");
  });

  test.each<[string, string]>([
    ["openai", "max_tokens"],
    ["groq", "max_completion_tokens"],
    ["xai", "max_completion_tokens"],
    ["deepseek", "max_tokens"],
    ["prime-inference", "max_tokens"],
    ["ollama", "max_tokens"],
  ])("%s limits the reply with %s", (provider, field) => {
    expect(bodyOf(API, [user("x")], at(provider))).toHaveProperty(field, 8_000);
  });

  test("a provider is known by its host too", () => {
    const body = bodyOf(API, [user("x")], {
      provider: "mine",
      baseUrl: "https://api.openai.com/v1",
    });
    expect(body).toHaveProperty("max_completion_tokens");
  });
});

describe("effort", () => {
  const NONE = {};

  test.each<[string, string, Effort, object]>([
    ["vllm", "qwen3", "off", NONE],
    ["vllm", "qwen3", "minimal", { reasoning_effort: "low" }],
    ["vllm", "qwen3", "max", { reasoning_effort: "high" }],
    ["openrouter", "z-ai/glm-5", "off", { reasoning: { effort: "none" } }],
    ["openrouter", "z-ai/glm-5", "max", { reasoning: { effort: "xhigh" } }],
    ["deepseek", "deepseek-v4-pro", "off", { thinking: { type: "disabled" } }],
    [
      "deepseek",
      "deepseek-v4-pro",
      "medium",
      { thinking: { type: "enabled" }, reasoning_effort: "high" },
    ],
    ["groq", "openai/gpt-oss-120b", "off", { reasoning_effort: "low" }],
    ["groq", "qwen/qwen3.6-27b", "off", { reasoning_effort: "none" }],
    ["groq", "llama-3.3-70b-versatile", "high", NONE],
    ["xai", "grok-4.20-0309-reasoning", "high", NONE],
    ["xai", "grok-4.3", "off", { reasoning_effort: "none" }],
    ["xai", "grok-4.6", "off", NONE],
    ["xai", "grok-4.6", "xhigh", { reasoning_effort: "high" }],
    ["mistral", "mistral-medium-latest", "off", { reasoning_effort: "none" }],
    ["mistral", "mistral-medium-latest", "low", { reasoning_effort: "high" }],
    ["mistral", "magistral-small", "high", NONE],
  ])("of %s's %s at %s", (provider, id, effort, expected) => {
    const body = bodyOf(API, [user("x")], { provider, id }, { effort });
    const { reasoning, reasoning_effort, thinking } = body;
    expect(JSON.parse(JSON.stringify({ reasoning, reasoning_effort, thinking }))).toEqual(expected);
  });

  test("is not sent for a model that can't think", () => {
    const body = bodyOf(API, [user("x")], { reasoning: false }, { effort: "high" });
    expect(body).not.toHaveProperty("reasoning_effort");
  });
});
