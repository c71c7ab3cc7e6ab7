import { describe, expect, test } from "bun:test";
import { failureIn, joined, messageIn } from "../../support/provider-call.ts";
import { event, readStream } from "../../support/raw-stream.ts";

const API = "openai-responses";

function named(type: string, fields: object): string {
  return event({ type, ...fields }, type);
}

function item(state: "added" | "done", output_index: number, fields: object): string {
  return named(`response.output_item.${state}`, { output_index, item: fields });
}

function text(output_index: number, delta: string): string {
  return named("response.output_text.delta", { output_index, delta });
}

function end(type = "completed", fields: object = { status: "completed" }): string {
  const usage = { input_tokens: 9, output_tokens: 5 };
  return named(`response.${type}`, { response: { id: "resp_1", usage, ...fields } });
}

async function read(...parts: string[]) {
  return await readStream(API, parts.join(""));
}

test("deltas of items that alternate stay with their items", async () => {
  const { content } = messageIn(
    await read(
      item("added", 0, { type: "message", id: "msg_1" }),
      item("added", 1, { type: "function_call", call_id: "a", name: "ipython", arguments: "" }),
      named("response.function_call_arguments.delta", { output_index: 1, delta: '{"code":' }),
      text(0, "Hi"),
      named("response.function_call_arguments.delta", { output_index: 1, delta: '"1"}' }),
      end(),
    ),
  );
  expect(content).toEqual([
    { type: "text", text: "Hi" },
    { type: "toolCall", id: "a", name: "ipython", arguments: { code: "1" } },
  ]);
});

test("items that come only when they are done are taken whole", async () => {
  const { content } = messageIn(
    await read(
      item("done", 0, {
        type: "reasoning",
        id: "rs_1",
        summary: [{ text: "one" }, { text: "two" }],
        encrypted_content: "sealed",
      }),
      item("done", 1, {
        type: "message",
        id: "msg_1",
        phase: "commentary",
        content: [{ type: "output_text", text: "Hi" }],
      }),
      item("done", 2, {
        type: "function_call",
        call_id: "a",
        name: "ipython",
        arguments: '{"code":"1"}',
      }),
      end(),
    ),
  );
  expect(content).toMatchObject([
    { type: "thinking", thinking: "one\n\ntwo" },
    { type: "text", text: "Hi", textSignature: '{"v":1,"id":"msg_1","phase":"commentary"}' },
    { type: "toolCall", id: "a", arguments: { code: "1" } },
  ]);
  const [thinking] = content as Array<{ thinkingSignature: string }>;
  expect(JSON.parse(thinking?.thinkingSignature ?? "")).toMatchObject({
    encrypted_content: "sealed",
  });
});

test("parts of a reasoning summary are paragraphs, and unsealed reasoning has no signature", async () => {
  const summary = (delta: string) =>
    named("response.reasoning_summary_text.delta", { output_index: 0, delta });
  const part = named("response.reasoning_summary_part.added", { output_index: 0 });
  const events = await read(
    item("added", 0, { type: "reasoning", id: "rs_1" }),
    part,
    summary("one"),
    part,
    summary("two"),
    item("done", 0, { type: "reasoning", id: "rs_1", summary: [] }),
    text(1, "Hi"),
    end(),
  );
  expect(joined(events, "thinking_delta")).toBe("one\n\ntwo");
  expect(messageIn(events).content[0]).toEqual({ type: "thinking", thinking: "one\n\ntwo" });
});

test("the final arguments of a call count, not the pieces", async () => {
  const call = { type: "function_call", call_id: "a", name: "ipython" };
  const { content } = messageIn(
    await read(
      item("added", 0, { ...call, arguments: "" }),
      named("response.function_call_arguments.delta", { output_index: 0, delta: '{"code":' }),
      item("done", 0, { ...call, arguments: '{"code":"whole"}' }),
      end(),
    ),
  );
  expect(content).toMatchObject([{ arguments: { code: "whole" } }]);
});

test("a refusal is text, and unknown events change nothing", async () => {
  const events = await read(
    "data: null\n\n",
    named("response.queued", {}),
    named("response.web_search_call.searching", { output_index: 4 }),
    item("added", 3, { type: "web_search_call" }),
    named("response.refusal.delta", { output_index: 0, delta: "No." }),
    end(),
  );
  expect(messageIn(events).content).toEqual([{ type: "text", text: "No." }]);
});

test("a reply that was cut off by its limit says so", async () => {
  const details = { status: "incomplete", incomplete_details: { reason: "max_output_tokens" } };
  expect(messageIn(await read(text(0, "Hi"), end("incomplete", details))).stopReason).toBe(
    "length",
  );
});

describe("a failure", () => {
  test.each<[string, string, string, boolean]>([
    [
      "of the response",
      end("failed", { status: "failed", error: { code: "server_error", message: "boom" } }),
      "server",
      true,
    ],
    [
      "of the request",
      end("failed", { error: { code: "invalid_prompt", message: "boom" } }),
      "invalid_request",
      false,
    ],
    [
      "by rate",
      end("failed", { error: { code: "rate_limit_exceeded", message: "boom" } }),
      "rate_limit",
      true,
    ],
    [
      "inside a completed response",
      end("completed", { error: { code: "server_error", message: "boom" } }),
      "server",
      true,
    ],
    ["as an event", named("error", { code: "server_error", message: "boom" }), "server", true],
    [
      "as a nested event",
      named("error", { error: { type: "server_error", message: "boom" } }),
      "server",
      true,
    ],
  ])("%s is told", async (_, last, kind, retryable) => {
    const failure = failureIn(await read(text(0, "Hi"), last));
    expect(failure).toMatchObject({ kind, retryable, message: "tested: boom" });
  });
});
