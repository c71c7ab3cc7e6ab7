import { describe, expect, test } from "bun:test";
import type { AssistantMessage, Message } from "../../../src/message.ts";
import { encodeAnthropic } from "../../../src/providers/anthropic-encoding.ts";
import type { Effort } from "../../../src/providers/provider.ts";
import { bodyOf } from "../../support/encoded-request.ts";
import { TEST_KEY, testModel, testRequest } from "../../support/provider-call.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const API = "anthropic-messages";

function own(content: AssistantMessage["content"]): AssistantMessage {
  return { ...assistant(""), content, api: API, provider: "tested", model: "test-model" };
}

test("a request has its address, version, key and the fields that stay first", () => {
  const http = encodeAnthropic(testRequest(testModel(API, "https://api.anthropic.test")));
  expect(http.url).toBe("https://api.anthropic.test/v1/messages");
  expect(http.headers).toMatchObject({ "anthropic-version": "2023-06-01", "x-api-key": TEST_KEY });
  expect(Object.keys(JSON.parse(http.body))).toEqual([
    "model",
    "stream",
    "tools",
    "system",
    "messages",
    "max_tokens",
  ]);
});

test("a base URL with the version in it means the same", () => {
  const { url } = encodeAnthropic(testRequest(testModel(API, "https://gateway.test/v1")));
  expect(url).toBe("https://gateway.test/v1/messages");
});

test("headers of the model's provider go over ours, and without a key none is sent", () => {
  const model = testModel(API, "https://x.test", { headers: { "x-team": "a" } });
  const { headers } = encodeAnthropic(testRequest(model, { apiKey: undefined }));
  expect(headers["x-team"]).toBe("a");
  expect(headers).not.toHaveProperty("x-api-key");
});

test("thinking goes back with its signature, hidden thinking as it came, unsigned not at all", () => {
  const reply = own([
    { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
    { type: "thinking", thinking: "", thinkingSignature: "sealed", redacted: true },
    { type: "thinking", thinking: "unsigned" },
    { type: "text", text: "answer" },
    call("c1"),
  ]);
  const { messages } = bodyOf(API, [user("x"), reply, result("c1")]);
  expect(messages[1].content).toEqual([
    { type: "thinking", thinking: "hm", signature: "sig" },
    { type: "redacted_thinking", data: "sealed" },
    { type: "text", text: "answer" },
    { type: "tool_use", id: "c1", name: "ipython", input: { code: 'print("c1")' } },
  ]);
});

test("all results of a reply are in the one message after it, errors and images included", () => {
  const bad = { ...result("c2"), isError: true };
  const image = {
    ...result("c1"),
    content: [{ type: "image" as const, data: "aGk=", mimeType: "image/png" }],
  };
  const { messages } = bodyOf(API, [user("x"), assistant("", "c1", "c2"), image, bad, user("y")]);
  expect(messages).toHaveLength(4);
  expect(messages[2].content).toMatchObject([
    {
      type: "tool_result",
      tool_use_id: "c1",
      content: [
        { type: "image", source: { type: "base64", media_type: "image/png", data: "aGk=" } },
      ],
    },
    { type: "tool_result", tool_use_id: "c2", is_error: true },
  ]);
});

describe("cache marks", () => {
  const turns = Array.from({ length: 8 }, (_, turn): Message[] => [
    user(`turn ${turn}`),
    assistant("", `c${turn}`),
    result(`c${turn}`),
    assistant(`done ${turn}`),
  ]);

  /** The texts that are marked, in order. */
  function marked(messages: readonly Message[]): string[] {
    const body = bodyOf(API, messages);
    const blocks = [...body.system, ...body.messages.flatMap((message: any) => message.content)];
    return blocks
      .filter((block) => block.cache_control)
      .map((block) => block.text ?? block.content[0].text);
  }

  test("are on the system prompt and on the ends of the last three user messages", () => {
    expect(marked(turns.slice(0, 3).flat())).toEqual([
      "Be brief.",
      "output of c1",
      "turn 2",
      "output of c2",
    ]);
  });

  test("of one request are still there in the next one, so that what it wrote is found", () => {
    const flat = turns.flat();
    const ends = flat.flatMap((message, index) =>
      message.role === "assistant" ? [] : [index + 1],
    );
    for (const [before, after] of ends.slice(1).map((end, index) => [ends[index], end])) {
      const newest = marked(flat.slice(0, before)).at(-1) as string;
      const next = marked(flat.slice(0, after));
      expect(next).toContain(newest);
      expect(next.length).toBeLessThanOrEqual(4);
    }
  });
});

describe("effort", () => {
  function thinkingOf(id: string, effort: Effort | undefined, more = {}) {
    const model = testModel(API, "https://x.test", { id, maxTokens: 64_000, ...more });
    const { body } = encodeAnthropic(testRequest(model, effort ? { effort } : {}));
    const { thinking, output_config } = JSON.parse(body);
    return { thinking, effort: output_config?.effort };
  }

  const adaptive = { type: "adaptive", display: "summarized" };

  test.each<[string, Effort | undefined, unknown, string | undefined]>([
    ["claude-opus-5", undefined, undefined, undefined],
    ["claude-opus-5", "off", { type: "disabled" }, undefined],
    ["claude-fable-5", "off", undefined, undefined],
    ["claude-opus-5", "minimal", adaptive, "low"],
    ["claude-opus-5", "xhigh", adaptive, "xhigh"],
    ["claude-sonnet-5", "max", adaptive, "max"],
    ["claude-opus-4-6", "xhigh", adaptive, "high"],
    ["claude-opus-4-6", "max", adaptive, "max"],
    ["claude-sonnet-4-5-20250929", "medium", { type: "enabled", budget_tokens: 10_240 }, undefined],
    ["claude-haiku-4-5", "off", undefined, undefined],
    ["claude-3-7-sonnet-20250219", "low", { type: "enabled", budget_tokens: 4_096 }, undefined],
    ["kimi-k3", "high", { type: "enabled", budget_tokens: 20_480 }, undefined],
  ])("%s thinks at %s as the model understands it", (id, effort, thinking, level) => {
    expect(thinkingOf(id, effort)).toEqual({ thinking: thinking as never, effort: level });
  });

  test("leaves room for the answer in a short reply, and gives up in a tiny one", () => {
    expect(thinkingOf("claude-haiku-4-5", "max", { maxTokens: 4_000 }).thinking).toEqual({
      type: "enabled",
      budget_tokens: 2_976,
    });
    expect(thinkingOf("claude-haiku-4-5", "max", { maxTokens: 2_000 }).thinking).toBeUndefined();
  });

  test("is ignored by a model that can't think", () => {
    expect(thinkingOf("claude-opus-5", "high", { reasoning: false }).thinking).toBeUndefined();
  });

  test("with a budget does not start after a call that was made without thinking", () => {
    const messages = [user("x"), assistant("", "c1"), result("c1")];
    const model = { id: "claude-haiku-4-5", maxTokens: 64_000 };
    expect(bodyOf(API, messages, model, { effort: "high" })).not.toHaveProperty("thinking");
    const next = [...messages, assistant("done"), user("y")];
    expect(bodyOf(API, next, model, { effort: "high" })).toHaveProperty("thinking");
  });
});

test("the reply's limit is what the context window leaves", () => {
  const long = user("x".repeat(270_000));
  expect(bodyOf(API, [user("x")]).max_tokens).toBe(8_000);
  expect(bodyOf(API, [user("x")], {}, { maxTokens: 500 }).max_tokens).toBe(500);
  const narrowed = bodyOf(API, [long], { maxTokens: 64_000 }).max_tokens;
  expect(narrowed).toBeGreaterThan(9_000);
  expect(narrowed).toBeLessThan(10_000);
  expect(bodyOf(API, [user("x".repeat(400_000))]).max_tokens).toBe(1_024);
});
