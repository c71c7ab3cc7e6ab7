import { describe, expect, test } from "bun:test";
import {
  SessionContextKeeper,
  type ContextKeeperParts,
} from "../../../src/agent/context-keeper.ts";
import type { AgentEvent } from "../../../src/agent/events.ts";
import { Session } from "../../../src/agent/session.ts";
import { AbortedError } from "../../../src/errors.ts";
import { emptyUsage, messageText } from "../../../src/message.ts";
import { assistant, result, user } from "../../support/transcript.ts";

const signal = new AbortController().signal;

/** A keeper of a window of 20,000 tokens (16,000 of them for the context) over a session in memory. */
class Bench {
  readonly session = Session.inMemory({ cwd: "/" });
  readonly events: AgentEvent[] = [];
  readonly summaries: string[] = [];
  readonly keeper: SessionContextKeeper;

  constructor(parts: Partial<ContextKeeperParts> = {}) {
    this.keeper = new SessionContextKeeper({
      session: this.session,
      window: () => ({ contextWindow: 20_000, maxTokens: 4_000 }),
      fixedTokens: 500,
      summarize: async () => this.summaries.shift() ?? "",
      emit: (event) => this.events.push(event),
      ...parts,
    });
  }

  /** Adds turns of about 1,000 tokens each. */
  grow(turns: number): void {
    for (let turn = 0; turn < turns; turn += 1) {
      this.session.appendMessage(user(`prompt ${turn}`));
      this.session.appendMessage(assistant("", `c${turn}`));
      this.session.appendMessage(result(`c${turn}`, "word".repeat(1000)));
      this.session.appendMessage(assistant("done"));
    }
  }

  texts(): string[] {
    return this.session.messages().map((message) => messageText(message).slice(0, 200));
  }
}

describe("beforeRequest", () => {
  test("leaves a context with room as it is", async () => {
    const bench = new Bench();
    bench.grow(10);
    const before = bench.session.messages();
    await bench.keeper.beforeRequest(signal);
    expect([bench.session.messages(), bench.events]).toEqual([before, []]);
  });

  test("summarises a full one, keeps recent turns whole, and tells what the kernel holds", async () => {
    const bench = new Bench({
      pruneNamespace: async () => ({
        names: ["df", "src"],
        gone: [{ name: "big", reason: "over 16 MiB" }],
      }),
    });
    bench.grow(20);
    bench.summaries.push("the summary");
    await bench.keeper.beforeRequest(signal);
    const texts = bench.texts();
    expect(texts[0]).toContain("<summary>\nthe summary\n</summary>");
    expect(texts.at(-1)).toBe(
      "<kernel_state>\nThe conversation was summarised; the kernel goes on.\nThese names exist: df, src.\nThese are gone: big (over 16 MiB).\n</kernel_state>",
    );
    expect(texts).toContain("prompt 19");
    expect(texts).not.toContain("prompt 5");
    expect(bench.events).toEqual([
      {
        type: "compaction",
        reason: "threshold",
        tokensBefore: expect.any(Number),
        tokensAfter: expect.any(Number),
      },
    ]);
    expect(bench.keeper.status().percent).toBeLessThan(50);
  });

  test("does not count what the provider counted before the summary", async () => {
    const bench = new Bench();
    bench.grow(3);
    bench.session.appendMessage({ ...assistant("x"), usage: { ...emptyUsage(), input: 19_000 } });
    bench.grow(1);
    bench.summaries.push("the summary");
    await bench.keeper.beforeRequest(signal);
    await bench.keeper.beforeRequest(signal);
    expect(bench.events).toHaveLength(1);
  });

  test("warns of a failure, lets the request try, and asks again only when there is more", async () => {
    let asked = 0;
    const bench = new Bench({
      summarize: async () => {
        asked += 1;
        return "";
      },
    });
    bench.grow(18);
    await bench.keeper.beforeRequest(signal);
    await bench.keeper.beforeRequest(signal);
    expect([asked, bench.events]).toEqual([
      3,
      [{ type: "warning", message: "compaction failed: the model gave no summary" }],
    ]);
    bench.grow(3);
    await bench.keeper.beforeRequest(signal);
    expect(asked).toBe(6);
  });

  test("leaves a provider's failure to the request itself, but not an abort", async () => {
    const aborter = new AbortController();
    const bench = new Bench({
      summarize: async () => {
        throw new Error("529 overloaded");
      },
    });
    bench.grow(20);
    await bench.keeper.beforeRequest(signal);
    expect(bench.events).toEqual([{ type: "warning", message: "529 overloaded" }]);
    const aborted = new Bench({
      summarize: async () => {
        aborter.abort();
        throw new Error("cut off");
      },
    });
    aborted.grow(20);
    await expect(aborted.keeper.beforeRequest(aborter.signal)).rejects.toBeInstanceOf(AbortedError);
  });

  test("ends with an error when the context fills up again and again", async () => {
    const bench = new Bench({ summarize: async () => "s" });
    for (let round = 0; round < 3; round += 1) {
      bench.grow(20);
      await bench.keeper.beforeRequest(signal);
    }
    bench.grow(20);
    await expect(bench.keeper.beforeRequest(signal)).rejects.toMatchObject({
      code: "compaction_failed",
      fault: "fills_again",
    });
  });
});

describe("onOverflow", () => {
  test("compacts once for a request, also when the window was thought to be larger, then says no", async () => {
    const bench = new Bench({ summarize: async () => "s" });
    bench.grow(8);
    await bench.keeper.beforeRequest(signal);
    expect(await bench.keeper.onOverflow(signal)).toBe(true);
    expect(await bench.keeper.onOverflow(signal)).toBe(false);
    expect(bench.events).toMatchObject([{ type: "compaction", reason: "overflow" }]);
    expect(bench.keeper.status().tokens).toBeLessThan(4_000);
    await bench.keeper.beforeRequest(signal);
    expect(await bench.keeper.onOverflow(signal)).toBe(true);
  });

  test("goes on in the middle of a tool loop, with calls and results together", async () => {
    const bench = new Bench({ summarize: async () => "s" });
    bench.session.appendMessage(user("the task"));
    for (let call = 0; call < 15; call += 1) {
      bench.session.appendMessage(assistant("", `c${call}`));
      bench.session.appendMessage(result(`c${call}`, "word".repeat(1000)));
    }
    await bench.keeper.onOverflow(signal);
    const roles = bench.session.messages().map((message) => message.role);
    expect(roles.slice(0, 3)).toEqual(["user", "assistant", "toolResult"]);
    expect(bench.session.messages().map(messageText)[0]).toContain("word for word\nthe task");
  });
});

describe("compactNow", () => {
  test("compacts a small context too, and a kernel that fails to answer is only a warning", async () => {
    const bench = new Bench({
      summarize: async () => "s",
      pruneNamespace: async () => {
        throw new Error("kernel died");
      },
    });
    bench.grow(2);
    await bench.keeper.compactNow(signal, "keep names");
    expect(bench.events).toMatchObject([
      { type: "warning", message: "the kernel's names are not known: kernel died" },
      { type: "compaction", reason: "manual" },
    ]);
  });

  test("of an empty session is an error", async () => {
    await expect(new Bench().keeper.compactNow(signal)).rejects.toMatchObject({
      fault: "nothing_to_remove",
    });
  });
});
