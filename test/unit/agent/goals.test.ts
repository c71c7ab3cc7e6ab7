import { describe, expect, test } from "bun:test";
import { Goals } from "../../../src/agent/goals.ts";
import { Session } from "../../../src/agent/session.ts";
import { emptyUsage } from "../../../src/message.ts";
import { answer, requests, TestFamily } from "../../support/agent-family.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { assistant, result, user } from "../../support/transcript.ts";

const OBJECTIVE = "All tests pass. Keep $& and {budget} and <goal> as they are.";

/** A session with its goals and what they warned of. */
class Bench {
  readonly warnings: string[] = [];
  readonly session: Session;
  readonly goals: Goals;

  constructor(session = Session.inMemory({ cwd: "/work" })) {
    this.session = session;
    this.goals = new Goals(session, (message) => this.warnings.push(message));
  }

  /** A reply that used so many tokens; with a cell unless told otherwise. */
  work(totalTokens: number, withCell = true): void {
    const usage = { ...emptyUsage(), totalTokens };
    this.session.appendMessage({ ...assistant("working", ...(withCell ? ["c"] : [])), usage });
    if (withCell) this.session.appendMessage(result("c"));
  }

  /** What the loop does with the next prompt. */
  goOn(): string | undefined {
    const content = this.goals.nextPrompt();
    if (content !== undefined)
      this.session.append({ type: "custom_message", customType: "goal", content, display: true });
    return content;
  }
}

describe("a goal", () => {
  test("keeps its objective word for word and counts what was used since it was set", () => {
    const bench = new Bench();
    bench.work(1_000);
    bench.goals.create(OBJECTIVE, 5_000);
    bench.work(2_000);
    bench.session.attributeChildUsage("none", { ...emptyUsage(), totalTokens: 500 });
    expect(bench.goals.current()).toMatchObject({
      objective: OBJECTIVE,
      status: "active",
      tokenBudget: 5_000,
      tokensUsed: 2_500,
    });
    expect(bench.goOn()).toContain(`\n${OBJECTIVE}\n`);
    expect(bench.goOn()).toContain("2,500 of 5,000 tokens used (50 %).");
  });

  test("asks for more until it is complete, and then no more", () => {
    const bench = new Bench();
    bench.goals.create(OBJECTIVE);
    expect(bench.goOn()).toContain("0 tokens used, without a budget.");
    bench.work(700);
    bench.goals.complete();
    bench.work(9_000);
    expect([bench.goOn(), bench.warnings]).toEqual([undefined, []]);
    expect(bench.goals.current()).toMatchObject({ status: "complete", tokensUsed: 700 });
    expect(() => bench.goals.complete()).toThrow("There is no open goal to complete.");
  });

  test("that has used its budget gets one turn to sum up, and the person a note", () => {
    const bench = new Bench();
    bench.goals.create(OBJECTIVE, 1_000);
    bench.work(1_200);
    expect(bench.goOn()).toMatch(
      /The token budget of the goal is used up: 1,200 of 1,000[^]*\$& and \{budget\}/,
    );
    bench.work(100);
    expect(bench.goOn()).toBeUndefined();
    expect(bench.warnings).toEqual([
      "the goal is not complete and its token budget is used up: 1,200 of 1,000 tokens used (120 %).",
    ]);
    expect(bench.goals.complete().status).toBe("complete");
  });

  test("is given up for now when three turns in a row ran no cell", () => {
    const bench = new Bench();
    bench.goals.create(OBJECTIVE);
    for (let turn = 0; turn < 3; turn += 1) {
      expect(bench.goOn()).toBeString();
      bench.work(10, false);
    }
    expect(bench.goOn()).toBeUndefined();
    expect(bench.warnings).toEqual([expect.stringContaining("3 turns went by without a cell")]);
    bench.session.appendMessage(user("go on"));
    expect(bench.goOn()).toBeString();
  });

  test("can't take the place of an open one, but of one that is complete or was taken back", () => {
    const bench = new Bench();
    bench.goals.create("first");
    expect(() => bench.goals.create("second")).toThrow('There is an open goal already: "first"');
    bench.goals.complete();
    bench.goals.create("second");
    expect(bench.goals.set(undefined)).toContain("taken the goal back");
    expect([bench.goals.current(), bench.goOn()]).toEqual([undefined, undefined]);
    expect(bench.goals.set(undefined)).toBeUndefined();
    bench.goals.create("third");
    expect(bench.goals.set("the user's own")).toContain("\nthe user's own\n");
    expect(bench.goals.current()).toMatchObject({ objective: "the user's own", status: "active" });
  });

  test("is there again when the session is resumed, with what it has used", () => {
    using dir = new TempDir();
    const first = new Bench(Session.create({ home: dir.path, cwd: "/work" }));
    first.session.appendMessage(user("start"));
    first.goals.create(OBJECTIVE, 10_000);
    first.work(4_000);
    first.session.close();
    using session = Session.open(first.session.path ?? "");
    const second = new Bench(session);
    expect(second.goals.current()).toEqual(first.goals.current());
    second.work(1_000);
    expect(second.goOn()).toContain("5,000 of 10,000");
  });

  test("in a record that can't be read does no harm", () => {
    const bench = new Bench();
    for (const data of [null, 5, { objective: 1 }, { objective: "x", status: "odd" }])
      bench.session.append({ type: "custom", customType: "goal", data });
    expect([bench.goals.current(), bench.goOn()]).toEqual([undefined, undefined]);
  });
});

describe("the goal requests", () => {
  test("answer with the goal, what remains, and at the end a report", async () => {
    const { handlers } = new TestFamily([]).root;
    const none = { goal: null, remaining_tokens: null, completion_budget_report: null };
    expect(await answer(handlers, "goal.get", {})).toEqual(none);
    const goal = {
      objective: OBJECTIVE,
      status: "active",
      token_budget: 500,
      tokens_used: 0,
      created_at: expect.any(String),
    };
    const created = { goal, remaining_tokens: 500, completion_budget_report: null };
    const payload = { objective: OBJECTIVE, token_budget: 500 };
    expect(await answer(handlers, "goal.create", payload)).toEqual(created);
    expect(await answer(handlers, "goal.get", {})).toEqual(created);
    expect(await answer(handlers, "goal.complete", {})).toEqual({
      goal: { ...goal, status: "complete" },
      remaining_tokens: 500,
      completion_budget_report: "0 of 500 tokens used (0 %).",
    });
  });

  test.each([
    ["no objective", {}, "objective must be a text that is not empty, not absent."],
    ["a book", { objective: "x".repeat(20_000) }, "objective has 20000 characters"],
    [
      "no tokens",
      { objective: "x", token_budget: 0 },
      "token_budget must be a whole number from 1",
    ],
    ["a word as budget", { objective: "x", token_budget: "many" }, 'not "many".'],
  ])("refuse %s", async (_, payload, says) => {
    const { error } = await answer(new TestFamily([]).root.handlers, "goal.create", payload);
    expect(error).toContain(says);
  });

  test("keep the agent at work until it says that it is done", async () => {
    const family = new TestFamily([
      { when: "go", ...requests(["goal.create", { objective: OBJECTIVE }]) },
      { when: "answers", text: "A first step is done." },
      { when: "not marked as complete", ...requests(["goal.complete"]) },
      { when: "completion_budget_report", text: "All is done." },
    ]);
    expect(await family.run("go")).toMatchObject({ subtype: "success", text: "All is done." });
    expect(family.provider.remaining).toBe(0);
  });
});
