import { describe, expect, test } from "bun:test";
import type { AssistantMessage, ImageBlock, Message } from "../../../src/message.ts";
import {
  EMPTY_RESULT_TEXT,
  exactIds,
  LOST_RESULT_TEXT,
  OMITTED_IMAGE_TEXT,
  plainIds,
  prepareTranscript,
} from "../../../src/providers/transcript.ts";
import { bodyOf, bodyText, messagesIn, stepsIn } from "../../support/encoded-request.ts";
import { testModel } from "../../support/provider-call.ts";
import { SERVED_APIS } from "../../support/provider-formats.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const IMAGE: ImageBlock = { type: "image", data: "aGk=", mimeType: "image/png" };

/** A reply of the model that is asked, so that its private state goes back to it. */
function own(message: AssistantMessage, api: string): AssistantMessage {
  return { ...message, api, provider: "tested", model: "test-model" };
}

const lost = (id: string) => ({ result: id, text: LOST_RESULT_TEXT });
const answered = (id: string) => ({ result: id, text: `output of ${id}` });

describe.each([...SERVED_APIS])("a request of %s", (api) => {
  test.each<[string, Message[], ReturnType<typeof stepsIn>]>([
    [
      "a call that was interrupted",
      [user("x"), assistant("a", "c1", "c2", "c3"), result("c1"), user("go on")],
      [{ call: "c1" }, { call: "c2" }, { call: "c3" }, answered("c1"), lost("c2"), lost("c3")],
    ],
    ["a call at the very end", [user("x"), assistant("a", "c1")], [{ call: "c1" }, lost("c1")]],
    ["a result whose call was dropped", [user("x"), result("gone"), assistant("a")], []],
    [
      "results out of order, and a message between",
      [user("x"), assistant("", "c1", "c2"), user("hurry"), result("c2"), result("c1")],
      [{ call: "c1" }, { call: "c2" }, answered("c1"), answered("c2")],
    ],
    [
      "a result that came twice",
      [user("x"), assistant("", "c1"), result("c1"), result("c1", "again")],
      [{ call: "c1" }, answered("c1")],
    ],
    [
      "a result that comes after the next reply",
      [user("x"), assistant("", "c1"), assistant("b"), result("c1")],
      [{ call: "c1" }, lost("c1")],
    ],
    [
      "a reply that broke off inside its call",
      [user("x"), { ...assistant("half", "c1"), stopReason: "error" }, result("c1"), user("y")],
      [],
    ],
    [
      "an aborted reply",
      [user("x"), { ...assistant("half", "c1"), stopReason: "aborted" }, user("y")],
      [],
    ],
    [
      "an empty result",
      [user("x"), assistant("", "c1"), result("c1", "")],
      [{ call: "c1" }, { result: "c1", text: EMPTY_RESULT_TEXT }],
    ],
    [
      "a result of white space",
      [user("x"), assistant("", "c1"), result("c1", " \n")],
      [{ call: "c1" }, { result: "c1", text: EMPTY_RESULT_TEXT }],
    ],
  ])("has one result after each call, given %s", (_, messages, steps) => {
    expect(stepsIn(api, bodyOf(api, messages))).toEqual(steps);
  });

  test("numbers calls that share an id across turns apart", () => {
    const turn = () => [assistant("", "call_0"), result("call_0")];
    const steps = stepsIn(api, bodyOf(api, [user("x"), ...turn(), ...turn(), ...turn()]));
    const calls = steps.flatMap((step) => ("call" in step ? [step.call] : []));
    const results = steps.flatMap((step) => ("result" in step ? [step.result] : []));
    expect(new Set(calls).size).toBe(3);
    expect(results).toEqual(calls);
  });

  test("makes ids that the provider takes out of any", () => {
    const odd =
      "call|with spaces/and:more.than-it-should-have-had-in-sixty-four-characters-all-told";
    const steps = stepsIn(api, bodyOf(api, [user("x"), assistant("", odd), result(odd)]));
    expect(steps).toHaveLength(2);
    const id = (steps[0] as { call: string }).call;
    expect(id).toMatch(/^[a-zA-Z0-9_-]{1,40}$/);
    expect(steps[1]).toMatchObject({ result: id });
  });

  test("survives content that a damaged or foreign session holds", () => {
    const broken = [
      { role: "user", content: null, timestamp: 1 },
      { role: "user", content: [null, { type: "text", text: "kept" }, 7], timestamp: 1 },
      { role: "assistant", content: null },
      { role: "assistant", content: [null, { type: "text", text: "said" }, { type: "odd" }] },
      { ...assistant("", "c1"), content: [{ ...call("c1"), arguments: null }] },
      { role: "toolResult", toolCallId: "c1", content: null },
      null,
    ] as unknown as Message[];
    const body = bodyOf(api, broken);
    expect(JSON.stringify(body)).toContain("kept");
    expect(JSON.stringify(body)).toContain("said");
    expect(stepsIn(api, body)).toEqual([{ call: "c1" }, { result: "c1", text: EMPTY_RESULT_TEXT }]);
  });

  test("has no lone surrogates", () => {
    const bad = "a\ud800b";
    const reply = assistant("", "c1");
    reply.content = [{ ...call("c1"), arguments: { code: bad, list: [bad], [bad]: 1 } }];
    const messages = [user(bad), own(reply, api), result("c1", bad)];
    const text = bodyText(api, messages, {}, { systemPrompt: bad });
    expect(text).not.toMatch(/\\ud[89a-f]/i);
    expect(text.isWellFormed()).toBe(true);
    expect(text.match(/a\uFFFDb/g)?.length).toBeGreaterThanOrEqual(6);
  });

  test("shows images to a model that can see, and says so to one that can't", () => {
    const shown = { ...result("c1"), content: [IMAGE] };
    const messages: Message[] = [
      { role: "user", content: [{ type: "text", text: "look" }, IMAGE], timestamp: 1 },
      assistant("", "c1"),
      shown,
    ];
    expect(bodyText(api, messages).split("aGk=")).toHaveLength(3);
    const blind = bodyText(api, messages, { input: ["text"] });
    expect(blind).not.toContain("aGk=");
    expect(blind.split(OMITTED_IMAGE_TEXT)).toHaveLength(3);
    expect(stepsIn(api, JSON.parse(blind)).at(-1)).toMatchObject({ text: OMITTED_IMAGE_TEXT });
  });

  test("does not show one model's thinking and signatures to another", () => {
    const reply = assistant("answer", "c1");
    reply.content.unshift({ type: "thinking", thinking: "secret", thinkingSignature: "sealed" });
    reply.content[1] = { type: "text", text: "answer", textSignature: "sealed" };
    reply.content[2] = { ...call("c1"), thoughtSignature: "sealed" };
    const text = bodyText(api, [user("x"), reply, result("c1")]);
    expect(text).toContain("answer");
    expect(text).not.toContain("secret");
    expect(text).not.toContain("sealed");
  });

  test("leaves out a reply that was only thought", () => {
    const reply = own(assistant(""), api);
    reply.content = [{ type: "thinking", thinking: "hm", thinkingSignature: "sealed" }];
    expect(messagesIn(api, bodyOf(api, [user("x"), reply, user("y")])).at(-2)).toMatchObject({
      role: "user",
    });
  });

  test("says the same about a turn in every later request", () => {
    const turns = Array.from({ length: 6 }, (_, turn) => [
      user(`turn ${turn}`),
      own(assistant(`reply ${turn}`, `c${turn}`), api),
      result(`c${turn}`),
      own(assistant(`done ${turn}`), api),
    ]);
    const unmarked = (count: number) => {
      const body = bodyOf(api, turns.slice(0, count).flat());
      const plain = JSON.stringify(messagesIn(api, body), (key, value) =>
        key === "cache_control" ? undefined : value,
      );
      return plain.slice(0, -1);
    };
    for (let count = 1; count < turns.length; count += 1) {
      expect(unmarked(count + 1)).toStartWith(unmarked(count));
    }
  });
});

describe("rules for ids", () => {
  test("keep what is valid and are deterministic for what is not", () => {
    const rule = plainIds(40);
    expect(rule("call_1-a")).toBe("call_1-a");
    expect(rule("x".repeat(41))).toBe(rule("x".repeat(41)));
    expect(rule("a.b")).not.toBe(rule("a.c"));
    expect(rule("")).toMatch(/^call_[0-9a-f]{16}$/);
  });

  test("of an exact length give that length", () => {
    const rule = exactIds(9);
    expect(rule("abcDEF123")).toBe("abcDEF123");
    expect(rule("call_abc")).toMatch(/^[a-zA-Z0-9]{9}$/);
  });
});

test("a prepared transcript leaves the original as it was", () => {
  const messages = [user("x"), assistant("a", "c1"), result("c1", "")];
  const before = JSON.stringify(messages);
  prepareTranscript(messages, testModel("scripted", ""), plainIds(40));
  expect(JSON.stringify(messages)).toBe(before);
});
