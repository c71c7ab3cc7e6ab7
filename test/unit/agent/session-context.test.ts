import { describe, expect, test } from "bun:test";
import { activeBranch, contextItems, entryMessage } from "../../../src/agent/session-context.ts";
import type { SessionEntry } from "../../../src/agent/session-entry.ts";
import { messageText } from "../../../src/message.ts";
import { user } from "../../support/transcript.ts";

const timestamp = "2026-01-01T00:00:00.000Z";

function said(id: string, parentId: string | null): SessionEntry {
  return { type: "message", id, parentId, timestamp, message: user(id) };
}

function compaction(id: string, parentId: string, firstKeptEntryId: string): SessionEntry {
  return {
    type: "compaction",
    id,
    parentId,
    timestamp,
    summary: `sum ${id}`,
    firstKeptEntryId,
    tokensBefore: 9,
  };
}

function entry(fields: Record<string, unknown>): SessionEntry {
  return { id: "e", parentId: null, timestamp, ...fields } as unknown as SessionEntry;
}

const ids = (entries: readonly SessionEntry[]) => entries.map((each) => each.id);
const texts = (entries: SessionEntry[]) =>
  contextItems(activeBranch(entries)).map((item) =>
    messageText(item.message).replace(/[^]*<summary>\n([^]*)\n<\/summary>/, "[$1]"),
  );

describe("activeBranch", () => {
  const cases: Array<[name: string, entries: SessionEntry[], branch: string[]]> = [
    [
      "a chain is the whole file",
      [said("a", null), said("b", "a"), said("c", "b")],
      ["a", "b", "c"],
    ],
    [
      "the last entry is the leaf and other branches are left out",
      [said("a", null), said("b", "a"), said("c", "a")],
      ["a", "c"],
    ],
    ["a new root starts over", [said("a", null), said("b", null)], ["b"]],
    [
      "a lost parent is replaced by the entry before",
      [said("a", null), said("c", "lost"), said("d", "c")],
      ["a", "c", "d"],
    ],
    [
      "an entry that is its own parent follows the entry before",
      [said("a", null), said("b", "b")],
      ["a", "b"],
    ],
    ["a cycle ends", [said("a", "b"), said("b", "a")], ["a", "b"]],
    [
      "a duplicate id means its nearest earlier bearer",
      [said("a", null), said("x", "a"), said("x", "x"), said("d", "x")],
      ["a", "x", "x", "d"],
    ],
    ["an empty file has no branch", [], []],
  ];
  test.each(cases)("%s", (_name, entries, branch) => {
    expect(ids(activeBranch(entries))).toEqual(branch);
  });
});

describe("contextItems", () => {
  test("a compaction gives its summary, then what it kept, then what came after", () => {
    const entries = [said("a", null), said("b", "a"), compaction("s", "b", "b"), said("c", "s")];
    expect(texts(entries)).toEqual(["[sum s]", "b", "c"]);
  });

  test("of several compactions the latest counts, and earlier summaries among the kept are left out", () => {
    const entries = [
      said("a", null),
      said("b", "a"),
      compaction("s", "b", "b"),
      said("c", "s"),
      compaction("t", "c", "b"),
      said("d", "t"),
    ];
    expect(texts(entries)).toEqual(["[sum t]", "b", "c", "d"]);
  });

  test("a first kept entry that is lost keeps nothing from before", () => {
    expect(texts([said("a", null), compaction("s", "a", "gone"), said("b", "s")])).toEqual([
      "[sum s]",
      "b",
    ]);
  });
});

describe("entryMessage", () => {
  const cases: Array<[name: string, fields: Record<string, unknown>, text: string | undefined]> = [
    [
      "custom_message is a user message",
      { type: "custom_message", customType: "x", content: "injected", display: false },
      "injected",
    ],
    [
      "branch_summary is a user message",
      { type: "branch_summary", fromId: "x", summary: "went left" },
      "Another line of this conversation was left; this is its summary:\n\n<summary>\nwent left\n</summary>",
    ],
    ["custom is not for the model", { type: "custom", customType: "x", data: 1 }, undefined],
    ["label is not for the model", { type: "label", targetId: "x", label: "y" }, undefined],
    ["an unknown type is not for the model", { type: "git_state", branch: "x" }, undefined],
    [
      "a shell command that a person ran is a user message",
      { type: "message", message: { role: "bashExecution", command: "ls", output: "a b" } },
      "I ran `ls`:\n\na b",
    ],
    [
      "a shell command kept from the model stays so",
      {
        type: "message",
        message: { role: "bashExecution", command: "ls", output: "", excludeFromContext: true },
      },
      undefined,
    ],
    [
      "an unknown role is left out",
      { type: "message", message: { role: "hologram", content: "x" } },
      undefined,
    ],
    [
      "content of the wrong kind is empty",
      { type: "message", message: { role: "user", content: 7 } },
      "",
    ],
    [
      "a reply stored as a string is a text block",
      { type: "message", message: { role: "assistant", content: "hi" } },
      "hi",
    ],
  ];
  test.each(cases)("%s", (_name, fields, text) => {
    const message = entryMessage(entry(fields));
    expect(message && messageText(message)).toBe(text);
  });

  test("call arguments that are no object become an empty one and say so", () => {
    const message = entryMessage(
      entry({
        type: "message",
        message: {
          role: "assistant",
          content: [{ type: "toolCall", id: "a", name: "ipython", arguments: '{"code' }],
        },
      }),
    );
    expect(message?.content).toEqual([
      {
        type: "toolCall",
        id: "a",
        name: "ipython",
        arguments: {},
        malformed: "its arguments were not stored as an object",
      },
    ]);
  });
});
