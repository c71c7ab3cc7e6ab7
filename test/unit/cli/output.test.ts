/** When to colour a stream. */

import { expect, test } from "bun:test";
import { wantsColor, type OutputStream } from "../../../src/cli/output.ts";

const stream = (isTerminal: boolean): OutputStream => ({
  isTerminal,
  write: () => undefined,
  drain: async () => undefined,
});

test.each([
  ["auto", true, {}, true],
  ["auto", false, {}, false],
  ["auto", true, { NO_COLOR: "1" }, false],
  ["auto", true, { NO_COLOR: "" }, true],
  ["auto", true, { CI: "true" }, false],
  ["auto", true, { TERM: "dumb" }, false],
  ["auto", true, { TERM: "xterm" }, true],
  ["auto", false, { FORCE_COLOR: "1" }, false],
  ["always", false, { NO_COLOR: "1" }, true],
  ["never", true, {}, false],
] as const)(
  "--color %s with a terminal %p and %j colours %p",
  (choice, isTerminal, variables, colours) => {
    expect(wantsColor(stream(isTerminal), choice, variables as Record<string, string>)).toBe(
      colours,
    );
  },
);
