import { describe, expect, test } from "bun:test";
import { failureIn, messageIn } from "../../support/provider-call.ts";
import { event, readStream } from "../../support/raw-stream.ts";

const API = "google-generative-ai";

function parts(list: unknown, more: object = {}, top: object = {}): string {
  return event({ candidates: [{ content: { role: "model", parts: list }, ...more }], ...top });
}

const STOP = parts([{ text: "" }], { finishReason: "STOP" });

async function read(...chunks: string[]) {
  return await readStream(API, chunks.join(""));
}

test("text and thoughts that alternate are blocks in their order", async () => {
  const { content } = messageIn(
    await read(
      parts([{ text: "h", thought: true }]),
      parts([{ text: "m", thought: true }, { text: "Hel" }]),
      parts([{ text: "lo" }]),
      parts([{ text: "more", thought: true }]),
      parts([{ text: "!" }]),
      STOP,
    ),
  );
  expect(content).toEqual([
    { type: "thinking", thinking: "hm" },
    { type: "text", text: "Hello" },
    { type: "thinking", thinking: "more" },
    { type: "text", text: "!" },
  ]);
});

test("signatures stay with their parts, also one that comes in an empty part", async () => {
  const call = (code: string) => ({ functionCall: { name: "ipython", args: { code } } });
  const { content } = messageIn(
    await read(
      parts([{ text: "Hi" }]),
      parts([{ text: "", thoughtSignature: "dGV4dA==" }]),
      parts([{ ...call("1"), thoughtSignature: "Y2FsbA==" }, call("2")]),
      STOP,
    ),
  );
  expect(content).toMatchObject([
    { type: "text", text: "Hi", textSignature: "dGV4dA==" },
    { type: "toolCall", arguments: { code: "1" }, thoughtSignature: "Y2FsbA==" },
    { type: "toolCall", arguments: { code: "2" } },
  ]);
  expect(content[2]).not.toHaveProperty("thoughtSignature");
  expect(new Set(content.map((block) => block.type === "toolCall" && block.id)).size).toBe(3);
});

test("a call without arguments has an empty object", async () => {
  const { content } = messageIn(
    await read(parts([{ functionCall: { id: "a", name: "ipython" } }]), STOP),
  );
  expect(content).toMatchObject([{ id: "a", arguments: {} }]);
  expect(content[0]).not.toHaveProperty("malformed");
});

test("parts, candidates and contents that are missing change nothing", async () => {
  const { content } = messageIn(
    await read(
      "data: null\n\n",
      event({}),
      event({ candidates: [] }),
      event({ candidates: [{ index: 0 }] }),
      parts(null),
      parts([null, { executableCode: {} }, { text: "Hi" }]),
      STOP,
    ),
  );
  expect(content).toEqual([{ type: "text", text: "Hi" }]);
});

test("what comes after the finish reason still counts", async () => {
  const usage = { promptTokenCount: 9, candidatesTokenCount: 3, thoughtsTokenCount: 2 };
  const message = messageIn(
    await read(parts([{ text: "Hi" }]), STOP, event({ usageMetadata: usage })),
  );
  expect(message.usage).toMatchObject({ input: 9, output: 5, reasoning: 2, totalTokens: 14 });
});

describe("the finish reason", () => {
  test.each([
    ["SAFETY", "content_filter", false],
    ["RECITATION", "content_filter", false],
    ["PROHIBITED_CONTENT", "content_filter", false],
    ["OTHER", "server", true],
    ["MALFORMED_RESPONSE", "server", true],
  ])("%s is a failure of kind %s, retried: %p", async (reason, kind, retryable) => {
    const failure = failureIn(await read(parts([{ text: "Hi" }], { finishReason: reason })));
    expect(failure).toMatchObject({ kind, retryable });
    expect(failure.message).toContain(reason);
  });

  test("MAX_TOKENS is length", async () => {
    const message = messageIn(await read(parts([{ text: "Hi" }], { finishReason: "MAX_TOKENS" })));
    expect(message.stopReason).toBe("length");
  });

  test("UNEXPECTED_TOOL_CALL is a malformed call with the provider's words", async () => {
    const finish = { finishReason: "UNEXPECTED_TOOL_CALL", finishMessage: "print(x)" };
    expect(messageIn(await read(parts([], finish))).content).toMatchObject([
      {
        name: "ipython",
        malformed: "the provider could not read it (UNEXPECTED_TOOL_CALL: print(x))",
      },
    ]);
  });
});

test("a prompt that was blocked is a failure of the filter", async () => {
  const failure = failureIn(await read(event({ promptFeedback: { blockReason: "OTHER" } })));
  expect(failure).toMatchObject({
    kind: "content_filter",
    message: "tested: the prompt was blocked (OTHER)",
  });
});

test("an error inside the stream has its status", async () => {
  const error = { code: 503, status: "UNAVAILABLE", message: "overloaded" };
  const failure = failureIn(await read(parts([{ text: "Hi" }]), event({ error })));
  expect(failure).toMatchObject({ kind: "overloaded", httpStatus: 503, retryable: true });
});
