/** What a run writes, to streams that only remember; the same on real ones is tested on the compiled program. */

import { afterEach, describe, expect, jest, test } from "bun:test";
import type { AgentEvent, RunOutcome } from "../../../src/agent/events.ts";
import { RunState } from "../../../src/agent/run-state.ts";
import type { OutputStream } from "../../../src/cli/output.ts";
import { RunOutput } from "../../../src/cli/run-output.ts";
import type { OutputConfig } from "../../../src/config.ts";
import { schemaFaults } from "../../support/event-schema.ts";

const SECRET = "hunter2hunter2";
const DONE: RunOutcome = { subtype: "success", text: "done", stopReason: "stop" };
const FAILED: RunOutcome = {
  subtype: "error_auth",
  text: "half",
  error: { code: "auth", message: `${SECRET} was\x1b[2J refused`, retryable: false },
};

afterEach(() => jest.useRealTimers());

/** Remembers what is written to it. */
class Memory implements OutputStream {
  text = "";
  constructor(readonly isTerminal: boolean) {}
  write(text: string): void {
    this.text += text;
  }
  async drain(): Promise<void> {}
}

function open(config: Partial<OutputConfig> = {}, terminal = { stdout: false, stderr: false }) {
  const stdout = new Memory(terminal.stdout);
  const stderr = new Memory(terminal.stderr);
  const output = new RunOutput({
    terminal: { stdout, stderr, readerGone: new AbortController().signal },
    config: {
      format: "text",
      includePartialMessages: false,
      quiet: false,
      verbose: false,
      color: "never",
      ...config,
    },
    variables: {},
    version: "1.2.3",
  });
  const app = {
    agent: { state: new RunState() },
    session: { id: "sid", path: "/s/sid.jsonl" },
    startupMs: 1,
    modelName: "test/model",
    agents: () => [],
    redact: (text: string) => text.replaceAll(SECRET, "[redacted]"),
  };
  output.open(app, { cwd: "/" });
  return {
    output,
    stdout,
    stderr,
    events: () =>
      stdout.text
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line) as Record<string, any>),
  };
}

const delta = (text: string): AgentEvent => ({ type: "text_delta", text });

describe("text", () => {
  test("is the answer alone on stdout, and lines on stderr", () => {
    const { output, stdout, stderr } = open();
    output.onEvent(delta("do"));
    output.onEvent({ type: "warning", message: `mind ${SECRET}` });
    output.report({ ...DONE, text: `done ${SECRET}\x1b[1m` }, 0);
    expect(stdout.text).toBe("done [redacted]\\x1b[1m\n");
    expect(stderr.text.replace(/[\d.]+s\n$/, "N")).toBe(
      "test/model · session sid\nwarning: mind [redacted]\nsuccess · 0 turns · 0 cells · 0 tokens · N",
    );
  });

  test("of a failed run is nothing on stdout and the reason on stderr, also with -q", () => {
    const { output, stdout, stderr } = open({ quiet: true });
    output.onEvent({ type: "warning", message: "not shown" });
    output.report(FAILED, 3);
    expect(stdout.text).toBe("");
    expect(stderr.text).toBe("prime-agent: [redacted] was\\x1b[2J refused\n");
  });

  test("streams to a terminal, each reply on its own lines, and is not printed twice", () => {
    const { output, stdout } = open({}, { stdout: true, stderr: true });
    for (const event of [
      delta("I lo\r"),
      delta("ok."),
      { type: "request", turn: 2 },
      delta("half"),
      { type: "reply_restart" },
      delta("do\x1b[2Jne"),
    ] as AgentEvent[])
      output.onEvent(event);
    output.onEvent({
      ...delta("of a sub-agent"),
      agent: { id: "a", name: "n", parentToolCallId: undefined },
    });
    output.report(DONE, 0);
    expect(stdout.text).toBe("I look.\nhalf\ndo\\x1b[2Jne\n");
  });

  test("that streams is interrupted by no progress line in the midst of a line", () => {
    const both = open({}, { stdout: true, stderr: true });
    both.output.onEvent(delta("half"));
    both.output.onEvent({ type: "warning", message: "w" });
    expect(both.stdout.text).toBe("half\n");
    const apart = open({}, { stdout: true, stderr: false });
    apart.output.onEvent(delta("half"));
    apart.output.onEvent({ type: "warning", message: "w" });
    expect(apart.stdout.text).toBe("half");
  });
});

describe("JSON", () => {
  test("as a stream begins with init and ends with result", () => {
    const { output, events } = open({ format: "stream-json" });
    output.onEvent({ type: "warning", message: SECRET });
    output.report(DONE, 0);
    expect(events()).toMatchObject([
      { type: "system", subtype: "init", schema: 1, version: "1.2.3", session_id: "sid", cwd: "/" },
      { type: "system", subtype: "warning", message: "[redacted]" },
      { type: "result", subtype: "success", result: "done", warnings: ["[redacted]"] },
    ]);
    expect(events().slice(1).flatMap(schemaFaults)).toEqual([]);
  });

  test("alone is one line, whatever happened", () => {
    const { output, events } = open({ format: "json", includePartialMessages: true });
    output.onEvent(delta("do"));
    output.onEvent({ type: "warning", message: "w" });
    output.report(FAILED, 3);
    expect(events()).toMatchObject([
      { type: "result", is_error: true, exit_code: 3, session_id: "sid" },
    ]);
  });
});

describe("silence", () => {
  test("of 30 seconds is told, again and again, with what goes on; also to who is quiet and reads JSON", () => {
    jest.useFakeTimers();
    const { output, stderr, events } = open({ format: "stream-json", quiet: true });
    const beats = () => events().filter(({ subtype }) => subtype === "status");
    output.onEvent({
      type: "tool_start",
      call: { type: "toolCall", id: "c", name: "ipython", arguments: {} },
      code: "1",
    });
    jest.advanceTimersByTime(29_000);
    expect(beats()).toEqual([]);
    jest.advanceTimersByTime(10_000);
    expect(beats()).toMatchObject([{ activity: "running a cell" }]);
    expect(beats()[0]?.["elapsed_ms"]).toBeGreaterThanOrEqual(30_000);
    expect(beats().flatMap(schemaFaults)).toEqual([]);
    jest.advanceTimersByTime(60_000);
    expect(beats().length).toBeGreaterThanOrEqual(2);
    expect(stderr.text).toBe("");
  });

  test("ends with whatever happens, and with the run", () => {
    jest.useFakeTimers();
    const { output, stderr } = open();
    for (let second = 0; second < 90; second += 10) {
      jest.advanceTimersByTime(10_000);
      output.onEvent({ type: "tool_output", callId: "c", stream: "stdout", text: "tick\n" });
    }
    expect(stderr.text).not.toContain("still");
    jest.advanceTimersByTime(40_000);
    expect(stderr.text).toMatch(/\n… still \w[\w ]+ after 2m \d+s\n$/);
    output.report(DONE, 0);
    const told = stderr.text;
    jest.advanceTimersByTime(300_000);
    expect(stderr.text).toBe(told);
  });
});
