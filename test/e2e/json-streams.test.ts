/** `json` and `stream-json`: what every line holds, in what order, and what never shows. */

import { describe, expect, test } from "bun:test";
import { schemaFaults } from "../support/event-schema.ts";
import { expectCode, UserHome, type Finished } from "../support/program.ts";
import { ProviderServer, type ServedScript } from "../support/provider-server.ts";
import { useServer } from "../support/user-model.ts";

const SECRET = "a-key-for-tests";
const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** A conversation in which everything happens that has a line of its own. */
const EVENTFUL: ServedScript[] = [
  { status: 503, error: { type: "overloaded_error", message: "try later" } },
  {
    thinking: "I think.",
    text: "I look.",
    ...cell(`print("one"); import sys; print("two", file=sys.stderr); ${JSON.stringify(SECRET)}`),
    usage: { input: 10, output: 5, cacheRead: 3, cacheWrite: 2, reasoning: 1 },
  },
  cell("1/0"),
  cell("import os; os.kill(os.getpid(), 9)"),
  { text: `The key is ${SECRET}, is it not?`, deltaChars: 5 },
  { text: "now all is well" },
];

async function eventfulRun(user: UserHome, ...flags: string[]) {
  const server = await ProviderServer.start(EVENTFUL);
  const env = useServer(user, server);
  const check = ["--check", "test -e checked || { touch checked; echo not yet; exit 1; }"];
  const run = await user.run(["-p", ...flags, ...check, "go"], { env });
  expectCode(run, 0);
  return { run, server };
}

/** What is true of every stream. */
function expectStream({ events, stdout }: Finished): void {
  expect(events.flatMap(schemaFaults)).toEqual([]);
  expect(events[0]).toMatchObject({ type: "system", subtype: "init", schema: 1 });
  expect(events.map(({ type }) => type).indexOf("result")).toBe(events.length - 1);
  expect(events.map(({ seq }) => seq)).toEqual(events.map((_, index) => index));
  expect(new Set(events.map(({ uuid }) => uuid)).size).toBe(events.length);
  expect(new Set(events.map(({ session_id }) => session_id)).size).toBe(1);
  // No reader of lines finds another end of one, and no terminal finds a command.
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028\u2029]/);
  expect(stdout.endsWith("}\n")).toBe(true);
}

describe("stream-json", () => {
  test("has every line as documented, and each call's result directly behind its message", async () => {
    using user = new UserHome();
    const { run, server } = await eventfulRun(user, "--json");
    await server[Symbol.asyncDispose]();
    expectStream(run);
    const { events } = run;
    const kinds = new Set(events.map((event) => event["subtype"] ?? event["type"]));
    for (const kind of ["api_retry", "kernel", "assistant", "user", "check", "success"])
      expect(kinds).toContain(kind);
    expect(kinds).not.toContain("stream_event");
    expect(kinds).not.toContain("tool_progress");
    const uses = events.flatMap((event) =>
      event["type"] === "assistant"
        ? event["message"].content.filter((block: any) => block.type === "tool_use")
        : [],
    );
    const results = events.flatMap((event) =>
      event["type"] === "user" && event["tool_use_result"] !== undefined
        ? event["message"].content
        : [],
    );
    expect(results.map((result) => result.tool_use_id)).toEqual(uses.map((use) => use.id));
    expect(results.map((result) => result.is_error)).toEqual([false, true, true]);
    const states = events.filter(({ subtype }) => subtype === "kernel").map(({ state }) => state);
    expect(states.slice(0, 2)).toEqual(["ready", "lost"]);
    const reasons = events.flatMap(({ type, message }) =>
      type === "assistant" ? [message.stop_reason] : [],
    );
    expect(reasons).toEqual(["tool_use", "tool_use", "tool_use", "end_turn", "end_turn"]);
    expect(events.at(-1)).toMatchObject({
      num_turns: 5,
      num_tool_calls: 3,
      stop_reason: "end_turn",
    });
  });

  test("with partial messages sends what is new only, and its deltas add up to the messages", async () => {
    using user = new UserHome();
    const { run, server } = await eventfulRun(user, "--json", "--include-partial-messages");
    await server[Symbol.asyncDispose]();
    expectStream(run);
    const sum = { text: "", thinking: "", json: "", stdout: "", stderr: "" };
    for (const { type, event, stream, text } of run.events) {
      if (type === "tool_progress" && stream) sum[stream as "stdout" | "stderr"] += text;
      const delta = type === "stream_event" ? (event.delta ?? {}) : {};
      sum.text += delta.text ?? "";
      sum.thinking += delta.thinking ?? "";
      sum.json += delta.partial_json ?? "";
    }
    expect(sum.text).toBe("I look.The key is [redacted], is it not?now all is well");
    expect(sum.thinking).toBe("I think.");
    expect(sum.json).toStartWith('{"code":');
    expect(sum.stdout).toContain("one\n");
    expect(sum.stderr).toContain("two\n");
    expect(run.stdout).not.toContain(SECRET);
  });

  test("never echoes the system prompt, and takes secrets out of values only", async () => {
    using user = new UserHome();
    const { run, server } = await eventfulRun(user, "--json", "--include-partial-messages", "-v");
    await server[Symbol.asyncDispose]();
    const system = server.requests[0]?.body.messages[0].content as string;
    for (const line of system.split("\n").filter((text) => text.length > 60))
      expect(run.stdout).not.toContain(JSON.stringify(line).slice(1, -1));
    expect(run.stdout + run.stderr).not.toContain(SECRET);
    expect(run.stdout).toContain("[redacted]");
    // The model itself gets what its cell printed.
    expect(server.requests[2]?.text).toContain(SECRET);
  });

  test("escapes what ends a line or commands a terminal, and keeps what it means", async () => {
    const odd = "a\u2028b\u2029c\u0085d\u009b31me\u0000f\u007fg\rh";
    await using server = await ProviderServer.start([
      cell(`print(${JSON.stringify(odd)})`),
      { text: odd },
    ]);
    using user = new UserHome();
    const env = useServer(user, server);
    const run = await user.run(["-p", "--json", "--include-partial-messages", "hi"], { env });
    expectCode(run, 0);
    expectStream(run);
    expect(run.events.at(-1)?.["result"]).toBe(odd);
    expect(run.stderr).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/);
  });

  test("begins with init and ends with result also when nothing could be built", async () => {
    using user = new UserHome();
    const run = await user.run(["-p", "--json", "-m", "nobody/nothing", "hi"]);
    expectCode(run, 2);
    expectStream(run);
    expect(run.events).toMatchObject([
      { subtype: "init", model: "nobody/nothing" },
      { subtype: "error_usage", is_error: true, exit_code: 2, error: { code: "usage" } },
    ]);
  });
});

describe("json", () => {
  test("is exactly one line, the same result", async () => {
    using user = new UserHome();
    const { run, server } = await eventfulRun(user, "-o", "json");
    await server[Symbol.asyncDispose]();
    expect(run.stdout.split("\n")).toHaveLength(2);
    expect(run.events.flatMap(schemaFaults)).toEqual([]);
    expect(run.events[0]).toMatchObject({
      type: "result",
      subtype: "success",
      num_turns: 5,
      result: "now all is well",
    });
  });

  test.each([
    { name: "a wrong flag", args: ["--timeout", "soon", "hi"], code: 2 },
    { name: "an empty prompt", args: [""], code: 2 },
    { name: "an unreadable prompt file", args: ["-f", "nowhere"], code: 2 },
    { name: "no credential", args: ["-m", "openai/gpt-5.6", "hi"], code: 3 },
    { name: "no session", args: ["-r", "nowhere", "hi"], code: 2 },
  ])("is one line, and stderr says why, for $name", async ({ args, code }) => {
    using user = new UserHome();
    for (const format of ["json", "stream-json"]) {
      const run = await user.run(["-p", "-o", format, ...args]);
      expectCode(run, code);
      expect(run.events.flatMap(schemaFaults)).toEqual([]);
      expect(run.events.at(-1)).toMatchObject({ type: "result", is_error: true, exit_code: code });
      expect(run.stderr.split("\n")[0]).toMatch(/^prime-agent: /);
      if (format === "json") expect(run.events).toHaveLength(1);
    }
  });
});
