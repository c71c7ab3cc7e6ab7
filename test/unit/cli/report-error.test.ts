/** Errors as outcomes, exit codes and text. */

import { describe, expect, test } from "bun:test";
import { describeError, EXIT_CODES, outcomeOf, subtypeOf } from "../../../src/cli/report-error.ts";
import { AbortedError, PrimeAgentError, UsageError } from "../../../src/errors.ts";

const coded = (code: string) => new PrimeAgentError(code, "message", { hint: "Do this." });

describe("an error", () => {
  test.each<[string, unknown, string, number]>([
    ["of usage", new UsageError("no"), "error_usage", 2],
    ["of authentication", coded("auth"), "error_auth", 3],
    ["of the kernel", coded("kernel_died"), "error_kernel", 7],
    ["of the environment", coded("environment"), "error_kernel", 7],
    ["of the packages", coded("package_install"), "error_kernel", 7],
    ["of the Python", coded("unusable_python"), "error_kernel", 7],
    ["of a session", coded("session_locked"), "error_during_execution", 1],
    ["of a person", new AbortedError("user"), "error_interrupted", 130],
    ["of a signal", new AbortedError("signal"), "error_interrupted", 130],
    ["of the time", new AbortedError("timeout"), "error_timeout", 124],
    ["that nobody foresaw", new TypeError("x is undefined"), "error_during_execution", 1],
    ["that is no error", "a text", "error_during_execution", 1],
  ])("%s", (_, error, subtype, code) => {
    expect(subtypeOf(error)).toBe(subtype as never);
    expect(EXIT_CODES[subtypeOf(error)]).toBe(code);
    const outcome = outcomeOf(error);
    expect(outcome).toMatchObject({ subtype, text: "" });
    expect(outcome.error?.message).not.toStartWith("prime-agent: ");
  });

  test("of ours is one line, and a second one with what to do", () => {
    expect(describeError(new UsageError("no such file"))).toBe("prime-agent: no such file");
    expect(describeError(coded("x"))).toBe("prime-agent: message\n  Do this.");
  });

  test("that nobody foresaw says so", () => {
    expect(describeError(new TypeError("x is undefined"))).toContain(
      "internal error: TypeError: x is undefined",
    );
    expect(outcomeOf(new TypeError("x")).error?.code).toBe("internal");
  });
});
