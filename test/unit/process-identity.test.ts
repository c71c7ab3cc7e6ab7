import { describe, expect, test } from "bun:test";
import { isSameProcess, processStartTime } from "../../src/process-identity.ts";

describe("processStartTime", () => {
  test("is the same at every look and differs between processes", () => {
    const own = processStartTime(process.pid) as string;
    expect(processStartTime(process.pid)).toBe(own);
    expect(processStartTime(process.ppid)).not.toBe(own);
  });

  test.each([0, -1, 1.5, Number.NaN, 2 ** 30])("no process has the id %p", (pid) => {
    expect(processStartTime(pid)).toBeUndefined();
  });
});

describe("isSameProcess", () => {
  test("needs the pid and the start time to agree", () => {
    const own = processStartTime(process.pid) as string;
    expect(isSameProcess(process.pid, own)).toBe(true);
    expect(isSameProcess(process.pid, `${own}0`)).toBe(false);
    expect(isSameProcess(process.ppid, own)).toBe(false);
  });
});
