import { describe, expect, test } from "bun:test";
import { checkedName, defaultName } from "../../../src/agent/subagent-name.ts";

describe("defaultName", () => {
  test.each([
    ["Read the tests of the parser and mend them", "read-the-tests-of-the-a1b2"],
    ["  Grüße, прочитай 3 файла!\nThen stop.", "grüße-прочитай-3-файла-then-a1b2"],
    ["Untersuche die Donaudampfschifffahrtsgesellschaft genau", "untersuche-die-a1b2"],
    ["?!", "agent-a1b2"],
    ["x".repeat(500), "agent-a1b2"],
  ])("of %p is %p", (task, name) => {
    expect(defaultName(task, "a1b2c3d4", [])).toBe(name);
  });

  test("stays unique when another has the same", () => {
    expect(defaultName("Go", "a1b2c3d4", ["GO-A1B2"])).toBe("go-a1b2c3d4");
  });
});

describe("checkedName", () => {
  test("is trimmed and keeps its letters' case and any script", () => {
    expect(checkedName("  Leser Nr. 1 ✓ ", ["other"])).toBe("Leser Nr. 1 ✓");
    expect(checkedName("cafe\u0301", [])).toBe("caf\u00e9");
  });

  test.each([
    ["", "is empty"],
    [" \t ", "is empty"],
    ["x".repeat(65), "has 65 characters, more than 64"],
    ["two\nlines", "can't be shown"],
    ["\u202eevil", "can't be shown"],
    ["\x1b[31m", "can't be shown"],
    ["All", "means everybody"],
    ["READER", "is taken by another sub-agent"],
  ])("refuses %p: it %s", (name, why) => {
    expect(() => checkedName(name, ["reader"])).toThrow(why);
  });
});
