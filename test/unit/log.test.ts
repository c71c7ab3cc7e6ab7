/** Diagnostics: silent unless somebody listens. */

import { afterEach, expect, test } from "bun:test";
import { debug, setLogSink } from "../../src/log.ts";

afterEach(() => setLogSink(undefined));

test("nothing is recorded, and nothing rendered, without a sink", () => {
  const detail = {
    toJSON() {
      throw new Error("rendered");
    },
  };
  expect(() => debug("scope", "message", detail)).not.toThrow();
});

test.each([
  { detail: undefined, line: "[scope] message" },
  { detail: "text", line: "[scope] message: text" },
  { detail: new TypeError("bad"), line: "[scope] message: TypeError: bad" },
  { detail: { a: 1 }, line: '[scope] message: {"a":1}' },
  { detail: () => 1, line: "[scope] message: () => 1" },
])("a detail is told as $line", ({ detail, line }) => {
  const lines: string[] = [];
  setLogSink((text) => lines.push(text));
  debug("scope", "message", detail);
  expect(lines).toEqual([line]);
});
