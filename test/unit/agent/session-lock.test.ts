import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, utimesSync } from "node:fs";
import { SessionLockedError } from "../../../src/agent/errors.ts";
import { lockPathOf, lockSession, sessionOwner } from "../../../src/agent/session-lock.ts";
import { processStartTime } from "../../../src/process-identity.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** No system gives a process this id. */
const NO_PID = 2 ** 30;

describe("lockSession", () => {
  test("names its owner by pid and start time, and is gone after release", () => {
    using dir = new TempDir();
    const path = dir.join("s.jsonl");
    const lock = lockSession(path);
    expect(JSON.parse(readFileSync(lockPathOf(path), "utf8"))).toEqual({
      pid: process.pid,
      start_time: processStartTime(process.pid),
    });
    expect(sessionOwner(path)).toBe(process.pid);
    lock.release();
    lock.release();
    expect(existsSync(lockPathOf(path))).toBe(false);
    expect(sessionOwner(path)).toBeUndefined();
  });

  const stale: Array<[name: string, content: string]> = [
    ["a process that is gone", JSON.stringify({ pid: NO_PID, start_time: "1" })],
    [
      "a process whose pid was given to another",
      JSON.stringify({ pid: process.pid, start_time: "1" }),
    ],
    ["nobody, long ago", ""],
    ["garbage, long ago", "\0\0{"],
    ["something else, long ago", '{"pid":"1"}'],
  ];
  test.each(stale)("takes over the lock of %s", (_name, content) => {
    using dir = new TempDir();
    const path = dir.join("s.jsonl");
    utimesSync(dir.write("s.jsonl.lock", content), 1, 1);
    expect(sessionOwner(path)).toBeUndefined();
    const lock = lockSession(path);
    expect(sessionOwner(path)).toBe(process.pid);
    lock.release();
    expect(existsSync(lockPathOf(path))).toBe(false);
  });

  test("leaves a lock alone that is just being written", () => {
    using dir = new TempDir();
    dir.write("s.jsonl.lock", "");
    expect(() => lockSession(dir.join("s.jsonl"))).toThrow(SessionLockedError);
    expect(existsSync(dir.join("s.jsonl.lock"))).toBe(true);
  });

  test("is refused while a live process holds it, naming the pid", () => {
    using dir = new TempDir();
    const path = dir.join("s.jsonl");
    dir.write(
      "s.jsonl.lock",
      JSON.stringify({ pid: process.ppid, start_time: processStartTime(process.ppid) }),
    );
    expect(() => lockSession(path)).toThrow(`in use by process ${process.ppid}`);
  });

  test("release leaves a lock that another process took over", () => {
    using dir = new TempDir();
    const path = dir.join("s.jsonl");
    const lock = lockSession(path);
    const other = dir.write("s.jsonl.lock", JSON.stringify({ pid: NO_PID, start_time: "1" }));
    lock.release();
    expect(existsSync(other)).toBe(true);
  });
});
