import { describe, expect, test } from "bun:test";
import { askWhenBusy } from "../../../src/cli/chat-question.ts";
import { KernelBusyAfterInterruptError } from "../../../src/kernel/errors.ts";

const busy = new KernelBusyAfterInterruptError(5_000);

/** Asks with these answers; counts how often a person was asked. */
function questionWith(answers: Array<string | undefined>, always?: "restart") {
  const labels: string[] = [];
  const ask = askWhenBusy({
    say: () => undefined,
    ask: async (label) => {
      labels.push(label);
      return answers.shift();
    },
    always,
  });
  return { ask, labels };
}

describe("the question about a busy kernel", () => {
  test.each([
    ["wait", "wait"],
    ["w", "wait"],
    [" Restart ", "restart"],
    ["c", "cancel"],
    [undefined, "cancel"],
  ] as const)("is answered by %j with %s", async (answer, choice) => {
    expect(await questionWith([answer]).ask(busy)).toBe(choice);
  });

  test("is asked again until the answer means something", async () => {
    const { ask, labels } = questionWith(["", "what?", "r"]);
    expect(await ask(busy)).toBe("restart");
    expect(labels.length).toBe(3);
  });

  test("is not asked when the answer was given beforehand", async () => {
    const { ask, labels } = questionWith([], "restart");
    expect(await ask(busy)).toBe("restart");
    expect(labels).toEqual([]);
  });

  test("is asked one after another when two ask at once", async () => {
    const asked: Array<(answer: string) => void> = [];
    const ask = askWhenBusy({
      say: () => undefined,
      ask: () => new Promise((resolve) => asked.push(resolve)),
      always: undefined,
    });
    const choices = [ask(busy), ask(busy)];
    await Bun.sleep(0);
    expect(asked.length).toBe(1);
    asked[0]?.("w");
    expect(await choices[0]).toBe("wait");
    await Bun.sleep(0);
    asked[1]?.("c");
    expect(await choices[1]).toBe("cancel");
  });
});
