import { describe, expect, test } from "bun:test";
import { chooseCut, compact, type CompactionInput } from "../../../src/agent/compaction.ts";
import { CompactionError, SummaryOverflowError } from "../../../src/agent/errors.ts";
import type { ContextItem } from "../../../src/agent/session-context.ts";
import { AbortedError } from "../../../src/errors.ts";
import { messageText, type Message } from "../../../src/message.ts";
import { assistant, result, user } from "../../support/transcript.ts";

/** Context items whose entry ids are their positions. */
function items(...messages: Message[]): ContextItem[] {
  return messages.map((message, index) => ({
    entry: { type: "message", id: `${index}`, parentId: null, timestamp: "", message },
    message,
    kept: false,
  }));
}

/** A text of about `tokens` tokens. */
const text = (tokens: number) => "word".repeat(tokens);

/** A conversation of `turns` turns with a call each, about 1,000 tokens a turn. */
function conversation(turns: number): ContextItem[] {
  const messages: Message[] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    messages.push(
      user(`prompt ${turn}`),
      assistant("", `c${turn}`),
      result(`c${turn}`, text(1000)),
      assistant("done"),
    );
  }
  return items(...messages);
}

/** Runs a compaction that is answered by `replies`, in order; gives the outcome and what was asked. */
async function run(replies: Array<string | Error>, fields: Partial<CompactionInput> = {}) {
  const requests: string[] = [];
  const compaction = await compact({
    items: conversation(60),
    tokensBefore: 60_000,
    window: { contextWindow: 64_000, maxTokens: 8_000 },
    summarize: async (messages, instructions) => {
      requests.push(`${instructions}\n${messages.map(messageText).join("")}`);
      const reply = replies.shift();
      if (reply === undefined) throw new Error("asked too often");
      if (typeof reply === "string") return reply;
      throw reply;
    },
    signal: new AbortController().signal,
    ...fields,
  });
  return { ...compaction, requests };
}

describe("chooseCut", () => {
  const a = assistant("", "a");
  const cases: Array<[name: string, messages: Message[], keep: number, cut: number]> = [
    [
      "keeps the recent messages that fit",
      [user(text(50)), user(text(50)), user(text(50))],
      110,
      1,
    ],
    ["keeps all when all fits", [user("x"), user("y")], 100, 0],
    ["keeps none when the last one is too large", [user("x"), user(text(50))], 40, 2],
    ["never splits a call from its result", [user("x"), a, result("a", text(50))], 55, 3],
    [
      "keeps a call with its result when both fit",
      [user(text(50)), a, result("a", text(50))],
      70,
      1,
    ],
    [
      "never splits a call from the second of two results",
      [assistant("", "a", "b"), result("a", "x"), result("b", "x")],
      3,
      3,
    ],
    [
      "never splits where a user message came before the result",
      [a, user("x"), result("a", "x"), user("y")],
      6,
      3,
    ],
    [
      "may split between a result and the next reply",
      [a, result("a", text(50)), assistant("x")],
      10,
      2,
    ],
    ["of nothing removes nothing", [], 10, 0],
  ];
  test.each(cases)("%s", (_name, messages, keep, cut) => {
    expect(chooseCut(items(...messages), keep)).toBe(cut);
  });
});

describe("compact", () => {
  test("replaces the older part by the summary and keeps the recent turns", async () => {
    const { entry, tokensAfter, requests } = await run(["the summary"]);
    expect(entry).toEqual({
      type: "compaction",
      summary: "the summary",
      firstKeptEntryId: expect.any(String),
      tokensBefore: 60_000,
    });
    const kept = Number(entry.firstKeptEntryId);
    expect([kept > 160, kept < 200]).toEqual([true, true]);
    expect(tokensAfter).toBeLessThan(20_000);
    expect(requests).toHaveLength(1);
    expect(requests[0]).toContain('[user]\nprompt 0\n\n[cell]\nprint("c0")\n\n[output]\nword');
    expect(requests[0]).not.toContain("prompt 59");
  });

  test("keeps the user's last request word for word when it is among what goes", async () => {
    const messages = [
      user("build the engine"),
      ...Array.from({ length: 40 }, (_, n) => [
        assistant("", `c${n}`),
        result(`c${n}`, text(1000)),
      ]).flat(),
    ];
    const { entry } = await run(["the summary"], { items: items(...messages) });
    expect(entry.summary).toBe(
      "the summary\n\n## The user's last request, word for word\nbuild the engine",
    );
  });

  test("passes on what the person wants kept", async () => {
    const { requests } = await run(["s"], { instructions: "the test names" });
    expect(requests[0]).toContain("heed this wish: the test names");
  });

  test("asks again for less when the summary is too long to help, and gives up after three", async () => {
    const long = text(60_000);
    const few = items(user(text(3000)), assistant(text(3000)));
    const attempt = run([long, long, long], {
      items: few,
      tokensBefore: 6_000,
      window: { contextWindow: 6_000, maxTokens: 1_000 },
    });
    await expect(attempt).rejects.toMatchObject({ code: "compaction_failed", fault: "no_gain" });
  });

  test("sends less when the request for the summary was itself too long", async () => {
    const { requests, entry } = await run([new SummaryOverflowError("too long"), "the summary"], {
      items: conversation(200),
    });
    expect(entry.summary).toBe("the summary");
    expect(requests).toHaveLength(2);
    expect((requests[1] as string).length).toBeLessThan((requests[0] as string).length * 0.6);
  });

  test("an empty summary is asked for again, and is an error in the end", async () => {
    expect((await run([" \n", "the summary"])).entry.summary).toBe("the summary");
    await expect(run(["", "", ""])).rejects.toMatchObject({ fault: "no_summary" });
  });

  test("nothing to remove is an error without a request", async () => {
    const summaryOnly = items(user("x")).map((item): ContextItem => ({
      ...item,
      entry: {
        type: "compaction",
        id: "s",
        parentId: null,
        timestamp: "",
        summary: "x",
        firstKeptEntryId: "",
        tokensBefore: 1,
      },
    }));
    await expect(run([], { items: [] })).rejects.toBeInstanceOf(CompactionError);
    await expect(run([], { items: summaryOnly })).rejects.toMatchObject({
      fault: "nothing_to_remove",
    });
  });

  test("a failed request for the summary is not repeated", async () => {
    await expect(run([new Error("401"), "never asked"])).rejects.toThrow("401");
  });

  test("an aborted compaction asks for nothing", async () => {
    await expect(run([], { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(AbortedError);
  });

  test("a tiny conversation is summarised when the provider insists", async () => {
    const { entry } = await run(["s"], {
      items: items(user("hello")),
      tokensBefore: 2,
      window: { contextWindow: 2, maxTokens: 2 },
    });
    expect(entry).toMatchObject({
      firstKeptEntryId: "",
      summary: expect.stringContaining("hello"),
    });
  });
});
