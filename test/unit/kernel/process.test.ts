/** What a launcher's line and a signal's number mean. */

import { describe, expect, test } from "bun:test";
import { buildRlmBootstrapCode } from "../../../src/kernel/bootstrap.ts";
import { parseReadyLine, signalName } from "../../../src/kernel/process.ts";

describe("a ready line", () => {
  const READY = { ready: true, pid: 7, cwd: "/", python: "3.13.0" };
  const LINES: Array<{ line: string; parsed: unknown }> = [
    { line: JSON.stringify(READY), parsed: READY },
    { line: '{"ready": false, "error": "lacks ipykernel"}', parsed: "lacks ipykernel" },
    { line: '{"ready": false}', parsed: "" },
    { line: "", parsed: "" },
    { line: "  ", parsed: "" },
    { line: "Python 2.7", parsed: "" },
    { line: '{"ready": tr', parsed: "" },
  ];
  test.each(LINES)("$line", ({ line, parsed }) => {
    expect(parseReadyLine(line)).toEqual(parsed as never);
  });
});

test.each([
  [9, "SIGKILL"],
  ["SIGTERM", "SIGTERM"],
  [15, "SIGTERM"],
  [250, "signal 250"],
  [null, null],
  [undefined, null],
] as const)("the signal %p is called %p", (signal, name) => {
  expect(signalName(signal)).toBe(name);
});

test("the bootstrap cell is one line of ASCII, whatever the names of skills and folders hold", () => {
  const path = `/skills/it's "mine"\\n\u2028\nh\u00e9 \u{1f600}`;
  const options = { skills: [{ name: "s", import_name: "s", path }], depth: 0, max_depth: 1 };
  const code = buildRlmBootstrapCode(options);
  expect(code).toMatch(/^[ -~]+$/);
  const literal = /install\(get_ipython\(\), (".*")\)$/.exec(code)?.[1] as string;
  expect(JSON.parse(JSON.parse(literal) as string)).toEqual(options);
});
