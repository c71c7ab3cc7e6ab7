/** The loop with a scripted model and no kernel: what goes round, what ends it, and what is in the transcript then. */

import { describe, expect, test } from "bun:test";
import { AbortedError, PrimeAgentError } from "../../../src/errors.ts";
import type { Message } from "../../../src/message.ts";
import type { ScriptedReply } from "../../../src/providers/scripted.ts";
import { calls, cellResult, LoopBench } from "../../support/loop-bench.ts";

describe("a prompt", () => {
  test("is answered with the results of every call in between, in order", async () => {
    const bench = new LoopBench([calls("a", "b"), calls("c"), { text: "done" }]);
    expect(await bench.run("hello")).toEqual({
      subtype: "success",
      text: "done",
      stopReason: "stop",
    });
    expect(bench.cells).toEqual(["a", "b", "c"]);
    expect(bench.sent(2)).toEqual([
      "user: hello",
      "assistant: → a → b",
      "toolResult: output of a",
      "toolResult: output of b",
      "assistant: → c",
      "toolResult: output of c",
    ]);
    expect(bench.agent.state).toMatchObject({ turns: 3, toolCalls: 3 });
    expect(bench.agent.idle).toBe(true);
  });

  test("starts the kernel while the first request is under way, and hears of a revived one before it", async () => {
    const order: string[] = [];
    const bench = new LoopBench([{ text: "done" }], {
      prewarm: () => order.push("prewarm"),
      revival: async () => {
        order.push("revival");
        bench.agent.inbox.push({ source: "kernel-state", content: "<names>" });
      },
    });
    await bench.run();
    expect(order).toEqual(["prewarm", "revival"]);
    expect(bench.sent(0)).toEqual(["user: go", "user: <names>"]);
  });

  test("of nothing answers what waits in the inbox", async () => {
    const bench = new LoopBench([{ text: "heard" }]);
    bench.agent.inbox.push({ source: "agent-message", content: "news" });
    expect((await bench.agent.run(undefined, bench.abort.signal)).text).toBe("heard");
    expect(bench.sent(0)).toEqual(["user: news"]);
  });

  test("emits its events in the order in which things happen", async () => {
    const bench = new LoopBench([calls("a"), { text: "done" }], {
      answer: (code, { onOutput, onProgress }) => {
        onProgress?.("Starting");
        onOutput?.("stdout", "out");
        return code;
      },
    });
    await bench.run();
    const types = bench.events.map(({ type }) => type).filter((type) => !type.endsWith("_delta"));
    expect(types).toEqual([
      "request",
      "assistant",
      "tool_start",
      "kernel_progress",
      "tool_output",
      "tool_end",
      "request",
      "assistant",
    ]);
  });
});

describe("between turns", () => {
  test("what arrives while a cell runs is delivered behind its result, and nothing is lost", async () => {
    const delivered: string[] = [];
    const bench = new LoopBench([calls("a"), { text: "done" }, { text: "heard it all" }], {
      answer: () => {
        for (const content of ["one", "two"])
          bench.agent.inbox.push({
            source: "steering",
            content,
            onDelivered: () => delivered.push(content),
          });
        return "out";
      },
    });
    const outcome = await bench.run();
    expect(bench.sent(1).slice(-3)).toEqual(["toolResult: out", "user: one", "user: two"]);
    expect(delivered).toEqual(["one", "two"]);
    expect(outcome.text).toBe("done");
    expect(bench.all("injected").map(({ source, text }) => `${source}: ${text}`)).toEqual([
      "steering: one",
      "steering: two",
    ]);
  });

  test("what arrives while the model gives its last answer leads to another turn", async () => {
    const gate = Promise.withResolvers<void>();
    const bench = new LoopBench([{ gate: "last", text: "done" }, { text: "and that" }], {
      script: { gates: { last: gate.promise } },
    });
    const run = bench.run();
    while (bench.provider.requests.length === 0) await Promise.resolve();
    bench.agent.inbox.push({ source: "steering", content: "also this" });
    gate.resolve();
    expect((await run).text).toBe("and that");
    expect(bench.agent.inbox.size).toBe(0);
  });

  test("side work is waited for, and each message of it is answered", async () => {
    const work = Promise.withResolvers<void>();
    let working = true;
    const bench = new LoopBench(
      [{ text: "started" }, { text: "child one" }, { text: "all done" }],
      {
        sideWork: { settled: () => (working ? work.promise : undefined) },
      },
    );
    const run = bench.run();
    while (!bench.agent.idle) await Promise.resolve();
    bench.agent.inbox.push({ source: "agent-message", content: "first report" });
    while (bench.provider.requests.length < 2) await Promise.resolve();
    while (!bench.agent.idle) await Promise.resolve();
    bench.agent.inbox.push({ source: "agent-message", content: "last report" });
    working = false;
    work.resolve();
    expect((await run).text).toBe("all done");
    expect(bench.sent(2).at(-1)).toBe("user: last report");
  });

  test("a goal's next prompt goes on until there is none", async () => {
    const prompts = ["go on", "a little more"];
    const bench = new LoopBench([{ text: "1" }, { text: "2" }, { text: "3" }], {
      nextPrompt: () => prompts.shift(),
    });
    expect((await bench.run()).text).toBe("3");
    expect(bench.sent(2).filter((line) => line.startsWith("user"))).toEqual([
      "user: go",
      "user: go on",
      "user: a little more",
    ]);
  });
});

describe("calls that can't be run", () => {
  const call = (name: string, args: Record<string, unknown> | string): ScriptedReply => ({
    toolCalls: [{ name, arguments: args }],
  });

  test.each([
    ["another tool", call("bash", { command: "ls" }), 'There is no tool "bash"'],
    ["no code", call("ipython", {}), "had nothing"],
    ["code under another name", call("ipython", { source: "1", x: 1 }), "had source, x"],
    ["code that is no text", call("ipython", { code: 5 }), 'needs {"code": string}'],
    [
      "arguments that are no JSON",
      call("ipython", '{"code": oops'),
      'Send it again as {"code": "…"}',
    ],
    [
      "arguments that were cut off",
      { ...call("ipython", '{"code": "1'), stopReason: "length" as const },
      "in smaller pieces",
    ],
  ])(
    "with %s are answered with what was expected, and the work goes on",
    async (_, reply, says) => {
      const bench = new LoopBench([reply, { text: "done" }]);
      expect((await bench.run()).subtype).toBe("success");
      expect(bench.cells).toEqual([]);
      expect(bench.sent(1).at(-1)).toContain(says);
      expect(bench.all("tool_end")[0]?.message.isError).toBe(true);
    },
  );

  test("don't keep the others of their reply from running", async () => {
    const reply = calls("a", "b");
    reply.toolCalls?.splice(1, 0, { name: "other", arguments: {} });
    const bench = new LoopBench([reply, { text: "done" }]);
    await bench.run();
    expect(bench.cells).toEqual(["a", "b"]);
    expect(bench.sent(1)).toHaveLength(5);
  });

  test("for want of a kernel end the run, with a result for each", async () => {
    const bench = new LoopBench([calls("a", "b"), { text: "not asked" }], {
      answer: () => {
        throw new PrimeAgentError("environment", "no Python.", { hint: "Install one." });
      },
    });
    expect(await bench.run()).toMatchObject({
      subtype: "error_kernel",
      error: { code: "environment", message: "no Python. Install one." },
    });
    expect(bench.session.messages().map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "toolResult",
      "toolResult",
    ]);
    expect(bench.provider.requests).toHaveLength(1);
  });

  test("since the tool itself throws are no reason to lose the others", async () => {
    const bench = new LoopBench([calls("a", "b")], {
      answer: (code) => {
        if (code === "a") throw new TypeError("unforeseen");
        return "fine";
      },
    });
    expect((await bench.run()).subtype).toBe("error_kernel");
    expect(bench.cells).toEqual(["a", "b"]);
  });
});

describe("an answer that the output limit cuts off", () => {
  const cut = (text: string): ScriptedReply => ({ text, stopReason: "length" });

  test("is asked for further and put together", async () => {
    const bench = new LoopBench([cut("The be"), cut("ginning, "), { text: "the end." }]);
    expect((await bench.run()).text).toBe("The beginning, the end.");
    expect(bench.sent(1).at(-1)).toContain("go on exactly where it stops");
  });

  test("is asked for a bounded number of times, and what is missing is told", async () => {
    const bench = new LoopBench(Array.from({ length: 9 }, () => cut("x")));
    expect(await bench.run()).toEqual({ subtype: "success", text: "xxxx", stopReason: "length" });
    expect(bench.all("warning").map(({ message }) => message)).toEqual([
      "the answer was cut off by the output limit",
    ]);
  });

  test("is not glued to a text before a call", async () => {
    const bench = new LoopBench([
      cut("first "),
      { text: "let me see", ...calls("a") },
      { text: "done" },
    ]);
    expect((await bench.run()).text).toBe("done");
  });
});

describe("an abort", () => {
  test("while a cell runs gives every call of the reply a result and ends the run", async () => {
    const bench = new LoopBench([calls("a", "b"), { text: "not asked" }], {
      answer: (_, { signal }) => {
        bench.abort.abort(new AbortedError("user"));
        throw signal?.reason;
      },
    });
    expect(await bench.run()).toMatchObject({
      subtype: "error_interrupted",
      error: { code: "interrupted" },
    });
    expect(bench.cells).toEqual(["a"]);
    expect(bench.session.messages().filter(({ role }) => role === "toolResult")).toHaveLength(2);
  });

  test("of the cell alone lets the turn go on", async () => {
    const bench = new LoopBench([calls("a"), { text: "went on" }], {
      answer: async (_, { signal }) => {
        expect(bench.agent.interruptCell()).toBe(true);
        expect(bench.agent.interruptCell()).toBe(false);
        throw signal?.reason;
      },
    });
    expect((await bench.run()).text).toBe("went on");
    expect(bench.sent(1).at(-1)).toBe("toolResult: Interrupted.");
    expect(bench.agent.interruptCell()).toBe(false);
  });

  test("by the time limit is told as one; while the model answers it keeps what had come", async () => {
    const bench = new LoopBench([{ text: "half of it, " + "x".repeat(200) }], {
      emit: (event) => {
        if (event.type === "text_delta") bench.abort.abort(new AbortedError("timeout"));
      },
    });
    const outcome = await bench.run();
    expect(outcome).toMatchObject({ subtype: "error_timeout", error: { code: "timeout" } });
    expect(outcome.text).toStartWith("half of it");
  });
});

describe("limits", () => {
  const usage = { input: 100, output: 50 };

  test.each([
    [{ maxTurns: 1 }, "error_max_turns", 1],
    [{ maxTokens: 300 }, "error_max_tokens", 2],
    [{ maxTurns: 5, maxTokens: 150 }, "error_max_tokens", 1],
  ] as const)(
    "%j end the run as %s after %d turns, with every call answered",
    async (limits, subtype, turns) => {
      const bench = new LoopBench(
        Array.from({ length: 9 }, () => ({ ...calls("a"), usage })),
        { limits },
      );
      expect((await bench.run()).subtype).toBe(subtype);
      expect(bench.agent.state.turns).toBe(turns);
      expect(bench.session.messages().at(-1)?.role).toBe("toolResult");
    },
  );

  test("don't spoil an answer that is complete", async () => {
    const bench = new LoopBench([{ text: "done", usage }], {
      limits: { maxTurns: 1, maxTokens: 1 },
    });
    expect((await bench.run()).subtype).toBe("success");
  });
});

describe("checks", () => {
  test("that fail go back to the model, at most four times, then the run has failed", async () => {
    const bench = new LoopBench(
      Array.from({ length: 9 }, (_, index) => ({ text: `try ${index}` })),
      {
        runChecks: async () => "tests fail",
      },
    );
    expect(await bench.run()).toMatchObject({ subtype: "error_check_failed", text: "try 4" });
    expect(bench.sent(4).filter((line) => line === "user: tests fail")).toHaveLength(4);
  });

  test("are run only when nothing else is due", async () => {
    let checks = 0;
    const bench = new LoopBench([calls("a"), { text: "1" }, { text: "2" }], {
      runChecks: async () => (++checks === 1 ? "not yet" : undefined),
    });
    expect((await bench.run()).text).toBe("2");
    expect(checks).toBe(2);
  });
});

test("an image that was refused is left out of every later request, and only that one", async () => {
  const image = { type: "image" as const, data: "AA==", mimeType: "image/png" };
  const failure = { kind: "invalid_request" as const, message: "bad image", imageRelated: true };
  const script: ScriptedReply[] = [
    calls("a"),
    { failure },
    calls("b"),
    calls("c"),
    { text: "done" },
  ];
  const bench = new LoopBench(script, {
    answer: (code) => ({
      ...cellResult(code),
      content:
        code === "c" ? [{ type: "text", text: code }] : [{ type: "text", text: code }, image],
    }),
  });
  expect((await bench.run()).subtype).toBe("success");
  const images = bench.provider.requests.map(({ messages }) => messages.flatMap(imagesOf).length);
  expect(images).toEqual([0, 1, 0, 1, 1]);
});

function imagesOf({ content }: Message): object[] {
  if (typeof content === "string") return [];
  return [...content].filter((block) => block.type === "image");
}
