import { describe, expect, test } from "bun:test";
import { recapLines } from "../../../src/cli/chat-recap.ts";
import { Session } from "../../../src/agent/session.ts";
import { emptyUsage, type Message } from "../../../src/message.ts";

const user = (content: string): Message => ({ role: "user", content, timestamp: 0 });
const assistant = (text: string): Message => ({
  role: "assistant",
  content: [{ type: "text", text }],
  api: "",
  provider: "p",
  model: "m",
  usage: emptyUsage(),
  stopReason: "stop",
  timestamp: 0,
});

function recapOf(...messages: Message[]): string[] {
  using session = Session.inMemory({ cwd: "/" });
  for (const message of messages) session.appendMessage(message);
  return recapLines(session.entries);
}

describe("the recap of a resumed conversation", () => {
  test.each([
    ["nothing was said", [], []],
    ["only a prompt is there", [user("hi")], ["> hi", ""]],
    [
      "an answer is there",
      [user("a"), assistant("b"), user("c"), assistant("d\n")],
      ["> c", "d", ""],
    ],
    ["the last reply says nothing", [user("a"), assistant("b"), assistant("")], ["> a", "b", ""]],
    [
      "a prompt has lines and controls",
      [user("one\x1b\ntwo"), assistant("b\x07")],
      ["> one\\x1b", "b\\x07", ""],
    ],
  ] as Array<[string, Message[], string[]]>)("when %s", (_name, messages, lines) => {
    expect(recapOf(...messages)).toEqual(lines);
  });

  test("shows the end of a long answer, and says so", () => {
    const answer = Array.from({ length: 20 }, (_, index) => `line ${index + 1}`).join("\n");
    const lines = recapOf(user("hi"), assistant(answer));
    expect(lines.slice(0, 3)).toEqual(["> hi", "…", "line 13"]);
    expect(lines.at(-2)).toBe("line 20");
  });
});
