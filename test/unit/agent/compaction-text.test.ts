import { describe, expect, test } from "bun:test";
import {
  namespaceNote,
  storedSummary,
  summaryRequest,
} from "../../../src/agent/compaction-text.ts";
import type { ContextItem } from "../../../src/agent/session-context.ts";
import { messageText, type Message } from "../../../src/message.ts";
import { assistant, result, user } from "../../support/transcript.ts";

const item = (message: Message): ContextItem => ({
  entry: { type: "message", id: "e", parentId: null, timestamp: "", message },
  message,
  kept: false,
});

describe("summaryRequest", () => {
  test("shows who said what, shortens long output, names images and leaves thinking out", () => {
    const reply = {
      ...assistant("look", "a"),
      content: [
        { type: "thinking" as const, thinking: "hidden" },
        ...assistant("look", "a").content,
      ],
    };
    const image = {
      ...result("a"),
      isError: true,
      content: [
        { type: "text" as const, text: "o".repeat(5000) },
        { type: "image" as const, data: "AAAA", mimeType: "image/png" },
      ],
    };
    const text = messageText(summaryRequest([user("do it"), reply, image].map(item), 100_000));
    expect(text).toBe(`<conversation>
[user]
do it

[agent]
look

[cell]
print("a")

[output, error]
${"o".repeat(1000)}
[... 3013 characters left out ...]
${"o".repeat(987)}
(1 image(s))
</conversation>

Write the notes now.`);
  });

  test("stays within the size asked for and keeps both ends", () => {
    const many = Array.from({ length: 100 }, (_, index) =>
      item(user(`${index} ${"x".repeat(1000)}`)),
    );
    const text = messageText(summaryRequest(many, 10_000));
    expect(text.length).toBeLessThan(10_200);
    expect(text).toContain("[user]\n0 xxx");
    expect(text).toContain("characters left out");
  });
});

describe("storedSummary", () => {
  test("adds the last request only when it is gone", () => {
    const request = item(user("the task"));
    const notice = {
      ...item(user("a notice")),
      entry: {
        type: "custom_message",
        id: "n",
        parentId: null,
        timestamp: "",
        customType: "x",
        content: "a notice",
        display: true,
      } as const,
    };
    expect(storedSummary(" s ", [request], [item(assistant("x"))])).toEndWith(
      "word for word\nthe task",
    );
    expect(storedSummary(" s ", [request, notice], [])).toEndWith("word for word\nthe task");
    expect(storedSummary(" s ", [request], [item(user("newer"))])).toBe("s");
    expect(storedSummary(" s ", [notice], [])).toBe("s");
  });

  test("bounds a summary that does not end", () => {
    expect(storedSummary("x".repeat(100_000), [], []).length).toBeLessThan(25_000);
  });
});

describe("namespaceNote", () => {
  test("says when nothing is there", () => {
    expect(namespaceNote("restart", { names: [], gone: [] })).toBe(
      "<kernel_state>\nThe kernel was restarted; what was saved has been brought back.\nNo names of yours exist in it.\n</kernel_state>",
    );
  });

  test("lists so many names and counts the rest", () => {
    const names = Array.from({ length: 200 }, (_, index) => `n${index}`);
    expect(namespaceNote("resume", { names, gone: [] })).toContain("n149 and 50 more.");
  });
});
