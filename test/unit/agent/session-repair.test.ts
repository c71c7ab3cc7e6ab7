import { describe, expect, test } from "bun:test";
import { lostResult, openCalls, repairTranscript } from "../../../src/agent/session-repair.ts";
import { messageText, type Message } from "../../../src/message.ts";
import { assistant, call, result, user } from "../../support/transcript.ts";

const a = assistant("", "a");
const ab = assistant("", "a", "b");
const lost = (id: string) => lostResult(call(id), 2);

describe("repairTranscript", () => {
  const cases: Array<[name: string, stored: Message[], repaired: Message[]]> = [
    [
      "a sound transcript passes unchanged",
      [user("1"), ab, result("a"), result("b")],
      [user("1"), ab, result("a"), result("b")],
    ],
    [
      "a call without a result at the end gets a lost one",
      [user("1"), a],
      [user("1"), a, lost("a")],
    ],
    [
      "a call without a result in the middle gets a lost one",
      [a, assistant("x")],
      [a, lost("a"), assistant("x")],
    ],
    ["the second of two calls gets a lost result", [ab, result("a")], [ab, result("a"), lost("b")]],
    [
      "results in the wrong order are put in the order of the calls",
      [ab, result("b"), result("a")],
      [ab, result("a"), result("b")],
    ],
    [
      "a result behind a user message moves up to its call",
      [a, user("2"), result("a")],
      [a, result("a"), user("2")],
    ],
    [
      "a result whose call was dropped is left out",
      [user("1"), result("z"), assistant("x")],
      [user("1"), assistant("x")],
    ],
    [
      "a result after a later reply counts as lost",
      [a, assistant("x"), result("a")],
      [a, lost("a"), assistant("x")],
    ],
    [
      "a second result for one call is left out",
      [a, result("a"), result("a", "again")],
      [a, result("a")],
    ],
    [
      "an id that the server gives again is paired turn by turn",
      [a, result("a", "1"), a, result("a", "2")],
      [a, result("a", "1"), a, result("a", "2")],
    ],
    [
      "a reply without content is left out",
      [user("1"), assistant(""), user("2")],
      [user("1"), user("2")],
    ],
    ["an empty transcript stays empty", [], []],
  ];
  test.each(cases)("%s", (_name, stored, repaired) => {
    expect(repairTranscript(stored)).toEqual(repaired);
    expect(repairTranscript(repairTranscript(stored))).toEqual(repaired);
  });

  test("any order of calls and results comes out with exactly one result directly after each call", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const pool = [user("u"), a, ab, assistant("t"), result("a"), result("b"), result("z")];
    for (let round = 0; round < 2000; round += 1) {
      const stored = Array.from({ length: random(12) }, () => pool[random(pool.length)] as Message);
      expectPaired(repairTranscript(stored));
    }
  });
});

function expectPaired(messages: readonly Message[]): void {
  let expected: string[] = [];
  for (const message of messages) {
    if (message.role === "toolResult") {
      expect(message.toolCallId).toBe(expected.shift() as string);
      continue;
    }
    expect(expected).toEqual([]);
    if (message.role === "assistant") {
      expected = message.content.flatMap((block) => (block.type === "toolCall" ? [block.id] : []));
    }
  }
  expect(expected).toEqual([]);
}

test("a call of a reply that broke off was not run, and is not open", () => {
  const broken: Message = { ...a, stopReason: "aborted" };
  const [, answer] = repairTranscript([broken]);
  expect(answer && messageText(answer)).toBe(
    "not run: the reply broke off before it was complete.",
  );
  expect(openCalls([broken])).toEqual([]);
});

describe("openCalls", () => {
  test("names the calls of the last reply that nothing answered", () => {
    expect(openCalls([a, ab, result("b"), user("x")])).toEqual([call("a")]);
  });

  test("ignores older replies and transcripts without replies", () => {
    expect(openCalls([a, assistant("x")])).toEqual([]);
    expect(openCalls([user("x")])).toEqual([]);
  });
});
