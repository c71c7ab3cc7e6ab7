import { describe, expect, test } from "bun:test";
import { completeCommand, readLine, type ChatLine } from "../../../src/cli/chat-line.ts";

const COMMANDS = ["help", "model", "compact", "new", "skill:NAME"];

describe("a line of the chat", () => {
  test.each([
    ["hello", { kind: "prompt", text: "hello" }],
    ["/help", { kind: "command", name: "help", words: "" }],
    ["/model  a/b ", { kind: "command", name: "model", words: "a/b" }],
    ["/compact keep\nall names", { kind: "command", name: "compact", words: "keep\nall names" }],
    ["/skill:cook  fish", { kind: "skill", name: "cook", words: "fish" }],
    ["/skill:NAME", { kind: "command", name: "skill:NAME", words: "" }],
    ["/hepl", { kind: "unknown", name: "hepl", near: ["/help"] }],
    ["/no-such-thing", { kind: "unknown", name: "no-such-thing", near: [] }],
    [" /help", { kind: "prompt", text: " /help" }],
    ["/usr/bin holds what?", { kind: "prompt", text: "/usr/bin holds what?" }],
    ["/no/such/path", { kind: "prompt", text: "/no/such/path" }],
    ["/tmp", { kind: "prompt", text: "/tmp" }],
    ["/ is the root", { kind: "prompt", text: "/ is the root" }],
    ["/", { kind: "prompt", text: "/" }],
  ] as Array<[string, ChatLine]>)("%j", (line, meant) => {
    expect(readLine(line, COMMANDS)).toEqual(meant);
  });
});

describe("the completion of a command", () => {
  test.each([
    ["/he", "/help "],
    ["/h", "/help "],
    ["/", "/"],
    ["/mo", "/mo"],
    ["/mod", "/mode"],
    ["/nothing", "/nothing"],
    ["/help me", "/help me"],
    ["he", "he"],
    ["", ""],
  ])("%j becomes %j", (text, completed) => {
    expect(completeCommand(text, ["help", "model", "modest", "more"])).toBe(completed);
  });
});
