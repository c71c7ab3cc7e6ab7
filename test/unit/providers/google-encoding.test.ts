import { describe, expect, test } from "bun:test";
import type { AssistantMessage } from "../../../src/message.ts";
import { encodeGoogle } from "../../../src/providers/google-encoding.ts";
import type { Effort } from "../../../src/providers/provider.ts";
import { bodyOf } from "../../support/encoded-request.ts";
import { TEST_KEY, testModel, testRequest } from "../../support/provider-call.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const API = "google-generative-ai";
const GEMINI_3 = { id: "gemini-3.1-pro-preview" };

function own(content: AssistantMessage["content"], id = "test-model"): AssistantMessage {
  return { ...assistant(""), content, api: API, provider: "tested", model: id };
}

test("a request has its address, its key in a header, and the fields that stay first", () => {
  const http = encodeGoogle(testRequest(testModel(API, "https://x.test/v1beta")));
  expect(http.url).toBe("https://x.test/v1beta/models/test-model:streamGenerateContent?alt=sse");
  expect(http.headers["x-goog-api-key"]).toBe(TEST_KEY);
  expect(JSON.parse(http.body)).toEqual({
    systemInstruction: { parts: [{ text: "Be brief." }] },
    tools: [
      {
        functionDeclarations: [
          {
            name: "ipython",
            description: "Runs a cell.",
            parametersJsonSchema: expect.objectContaining({ type: "object" }),
          },
        ],
      },
    ],
    contents: [{ role: "user", parts: [{ text: "Hello" }] }],
    generationConfig: { maxOutputTokens: 8_000, thinkingConfig: { includeThoughts: true } },
  });
});

test("signatures go back in the parts that they came with, unsigned thoughts don't", () => {
  const reply = own([
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "a", textSignature: "c2ln" },
    { ...call("c1"), thoughtSignature: "c2lnMg==" },
    call("c2"),
  ]);
  const { contents } = bodyOf(API, [user("x"), reply, result("c1"), result("c2")]);
  expect(contents.slice(1)).toEqual([
    {
      role: "model",
      parts: [
        { text: "a", thoughtSignature: "c2ln" },
        {
          functionCall: { id: "c1", name: "ipython", args: { code: 'print("c1")' } },
          thoughtSignature: "c2lnMg==",
        },
        { functionCall: { id: "c2", name: "ipython", args: { code: 'print("c2")' } } },
      ],
    },
    {
      role: "user",
      parts: [
        { functionResponse: { id: "c1", name: "ipython", response: { output: "output of c1" } } },
        { functionResponse: { id: "c2", name: "ipython", response: { output: "output of c2" } } },
      ],
    },
  ]);
});

test("Gemini 3 gets a stand-in for the signature of the first call that another model made", () => {
  const messages = [user("x"), assistant("", "c1", "c2"), result("c1"), result("c2")];
  const parts = bodyOf(API, messages, GEMINI_3).contents[1].parts;
  expect(parts[0].thoughtSignature).toBe("skip_thought_signature_validator");
  expect(parts[1]).not.toHaveProperty("thoughtSignature");
  const older = bodyOf(API, messages, { id: "gemini-2.5-pro" }).contents[1].parts;
  expect(older[0]).not.toHaveProperty("thoughtSignature");
});

test("an error is told as one", () => {
  const bad = { ...result("c1", "boom"), isError: true };
  const { contents } = bodyOf(API, [user("x"), assistant("", "c1"), bad]);
  expect(contents[2].parts[0].functionResponse.response).toEqual({ error: "boom" });
});

describe("the image of a result", () => {
  const image = { type: "image" as const, data: "aGk=", mimeType: "image/png" };
  const messages = [user("x"), assistant("", "c1"), { ...result("c1"), content: [image] }];
  const inlineData = { mimeType: "image/png", data: "aGk=" };

  test("is a part of the response for Gemini 3", () => {
    const { contents } = bodyOf(API, messages, GEMINI_3);
    expect(contents).toHaveLength(3);
    expect(contents[2].parts[0].functionResponse).toMatchObject({
      response: { output: "(the result is an image)" },
      parts: [{ inlineData }],
    });
  });

  test("follows in a content of its own before", () => {
    const { contents } = bodyOf(API, messages, { id: "gemini-2.5-flash" });
    expect(contents[3]).toEqual({
      role: "user",
      parts: [{ text: "The images of the results above:" }, { inlineData }],
    });
  });
});

test.each<[string, Effort | undefined, object]>([
  ["gemini-3.1-pro-preview", undefined, { includeThoughts: true }],
  ["gemini-3.1-pro-preview", "off", { includeThoughts: false, thinkingLevel: "low" }],
  ["gemini-3.1-pro-preview", "medium", { includeThoughts: true, thinkingLevel: "medium" }],
  ["gemini-3.7-flash", "off", { includeThoughts: false, thinkingLevel: "minimal" }],
  ["gemini-3.7-flash", "max", { includeThoughts: true, thinkingLevel: "high" }],
  ["gemini-flash-latest", "low", { includeThoughts: true, thinkingLevel: "low" }],
  ["gemini-2.5-pro", "off", { thinkingBudget: 128 }],
  ["gemini-2.5-pro", "max", { includeThoughts: true, thinkingBudget: 32_768 }],
  ["gemini-2.5-flash", "off", { thinkingBudget: 0 }],
  ["gemini-2.5-flash", "max", { includeThoughts: true, thinkingBudget: 24_576 }],
  ["gemma-4-31b-it", "low", { includeThoughts: true, thinkingLevel: "minimal" }],
])("%s thinks at %s as it understands it", (id, effort, expected) => {
  const body = bodyOf(API, [user("x")], { id }, effort ? { effort } : {});
  expect(body.generationConfig.thinkingConfig).toEqual(expected);
});
