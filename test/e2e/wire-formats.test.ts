/** All four wire formats through the compiled program: the same conversation, sent as each wants it. */

import { describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";
import { SERVED_APIS } from "../support/provider-formats.ts";
import { ProviderServer } from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

/** One red pixel. */
const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
const SHOW_PNG = `from base64 import b64decode
from IPython.display import Image, display
display(Image(data=b64decode("${PNG}")))
print("shown")`;

const CALL = (code: string, id?: string) => ({
  ...(id && { id }),
  name: "ipython",
  arguments: { code },
});

describe.each(SERVED_APIS)("%s", (api) => {
  test("a cell's text and image go back with the id of its call, and usage and cost are summed", async () => {
    await using server = await ProviderServer.start([
      {
        thinking: "first a look",
        text: "I look.",
        toolCalls: [CALL(SHOW_PNG)],
        usage: { input: 100, output: 20, cacheRead: 50, reasoning: 5 },
      },
      { text: "It is red.", usage: { input: 200, output: 30, cacheRead: 150, reasoning: 1 } },
    ]);
    using user = new UserHome();
    const env = useServer(user, server, { api });
    writeFileSync(join(user.cwd, "pixel.png"), Buffer.from(PNG, "base64"));
    const run = await user.run(["-p", "-o", "json", "-i", "pixel.png", "what colour?"], { env });
    expectCode(run, 0);

    const [first, second] = server.requests.map(sentRequest);
    expect(first?.images).toEqual([PNG]);
    expect(first?.userTexts).toEqual(["what colour?"]);
    expect(first?.tools.map(({ name, schema }) => [name, schema.required])).toEqual([
      ["ipython", ["code"]],
    ]);
    expect(second?.images).toEqual([PNG, PNG]);
    expect(second?.calls.map((call) => call.arguments)).toEqual([{ code: SHOW_PNG }]);
    expect(second?.results.map(({ id }) => id)).toEqual(second?.calls.map(({ id }) => id) ?? []);
    expect(second?.results[0]?.text).toContain("shown");
    // What the model thought goes back in the form in which its provider wants it.
    expect(server.requests[1]?.text).toContain(
      api === "google-generative-ai" ? "thoughtSignature" : "first a look",
    );

    const cost = (300 * 1 + 50 * 2 + 200 * 0.5) / 1e6;
    const usage = {
      input_tokens: 300,
      output_tokens: 50,
      cache_read_input_tokens: 200,
      reasoning_tokens: 6,
      total_tokens: 550,
    };
    const result = run.events[0] as Record<string, any>;
    expect(result).toMatchObject({ result: "It is red.", num_turns: 2, num_tool_calls: 1, usage });
    expect(result["total_cost_usd"]).toBeCloseTo(cost, 12);
    expect(result["modelUsage"]["local/test"]).toMatchObject(usage);
  });

  test("parallel calls run in the order of the reply, one result each, also when one fails", async () => {
    const calls = [CALL("n = 1; print(n)", "a"), CALL("1/0", "b"), CALL("n += 1; print(n)", "c")];
    await using server = await ProviderServer.start([{ toolCalls: calls }, { text: "done" }]);
    using user = new UserHome();
    const run = await user.run(["-p", "hi"], { env: useServer(user, server, { api }) });
    expectCode(run, 0);
    const sent = sentRequest(server.requests[1]);
    expect(sent.results.map(({ id }) => id)).toEqual(sent.calls.map(({ id }) => id));
    expect(sent.results.map(({ text }) => text.trim())).toEqual([
      "1",
      expect.stringContaining("ZeroDivisionError"),
      "2",
    ]);
  });

  test("a cell without output is a neutral text, and an image for a model without eyes is a note", async () => {
    await using server = await ProviderServer.start([
      { toolCalls: [CALL("x = 1")] },
      { toolCalls: [CALL(SHOW_PNG)] },
      { text: "done" },
    ]);
    using user = new UserHome();
    const env = useServer(user, server, { api, model: { input: ["text"] } });
    expectCode(await user.run(["-p", "hi"], { env }), 0);
    const sent = sentRequest(server.requests[2]);
    expect(sent.images).toEqual([]);
    expect(sent.results[0]?.text).toBe("(no output)");
    expect(sent.results[1]?.text).toMatch(/shown[^]*image was left out/);
  });

  test("--effort reaches the request, and the tool has no field that the format does not know", async () => {
    await using server = await ProviderServer.start([{ text: "a" }, { text: "b" }]);
    using user = new UserHome();
    const env = useServer(user, server, { api });
    expectCode(await user.run(["-p", "hi", "--effort", "high"], { env }), 0);
    expectCode(await user.run(["-p", "hi", "--thinking", "low"], { env }), 0);
    const [high, low] = server.requests.map(({ body }) => {
      const { messages, input, contents, system, instructions, systemInstruction, ...rest } = body;
      return JSON.stringify({ ...rest, prompt_cache_key: undefined });
    });
    expect(high).toMatch(/high|budget|thinking/i);
    expect(high).not.toBe(low as string);
    const known = ["description", "input_schema", "name", "parameters", "parametersJsonSchema"];
    expect(
      sentRequest(server.requests[0]).tools[0]?.keys.filter(
        (key) => ![...known, "strict", "type"].includes(key),
      ),
    ).toEqual([]);
  });
});
