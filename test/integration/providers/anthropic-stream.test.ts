import { describe, expect, test } from "bun:test";
import { failureIn, messageIn } from "../../support/provider-call.ts";
import { event, readStream } from "../../support/raw-stream.ts";

const API = "anthropic-messages";

function named(type: string, fields: object): string {
  return event({ type, ...fields }, type);
}

function start(index: number, content_block: object): string {
  return named("content_block_start", { index, content_block });
}

function delta(index: number, piece: object): string {
  return named("content_block_delta", { index, delta: piece });
}

const BEGIN = named("message_start", {
  message: {
    id: "msg_1",
    usage: { input_tokens: 9, output_tokens: 1, cache_read_input_tokens: 4 },
  },
});

function end(stop_reason: string, more: object = {}, usage: object | null = { output_tokens: 5 }) {
  return named("message_delta", { delta: { stop_reason, ...more }, usage });
}

const STOP = named("message_stop", {});
const HELLO =
  start(0, { type: "text", text: "" }) + delta(0, { type: "text_delta", text: "Hello 👋" });

async function read(...parts: string[]) {
  return await readStream(API, parts.join(""));
}

test("deltas of blocks that alternate stay with their blocks", async () => {
  const { content } = messageIn(
    await read(
      BEGIN,
      start(0, { type: "text", text: "" }),
      start(1, { type: "tool_use", id: "a", name: "ipython", input: {} }),
      start(2, { type: "tool_use", id: "b", name: "ipython", input: {} }),
      delta(2, { type: "input_json_delta", partial_json: '{"code":"2"' }),
      delta(0, { type: "text_delta", text: "Hi" }),
      delta(1, { type: "input_json_delta", partial_json: '{"code":"1"}' }),
      delta(2, { type: "input_json_delta", partial_json: "}" }),
      end("tool_use"),
      STOP,
    ),
  );
  expect(content).toEqual([
    { type: "text", text: "Hi" },
    { type: "toolCall", id: "a", name: "ipython", arguments: { code: "1" } },
    { type: "toolCall", id: "b", name: "ipython", arguments: { code: "2" } },
  ]);
});

test("thinking keeps its signature, and hidden thinking its data", async () => {
  const { content } = messageIn(
    await read(
      BEGIN,
      start(0, { type: "thinking", thinking: "", signature: "" }),
      delta(0, { type: "thinking_delta", thinking: "hm" }),
      delta(0, { type: "signature_delta", signature: "sig" }),
      start(1, { type: "redacted_thinking", data: "sealed" }),
      start(2, { type: "thinking", thinking: "", signature: "" }),
      delta(2, { type: "signature_delta", signature: "only" }),
      start(3, { type: "text", text: "Hi" }),
      end("end_turn"),
      STOP,
    ),
  );
  expect(content).toEqual([
    { type: "thinking", thinking: "hm", thinkingSignature: "sig" },
    { type: "thinking", thinking: "", thinkingSignature: "sealed", redacted: true },
    { type: "thinking", thinking: "", thinkingSignature: "only" },
    { type: "text", text: "Hi" },
  ]);
});

test("arguments that come whole with the start of their block are taken", async () => {
  const block = { type: "tool_use", id: "a", name: "ipython", input: { code: "1" } };
  const { content } = messageIn(await read(BEGIN, start(0, block), end("tool_use"), STOP));
  expect(content).toMatchObject([{ arguments: { code: "1" } }]);
});

test("arguments that come both ways are those of the pieces", async () => {
  const block = { type: "tool_use", id: "a", name: "ipython", input: { code: "1" } };
  const piece = delta(0, { type: "input_json_delta", partial_json: '{"code":"2"}' });
  const { content } = messageIn(await read(BEGIN, start(0, block), piece, end("tool_use"), STOP));
  expect(content).toMatchObject([{ arguments: { code: "2" } }]);
});

test("events and blocks that are unknown change nothing", async () => {
  const { content } = messageIn(
    await read(
      BEGIN,
      named("ping", {}),
      named("something_new", { index: 0 }),
      "data: null\n\n",
      start(7, { type: "server_tool_use", id: "x" }),
      delta(7, { type: "citations_delta", citation: {} }),
      HELLO,
      named("content_block_stop", { index: 0 }),
      end("end_turn"),
      STOP,
    ),
  );
  expect(content).toEqual([{ type: "text", text: "Hello 👋" }]);
});

test("counts of the end go over those of the start, and null changes nothing", async () => {
  const last = { output_tokens: 50, input_tokens: 10, cache_read_input_tokens: null };
  const { usage } = messageIn(await read(BEGIN, HELLO, end("end_turn", {}, last), STOP));
  expect(usage).toMatchObject({ input: 10, output: 50, cacheRead: 4, totalTokens: 64 });
});

test("the stop reason ends the reply, even if the stream breaks before message_stop", async () => {
  expect(messageIn(await read(BEGIN, HELLO, end("end_turn"))).stopReason).toBe("stop");
});

test("message_stop without a stop reason is no end", async () => {
  expect(failureIn(await read(BEGIN, HELLO, STOP))).toMatchObject({
    kind: "network",
    retryable: true,
  });
});

describe("the stop reason", () => {
  test.each([
    ["end_turn", "stop"],
    ["stop_sequence", "stop"],
    ["pause_turn", "stop"],
    ["max_tokens", "length"],
  ])("%s is %s", async (reason, stop) => {
    const message = messageIn(await read(BEGIN, HELLO, end(reason), STOP));
    expect(message.stopReason).toBe(stop as never);
  });

  test("refusal is a failure with its explanation", async () => {
    const details = {
      stop_details: { type: "refusal", category: "cyber", explanation: "not that" },
    };
    const failure = failureIn(await read(BEGIN, HELLO, end("refusal", details), STOP));
    expect(failure).toMatchObject({
      kind: "content_filter",
      message: "tested: the model refused to answer: not that",
      retryable: false,
    });
  });

  test("model_context_window_exceeded is an overflow", async () => {
    const failure = failureIn(await read(BEGIN, HELLO, end("model_context_window_exceeded"), STOP));
    expect(failure).toMatchObject({ kind: "overflow", retryable: false });
  });
});
