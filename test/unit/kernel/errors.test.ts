/** What is said about a kernel's end. */

import { describe, expect, test } from "bun:test";
import { describeExit, KernelDiedError, type KernelExit } from "../../../src/kernel/errors.ts";

const EXITS: Array<{ exit: KernelExit; text: string }> = [
  { exit: { code: 3, signal: null }, text: "it exited with code 3" },
  {
    exit: { code: 0, signal: null },
    text: "it exited with code 0 (something in the cell stopped its event loop or exited the process)",
  },
  {
    exit: { code: null, signal: "SIGKILL" },
    text: "killed by SIGKILL (probably out of memory, or killed from outside)",
  },
  { exit: { code: null, signal: "SIGSEGV" }, text: "killed by SIGSEGV (a crash in native code)" },
  { exit: { code: null, signal: "SIGUSR1" }, text: "killed by SIGUSR1" },
  { exit: { code: null, signal: null }, text: "for an unknown reason" },
  {
    exit: { code: null, signal: null, reason: "its fork server ended" },
    text: "its fork server ended",
  },
];

test.each(EXITS)("an exit with $exit is put into words", ({ exit, text }) => {
  expect(describeExit(exit)).toBe(text);
});

describe("the message of a death quotes", () => {
  const message = (stderr: string) =>
    new KernelDiedError({ code: 1, signal: null }, stderr).message;

  test("nothing where nothing was said", () => {
    expect(message("\n")).toBe("The kernel ended: it exited with code 1.");
  });

  test("the last lines", () => {
    const lines = Array.from({ length: 40 }, (_, index) => `line ${index}`);
    expect(
      message(`${lines.join("\n")}\n`)
        .split("\n")
        .slice(1),
    ).toEqual(lines.slice(-15));
  });

  test("a fatal error from its beginning, since what matters stands there", () => {
    const frames = Array.from({ length: 40 }, (_, index) => `  File "f.py", line ${index}`);
    const fatal = ["Fatal Python error: Segmentation fault", "", ...frames];
    const quoted = message(["noise", ...fatal].join("\n"))
      .split("\n")
      .slice(1);
    expect(quoted).toEqual(fatal.slice(0, 15));
  });
});
