/** Secrets: which values they are, and that no text shows one, not even in pieces. */

import { describe, expect, test } from "bun:test";
import type { AgentEvent } from "../../src/agent/events.ts";
import { redactDeltas } from "../../src/app-deltas.ts";
import { createRedactor } from "../../src/app-redact.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { readConfig } from "../../src/cli/read-config.ts";
import { readEnvironment } from "../../src/config.ts";
import { TempDir } from "../support/temp-dir.ts";

function redactorOf(
  env: Record<string, string>,
  apiKey?: string,
  models?: object,
  ...args: string[]
) {
  using home = new TempDir();
  if (models) home.write("models.json", JSON.stringify(models));
  const environment = readEnvironment({ PRIME_AGENT_HOME: home.path, ...env });
  return createRedactor(readConfig(parseArguments(args).options, environment), apiKey);
}

describe("a redactor", () => {
  test("knows the variables that hold credentials: by name, by flag, by models.json", () => {
    const env = {
      OPENAI_API_KEY: "sk-0123456789",
      X_AUTH_TOKEN: "t",
      PATH: "/bin",
      MINE: "m",
      THEIRS: "n",
      OTHER: "o",
    };
    const models = { providers: { a: { apiKey: "$THEIRS" }, b: { apiKey: "literal-key" } } };
    const { variables } = redactorOf(env, undefined, models, "--api-key-env", "MINE");
    expect(variables.sort()).toEqual(["MINE", "OPENAI_API_KEY", "THEIRS", "X_AUTH_TOKEN"]);
  });

  test("takes every secret out, a longer one before one that it contains, and leaves short words", () => {
    const redactor = redactorOf(
      { A_API_KEY: "secret-one", B_API_KEY: "secret-one-more", C_API_KEY: "word" },
      "key-in-use",
    );
    expect(redactor.redact("secret-one-more, secret-one, key-in-use, word")).toBe(
      "[redacted], [redacted], [redacted], word",
    );
    redactor.add("added-later");
    redactor.add("short");
    redactor.add(undefined);
    expect(redactor.redact("added-later short")).toBe("[redacted] short");
  });

  test.each([
    ["nothing of it", "nothing of it", ""],
    ["a key-in-use b", "a [redacted] b", ""],
    ["ends with key-in", "ends with ", "key-in"],
    ["ends with k", "ends with ", "k"],
    ["key-in-use", "[redacted]", ""],
    ["key-key-in-us", "key-", "key-in-us"],
    ["", "", ""],
  ])("of the piece %j can show %j at once", (text, shown, held) => {
    expect(redactorOf({}, "key-in-use").split(text)).toEqual({ shown, held });
  });
});

describe("deltas", () => {
  const redactor = redactorOf({}, "key-in-use");

  /** What a watcher sees, in short. */
  function seen(events: readonly AgentEvent[]): string[] {
    const shown: string[] = [];
    const sink = redactDeltas(redactor, (event) => {
      const who = event.agent ? `${event.agent.id}:` : "";
      const text = "text" in event ? event.text : "delta" in event ? event.delta : "";
      shown.push(`${who}${event.type}${text && ` ${text}`}`);
    });
    events.forEach(sink);
    return shown;
  }
  const text = (piece: string, agent?: AgentEvent["agent"]): AgentEvent => ({
    type: "text_delta",
    text: piece,
    ...(agent && { agent }),
  });
  const request: AgentEvent = { type: "request", turn: 1 };

  test("show no secret in pieces, and nothing is lost or comes out of order", () => {
    expect(seen([text("it is k"), text("ey-in"), text("-use!"), request])).toEqual([
      "text_delta it is ",
      "text_delta [redacted]!",
      "request",
    ]);
    expect(seen([text("it is key"), request])).toEqual([
      "text_delta it is ",
      "text_delta key",
      "request",
    ]);
  });

  test("are kept apart by kind, by call, by stream and by agent", () => {
    const agent = { id: "a", name: "a", parentToolCallId: undefined };
    const output = (stream: "stdout" | "stderr", piece: string): AgentEvent => ({
      type: "tool_output",
      callId: "c",
      stream,
      text: piece,
    });
    expect(seen([text("key"), { type: "thinking_delta", text: "-in-use" }, request])).toEqual([
      "text_delta key",
      "thinking_delta -in-use",
      "request",
    ]);
    expect(seen([text("key"), text("key-in-use", agent), text("-in-use"), request])).toEqual([
      "a:text_delta [redacted]",
      "text_delta [redacted]",
      "request",
    ]);
    expect(seen([output("stdout", "key"), output("stderr", "-in-use"), request])).toEqual([
      "tool_output key",
      "tool_output -in-use",
      "request",
    ]);
  });

  test("of a reply that starts over don't come into the next one", () => {
    expect(seen([text("key"), { type: "reply_restart" }, text("-in-use"), request])).toEqual([
      "reply_restart",
      "text_delta -in-use",
      "request",
    ]);
  });

  test("of a call's arguments are watched, too", () => {
    const piece = (delta: string): AgentEvent => ({
      type: "tool_call_delta",
      id: "c",
      name: "ipython",
      delta,
    });
    expect(seen([piece('{"code": "key-'), piece('in-use"}'), request])).toEqual([
      'tool_call_delta {"code": "',
      'tool_call_delta [redacted]"}',
      "request",
    ]);
  });
});
