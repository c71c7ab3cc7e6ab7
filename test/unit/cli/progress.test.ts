import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../../../src/agent/events.ts";
import { ProgressLines } from "../../../src/cli/progress.ts";
import type { ToolCallBlock, ToolResultMessage } from "../../../src/message.ts";

const call: ToolCallBlock = { type: "toolCall", id: "1", name: "ipython", arguments: {} };
const reader = { id: "a", name: "reader", parentToolCallId: undefined };
const writer = { id: "b", name: "writer", parentToolCallId: undefined };

function output(text: string, agent?: AgentEvent["agent"]): AgentEvent {
  return { type: "tool_output", callId: "1", stream: "stdout", text, ...(agent && { agent }) };
}

function result(fields: Partial<ToolResultMessage>): AgentEvent {
  return {
    type: "tool_end",
    message: {
      role: "toolResult",
      toolCallId: "1",
      toolName: "ipython",
      content: [],
      isError: false,
      timestamp: 0,
      ...fields,
    },
  };
}

function linesOf(events: readonly AgentEvent[], detail: "brief" | "full" = "brief"): string {
  let text = "";
  const progress = new ProgressLines({
    write: (part) => (text += part),
    color: false,
    redact: (part) => part.replaceAll("hunter2", "[redacted]"),
    detail,
  });
  for (const event of events) progress.onEvent(event);
  return text;
}

describe("a run as lines", () => {
  const code = "a = 1\nb = 2";

  test("names a cell by its first line, or shows the whole of it", () => {
    const start: AgentEvent = { type: "tool_start", call, code };
    expect(linesOf([start])).toBe("> a = 1 (+1 lines)\n");
    expect(linesOf([start], "full")).toBe(">>> a = 1\n... b = 2\n");
    expect(linesOf([{ ...start, agent: reader }], "full")).toBe("[reader] > a = 1 (+1 lines)\n");
  });

  test("shows a change with its lines, and a note for each image", () => {
    const diffs = [{ path: "a.py", old_str: "x\n", new_str: "y\n", start_line: 3 }];
    const end = result({
      details: { diffs },
      content: [{ type: "image", mimeType: "image/png", data: "A".repeat(4_000) }],
    });
    expect(linesOf([end])).toBe("edited a.py:3\n");
    expect(linesOf([end], "full")).toBe(
      "edited a.py:3\n- x\n+ y\n[image/png, 3 kB, shown to the model]\n",
    );
  });

  test("shows what the model is told beside the output", () => {
    const end = result({ details: { notes: ["[late output of earlier cells]\nhere"] } });
    expect(linesOf([end])).toBe("[late output of earlier cells] here\n");
    expect(linesOf([end], "full")).toBe("[late output of earlier cells]\nhere\n");
  });

  test.each([
    ["an error", { details: { error: { ename: "E", evalue: "bad\nthing" } } }, "✗ E: bad thing\n"],
    ["an interrupt", { details: { status: "aborted" } }, "✗ interrupted\n"],
    ["a refusal", { content: [{ type: "text", text: "Not run." }] }, "✗ Not run.\n"],
  ] as Array<[string, Partial<ToolResultMessage>, string]>)(
    "says %s in a line",
    (_name, fields, line) => {
      expect(linesOf([result({ ...fields, isError: true })])).toBe(line);
    },
  );

  test("begins a line of its own after output without a line break", () => {
    expect(linesOf([output("half"), { type: "warning", message: "w" }])).toBe("half\nwarning: w\n");
  });

  test("marks each line of a sub-agent, and keeps two that speak at once apart", () => {
    const events = [
      output("a\nb", reader),
      output("c", reader),
      output("d", writer),
      output("e\n"),
    ];
    expect(linesOf(events)).toBe("[reader] a\n[reader] bc\n[writer] d\ne\n");
  });

  test("lets no control character and no secret through", () => {
    const events = [output("a\x1b[2Jb\r\n"), output("hunter2\n")];
    expect(linesOf(events)).toBe("a\\x1b[2Jb\n[redacted]\n");
  });
});
