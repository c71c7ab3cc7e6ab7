import { describe, expect, test } from "bun:test";
import {
  collect,
  failureIn,
  joined,
  messageIn,
  testModel,
  testRequest,
} from "../../support/provider-call.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import { event, readStream } from "../../support/raw-stream.ts";

const API = "openai-completions";
const DONE = "data: [DONE]\n\n";

function chunk(delta: unknown, finish: string | null = null, more: object = {}): string {
  return event({ id: "x", choices: [{ index: 0, delta, finish_reason: finish }], ...more });
}

function call(
  index: number | undefined,
  id: string | undefined,
  name: string | undefined,
  json: unknown,
) {
  return { index, id, type: "function", function: { name, arguments: json } };
}

/** The calls of a stream of such deltas, one list of calls a chunk. */
async function callsOf(
  ...deltas: Array<Array<ReturnType<typeof call>>>
): Promise<Array<Record<string, unknown>>> {
  const chunks = deltas.map((tool_calls) => chunk({ tool_calls }));
  const events = await readStream(API, chunks.join("") + chunk({}, "tool_calls") + DONE);
  return messageIn(events).content.map((block) => {
    if (block.type !== "toolCall") throw new Error(`not a call: ${block.type}`);
    return { id: block.id, ...block.arguments, ...(block.malformed && { malformed: true }) };
  });
}

const MADE_UP = expect.stringMatching(/^call_[0-9a-f]{32}$/) as unknown as string;

describe("events that carry nothing", () => {
  test.each<[string, string]>([
    ["null", "data: null\n\n"],
    ["an object without choices", event({})],
    ["no choices", event({ choices: [] })],
    ["a null choice", event({ choices: [null] })],
    ["a null delta", event({ choices: [{ index: 0, delta: null, finish_reason: null }] })],
    ["null content", chunk({ role: "assistant", content: null, tool_calls: null })],
    ["a list with null in it", chunk({ content: [null, { type: "text", text: "" }] })],
    ["an event without data", "event: done\n\n"],
    ["a bare word", "data: ping\n\n"],
    ["another kind of event", event({ type: "status", status: "queued" }, "status")],
    ["a usage of null", event({ choices: [], usage: null })],
    ["an error of null", event({ choices: [], error: null })],
  ])("%s changes nothing", async (_, nothing) => {
    const body =
      nothing + chunk({ content: "Hel" }) + nothing + chunk({ content: "lo 👋" }) + nothing;
    const events = await readStream(API, body + chunk({}, "stop") + nothing + DONE);
    expect(messageIn(events)).toMatchObject({
      content: [{ type: "text", text: "Hello 👋" }],
      stopReason: "stop",
    });
  });
});

describe("calls are told apart", () => {
  test("by index, when their deltas alternate", async () => {
    expect(
      await callsOf(
        [call(0, "a", "ipython", ""), call(1, "b", "ipython", "")],
        [call(1, undefined, undefined, '{"code":')],
        [call(0, undefined, undefined, '{"code":"1')],
        [call(1, undefined, undefined, '"2"}'), call(0, undefined, undefined, '"}')],
      ),
    ).toEqual([
      { id: "a", code: "1" },
      { id: "b", code: "2" },
    ]);
  });

  test("by their ids, when one index is used for all", async () => {
    expect(
      await callsOf(
        [call(0, "a", "ipython", '{"code":"1"}')],
        [call(0, "b", "ipython", '{"code":')],
        [call(0, undefined, undefined, '"2"}')],
      ),
    ).toEqual([
      { id: "a", code: "1" },
      { id: "b", code: "2" },
    ]);
  });

  test("by completeness, when one index is used for all and ids are empty", async () => {
    expect(
      await callsOf(
        [call(0, "", "ipython", '{"code":"1"}')],
        [call(0, "", "ipython", '{"code":"2"}')],
      ),
    ).toEqual([
      { id: MADE_UP, code: "1" },
      { id: MADE_UP, code: "2" },
    ]);
  });

  test("by index, when id and name are repeated with each delta", async () => {
    expect(
      await callsOf(
        [call(0, "a", "ipython", '{"code"')],
        [call(0, "a", "ipython", ':"1"}')],
        [call(1, "b", "ipython", '{"code":"2"}')],
      ),
    ).toEqual([
      { id: "a", code: "1" },
      { id: "b", code: "2" },
    ]);
  });

  test("by index, when each delta has another id but no name", async () => {
    expect(
      await callsOf(
        [call(0, "a", "ipython", '{"code"')],
        [call(0, "b", undefined, ':"1"')],
        [call(0, "c", "", "}")],
      ),
    ).toEqual([{ id: "a", code: "1" }]);
  });

  test("by index, when two have the same id", async () => {
    expect(
      await callsOf(
        [call(0, "a", "ipython", '{"code":"1"}')],
        [call(1, "a", "ipython", '{"code":"2"}')],
      ),
    ).toEqual([
      { id: "a", code: "1" },
      { id: MADE_UP, code: "2" },
    ]);
  });

  test("by id or by order, when there is no index", async () => {
    expect(
      await callsOf(
        [call(undefined, "a", "ipython", '{"code":')],
        [call(undefined, undefined, undefined, '"1"}')],
        [call(undefined, "b", "ipython", '{"code":"2"}')],
      ),
    ).toEqual([
      { id: "a", code: "1" },
      { id: "b", code: "2" },
    ]);
  });

  test("when their arguments are objects instead of text", async () => {
    expect(await callsOf([call(0, "a", "ipython", { code: "1" })])).toEqual([
      { id: "a", code: "1" },
    ]);
  });

  test("when the name comes after the arguments have begun", async () => {
    expect(
      await callsOf([call(0, "a", undefined, '{"code":')], [call(0, undefined, "ipython", '"1"}')]),
    ).toEqual([{ id: "a", code: "1" }]);
  });
});

describe("the end", () => {
  test("is the finish reason, even if nothing follows it", async () => {
    const events = await readStream(API, chunk({ content: "Hi" }) + chunk({}, "stop"));
    expect(messageIn(events).stopReason).toBe("stop");
  });

  test("is [DONE], even if no finish reason came", async () => {
    const events = await readStream(API, chunk({ content: "Hi" }) + DONE);
    expect(messageIn(events).stopReason).toBe("stop");
  });

  test("is a finish reason in the chunk of the last content", async () => {
    const events = await readStream(API, chunk({ content: "Hi" }, "stop") + DONE);
    expect(joined(events, "text_delta")).toBe("Hi");
  });

  test.each([
    ["tool_calls", "stop"],
    ["function_call", "stop"],
    ["eos", "stop"],
    ["max_tokens", "length"],
    ["model_length", "length"],
  ])("with reason %s and no calls is %s", async (reason, stop) => {
    const events = await readStream(API, chunk({ content: "Hi" }) + chunk({}, reason) + DONE);
    expect(messageIn(events).stopReason).toBe(stop as never);
  });

  test("with reason stop after a call is a call nevertheless", async () => {
    const body =
      chunk({ tool_calls: [call(0, "a", "ipython", '{"code":"1"}')] }) + chunk({}, "stop");
    expect(messageIn(await readStream(API, body)).stopReason).toBe("toolUse");
  });

  test.each([
    ["error", "server"],
    ["network_error", "server"],
    ["insufficient_system_resource", "server"],
    ["model_context_window_exceeded", "overflow"],
    ["content_filter", "content_filter"],
    ["sensitive", "content_filter"],
  ])("with reason %s is a failure of kind %s", async (reason, kind) => {
    const events = await readStream(API, chunk({ content: "Hi" }) + chunk({}, reason) + DONE);
    expect(failureIn(events).kind).toBe(kind as never);
  });

  test("an error instead of it is a failure, whatever its form", async () => {
    for (const error of [
      event({ error: { message: "upstream broke", code: 502 } }),
      event({ object: "error", message: "upstream broke", code: 502 }),
      event("upstream broke", "error"),
    ]) {
      const failure = failureIn(await readStream(API, chunk({ content: "Hi" }) + error));
      expect(failure).toMatchObject({ kind: "server", retryable: true });
      expect(failure.message).toBe("tested: upstream broke");
    }
  });

  test("an event that is damaged JSON is a fault of the network", async () => {
    const failure = failureIn(await readStream(API, 'data: {"choices":[{"del\n\n' + DONE));
    expect(failure).toMatchObject({ kind: "network", retryable: true });
  });
});

describe("reasoning", () => {
  test.each(["reasoning_content", "reasoning", "reasoning_text"])(
    "in %s is kept with its field",
    async (field) => {
      const body =
        chunk({ [field]: "h" }) + chunk({ [field]: "m", content: "" }) + chunk({ content: "Hi" });
      const { content } = messageIn(await readStream(API, body + chunk({}, "stop")));
      expect(content).toEqual([
        { type: "thinking", thinking: "hm", thinkingSignature: field },
        { type: "text", text: "Hi" },
      ]);
    },
  );

  test("in two fields at once is taken once", async () => {
    const body =
      chunk({ reasoning_content: "hm", reasoning: "hm" }) + chunk({ content: "Hi" }, "stop");
    expect(joined(await readStream(API, body), "thinking_delta")).toBe("hm");
  });

  test("as parts of the content is thinking", async () => {
    const thinking = { type: "thinking", thinking: [{ type: "text", text: "hm" }] };
    const body =
      chunk({ content: [thinking] }) + chunk({ content: [{ type: "text", text: "Hi" }] });
    const { content } = messageIn(await readStream(API, body + chunk({}, "stop")));
    expect(content).toEqual([
      { type: "thinking", thinking: "hm" },
      { type: "text", text: "Hi" },
    ]);
  });

  test("with details keeps them joined, to go back unchanged", async () => {
    const detail = (more: object) => ({ reasoning_details: [{ index: 0, format: "f", ...more }] });
    const body =
      chunk({ reasoning: "h", ...detail({ type: "reasoning.text", text: "h" }) }) +
      chunk({ reasoning: "m", ...detail({ type: "reasoning.text", text: "m", signature: "s" }) }) +
      chunk(detail({ type: "reasoning.encrypted", data: "sealed" })) +
      chunk({ content: "Hi" }, "stop");
    const [thinking] = messageIn(await readStream(API, body)).content;
    expect(thinking).toMatchObject({ type: "thinking", thinking: "hm" });
    const { thinkingSignature = "" } = thinking as { thinkingSignature?: string };
    expect(JSON.parse(thinkingSignature)).toEqual([
      { index: 0, format: "f", type: "reasoning.text", text: "hm", signature: "s" },
      { index: 0, format: "f", type: "reasoning.encrypted", data: "sealed" },
    ]);
  });
});

describe("usage", () => {
  const usage = { prompt_tokens: 100, completion_tokens: 10 };

  test.each<[string, string, object]>([
    ["in a chunk of its own", event({ choices: [], usage }), { input: 100, output: 10 }],
    ["with the finish reason", chunk({}, "stop", { usage }), { input: 100, output: 10 }],
    [
      "in the choice",
      event({ choices: [{ delta: {}, finish_reason: "stop", usage }] }),
      { input: 100 },
    ],
    ["as Groq has it", chunk({}, "stop", { x_groq: { usage } }), { input: 100, output: 10 }],
    [
      "with cached tokens",
      event({ choices: [], usage: { ...usage, prompt_tokens_details: { cached_tokens: 90 } } }),
      { input: 10, cacheRead: 90 },
    ],
    [
      "with DeepSeek's cached tokens",
      event({ choices: [], usage: { ...usage, prompt_cache_hit_tokens: 90 } }),
      { input: 10, cacheRead: 90 },
    ],
    [
      "with reasoning inside the completion",
      event({
        choices: [],
        usage: { ...usage, total_tokens: 110, completion_tokens_details: { reasoning_tokens: 4 } },
      }),
      { output: 10, reasoning: 4, totalTokens: 110 },
    ],
    [
      "with reasoning beside the completion",
      event({
        choices: [],
        usage: { ...usage, total_tokens: 114, completion_tokens_details: { reasoning_tokens: 4 } },
      }),
      { output: 14, reasoning: 4, totalTokens: 114 },
    ],
  ])("%s is counted", async (_, last, expected) => {
    const finish = last.includes("finish_reason") ? "" : chunk({}, "stop");
    const events = await readStream(API, chunk({ content: "Hi" }) + finish + last + DONE);
    expect(messageIn(events).usage).toMatchObject(expected);
  });
});

test("a data line of a megabyte arrives whole", async () => {
  const text = "äöü ".repeat(180_000);
  await using server = await ProviderServer.start([{ text, deltaChars: text.length }]);
  const events = await collect(testRequest(testModel(API, server.baseUrl(API))));
  expect(joined(events, "text_delta")).toBe(text);
});
