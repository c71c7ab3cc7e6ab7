import { describe, expect, test } from "bun:test";
import type { Message } from "../../../src/message.ts";
import { messagesIn, stepsIn } from "../../support/encoded-request.ts";
import { collect, messageIn, testModel, testRequest } from "../../support/provider-call.ts";
import { SERVED_APIS } from "../../support/provider-formats.ts";
import type { ServedApi } from "../../support/provider-formats.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import type { ServedReply } from "../../support/provider-server.ts";
import { result, user } from "../../support/transcript.ts";

/** What each provider must get back of the thinking `hm` that it sent. */
const RETURNED: Record<ServedApi, string> = {
  "openai-completions": '"reasoning_content":"hm"',
  "openai-responses": '"encrypted_content":"sealed:hm"',
  "anthropic-messages": '{"type":"thinking","thinking":"hm","signature":"signed:hm"}',
  "google-generative-ai": '"thoughtSignature":"c2lnbmF0dXJl"',
};

/** Runs `replies` as turns of one session, each call answered, and gives the requests' bodies. */
async function runTurns(api: ServedApi, replies: ServedReply[], id = "test-model") {
  await using server = await ProviderServer.start(replies);
  const model = testModel(api, server.baseUrl(api), { id });
  const messages: Message[] = [user("Hello")];
  for (const _ of replies) {
    const message = messageIn(await collect(testRequest(model, { messages })));
    messages.push(message);
    for (const block of message.content) {
      if (block.type === "toolCall") messages.push(result(block.id, block.malformed ?? "2"));
    }
  }
  return server.requests.map((request) => request.body);
}

describe.each([...SERVED_APIS])("the turn after a call of %s", (api) => {
  const calling: ServedReply = {
    thinking: "hm",
    text: "Let me see.",
    toolCalls: [{ id: "call_a", name: "ipython", arguments: { code: "1+1" } }],
  };

  test("returns the reply with its private state and the result", async () => {
    const [, next] = await runTurns(api, [calling, { text: "It is 2." }]);
    expect(JSON.stringify(next)).toContain(RETURNED[api]);
    expect(JSON.stringify(next)).toContain("Let me see.");
    expect(stepsIn(api, next)).toEqual([{ call: "call_a" }, { result: "call_a", text: "2" }]);
  });

  test("returns a call that could not be read with valid arguments and one result", async () => {
    const broken = { ...calling, toolCalls: [{ name: "ipython", arguments: '{"code":"rmtree' }] };
    const [, next] = await runTurns(api, [broken, { text: "Again." }]);
    const steps = stepsIn(api, next);
    expect(steps).toHaveLength(2);
    expect(steps[1]).toMatchObject({ result: (steps[0] as { call: string }).call });
    expect(JSON.stringify(messagesIn(api, next))).not.toContain("rmtree");
  });

  test("sends a prefix that the turn before it has sent, byte for byte", async () => {
    const turns = Array.from({ length: 4 }, (_, turn) => ({
      ...calling,
      toolCalls: [{ id: `call_${turn}`, name: "ipython", arguments: { code: `${turn}` } }],
    }));
    const bodies = await runTurns(api, [...turns, { text: "Done." }]);
    const texts = bodies.map((body) =>
      JSON.stringify(body, (key, value) => (key === "cache_control" ? undefined : value)),
    );
    for (const [index, text] of texts.slice(1).entries()) {
      const before = texts[index] as string;
      const list = JSON.stringify(messagesIn(api, bodies[index]), (key, value) =>
        key === "cache_control" ? undefined : value,
      );
      const upToMessages = before.slice(0, before.indexOf(list) + list.length - 1);
      expect(upToMessages.length).toBeGreaterThan(list.length);
      expect(text).toStartWith(upToMessages);
    }
  });
});
