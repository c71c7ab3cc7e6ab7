/** Each event as its JSON line, checked against the table of lines. */

import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../../../src/agent/events.ts";
import { encodeLine, StreamJson, wireStopReason } from "../../../src/cli/stream-json.ts";
import { schemaFaults } from "../../support/event-schema.ts";
import { assistant, call, result } from "../../support/transcript.ts";

const reader = { id: "a1", name: "reader", parentToolCallId: "c1" };

function linesOf(events: readonly AgentEvent[], partial = false): Array<Record<string, any>> {
  const lines: string[] = [];
  const json = new StreamJson({
    sessionId: "s",
    partial,
    redact: (text) => text.replaceAll("secret", "[redacted]"),
    write: (line) => lines.push(line),
  });
  for (const event of events) json.onEvent(event);
  return lines.map((line) => JSON.parse(line) as Record<string, any>);
}

const message = assistant("look", "c1");
message.content.unshift(
  { type: "thinking", thinking: "hm" },
  { type: "thinking", thinking: "sealed", redacted: true },
);

/** An event and the parts of its line that matter. */
const EVENTS: Array<[AgentEvent, Record<string, unknown>]> = [
  [
    { type: "assistant", message },
    {
      type: "assistant",
      parent_tool_use_id: null,
      message: {
        role: "assistant",
        model: "test/test-1",
        stop_reason: "tool_use",
        content: [
          { type: "thinking", thinking: "hm" },
          { type: "thinking", thinking: "" },
          { type: "text", text: "look" },
          { type: "tool_use", id: "c1", name: "ipython", input: { code: 'print("c1")' } },
        ],
      },
    },
  ],
  [
    { type: "tool_end", message: { ...result("c1"), details: { status: "ok" } } },
    {
      type: "user",
      tool_use_result: { status: "ok" },
      message: {
        role: "user",
        content: [
          {
            type: "tool_result",
            tool_use_id: "c1",
            is_error: false,
            content: [{ type: "text", text: "output of c1" }],
          },
        ],
      },
    },
  ],
  [
    { type: "injected", source: "notice", text: "news" },
    {
      type: "user",
      source: "notice",
      message: { role: "user", content: [{ type: "text", text: "news" }] },
    },
  ],
  [
    { type: "retry", attempt: 1, maxRetries: 3, delayMs: 500, reason: "busy", httpStatus: 429 },
    {
      type: "system",
      subtype: "api_retry",
      attempt: 1,
      max_retries: 3,
      delay_ms: 500,
      http_status: 429,
    },
  ],
  [
    { type: "kernel", state: "lost", reason: "killed" },
    {
      type: "system",
      subtype: "kernel",
      state: "lost",
      boot_ms: null,
      python: null,
      reason: "killed",
    },
  ],
  [
    { type: "compaction", reason: "threshold", tokensBefore: 9, tokensAfter: 3 },
    {
      type: "system",
      subtype: "compact_boundary",
      trigger: "threshold",
      tokens_before: 9,
      tokens_after: 3,
    },
  ],
  [
    { type: "warning", message: "mind" },
    { type: "system", subtype: "warning", message: "mind" },
  ],
  [
    { type: "child", state: "running" },
    { type: "system", subtype: "agent", state: "running", usage: null },
  ],
  [
    { type: "check", command: "make", passed: false, exitCode: 2, output: "no" },
    { type: "check", command: "make", passed: false, exit_code: 2, output: "no" },
  ],
];

/** Events that only show with partial messages. */
const PARTIAL: Array<[AgentEvent, Record<string, unknown>]> = [
  [
    { type: "text_delta", text: "lo" },
    {
      type: "stream_event",
      event: { type: "content_block_delta", delta: { type: "text_delta", text: "lo" } },
    },
  ],
  [
    { type: "thinking_delta", text: "h" },
    { type: "stream_event", event: { delta: { type: "thinking_delta", thinking: "h" } } },
  ],
  [
    { type: "tool_call_delta", id: "c1", name: "ipython", delta: "{" },
    {
      type: "stream_event",
      event: { delta: { type: "input_json_delta", partial_json: "{", tool_use_id: "c1" } },
    },
  ],
  [{ type: "reply_restart" }, { type: "stream_event", event: { type: "message_restart" } }],
  [
    { type: "tool_output", callId: "c1", stream: "stderr", text: "out" },
    { type: "tool_progress", tool_use_id: "c1", stream: "stderr", text: "out" },
  ],
  [
    { type: "kernel_progress", stage: "Starting" },
    { type: "tool_progress", tool_use_id: null, stage: "Starting" },
  ],
];

describe("a line", () => {
  test.each(EVENTS.map(([event, line]) => [event.type, event, line] as const))(
    "of the event %s holds what the table says",
    (_, event, line) => {
      const [found] = linesOf([event]);
      expect(found).toMatchObject(line);
      expect(schemaFaults(found ?? {})).toEqual([]);
    },
  );

  test.each(PARTIAL.map(([event, line]) => [event.type, event, line] as const))(
    "of the event %s comes with partial messages only",
    (_, event, line) => {
      expect(linesOf([event])).toEqual([]);
      const [found] = linesOf([event], true);
      expect(found).toMatchObject(line);
      expect(schemaFaults(found ?? {})).toEqual([]);
    },
  );

  test.each([
    [{ type: "request", turn: 1 }],
    [{ type: "tool_start", call: call("c1"), code: "1" }],
  ] as Array<[AgentEvent]>)("for the event %j there is none", (event) => {
    expect(linesOf([event], true)).toEqual([]);
  });

  test("of a sub-agent names it and the call that started it", () => {
    for (const [event] of EVENTS.filter(([{ type }]) => type !== "check")) {
      const [line] = linesOf([{ ...event, agent: reader }]);
      expect(line).toMatchObject({
        parent_tool_use_id: "c1",
        agent: { id: "a1", name: "reader" },
      });
    }
  });

  test("is numbered, and says how a call was malformed and what an image holds", () => {
    const odd = assistant("", "c1");
    Object.assign(odd.content[0] ?? {}, { arguments: {}, malformed: "cut off" });
    const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
    const lines = linesOf([
      { type: "assistant", message: odd },
      { type: "tool_end", message: { ...result("c1"), content: [image] } },
    ]);
    expect(lines.map(({ seq }) => seq)).toEqual([0, 1]);
    expect(lines[0]?.["message"].content[0]).toMatchObject({ input: {}, malformed: "cut off" });
    expect(lines[1]?.["message"].content[0].content[0]).toEqual({
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "AA==" },
    });
  });
});

describe("encodeLine", () => {
  const redact = (text: string) => text.replaceAll("secret", "[redacted]");

  test("redacts string values, and neither keys nor what is no string", () => {
    const value = { secret: "a secret", list: ["secret", 1, true, null], deep: { n: 5 } };
    expect(JSON.parse(encodeLine(value, redact))).toEqual({
      secret: "a [redacted]",
      list: ["[redacted]", 1, true, null],
      deep: { n: 5 },
    });
  });

  test("is one line of valid JSON for any text", () => {
    const text = "\u0000\n\r\u001b\u007f\u0085\u009b\u2028\u2029\ud800 é 😀";
    const line = encodeLine({ text }, (same) => same);
    expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]/);
    expect(JSON.parse(line)).toEqual({ text: text.toWellFormed() });
  });
});

test.each([
  ["stop", "end_turn"],
  ["toolUse", "tool_use"],
  ["length", "max_tokens"],
  ["aborted", "aborted"],
  [undefined, null],
] as const)("the stop reason %s is %s on the wire", (reason, wire) => {
  expect(wireStopReason(reason)).toBe(wire);
});
