import { expect, test } from "bun:test";
import { existsSync, utimesSync, writeFileSync } from "node:fs";
import { AbortedError } from "../../../src/errors.ts";
import { EnvironmentLockedError } from "../../../src/kernel/environment-errors.ts";
import { acquireVenvLock } from "../../../src/kernel/venv-lock.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** Waits no time at all for a live owner. */
const AT_ONCE = { waitMs: 0 };

test("a free lock is taken, and gone when it is given back", async () => {
  using folder = new TempDir();
  const path = folder.join("lock");
  const lock = await acquireVenvLock(path, AT_ONCE);
  expect(existsSync(path)).toBe(true);
  lock[Symbol.dispose]();
  expect(existsSync(path)).toBe(false);
});

test("a live owner is named, and waited for no longer than allowed", async () => {
  using folder = new TempDir();
  using _held = await acquireVenvLock(folder.join("lock"), AT_ONCE);
  const lines: string[] = [];
  const waiting = acquireVenvLock(folder.join("lock"), {
    waitMs: 200,
    onProgress: (line) => lines.push(line),
  });
  await expect(waiting).rejects.toBeInstanceOf(EnvironmentLockedError);
  expect(lines).toEqual([
    "Waiting for another start in this process, which is building the environment…",
  ]);
});

test("waiting for a live owner can be aborted, and leaves its lock alone", async () => {
  using folder = new TempDir();
  using held = await acquireVenvLock(folder.join("lock"), AT_ONCE);
  const abort = new AbortController();
  const waiting = acquireVenvLock(folder.join("lock"), {
    waitMs: 60_000,
    signal: abort.signal,
    onProgress: () => abort.abort(),
  });
  await expect(waiting).rejects.toBeInstanceOf(AbortedError);
  expect(existsSync(held.path)).toBe(true);
});

test("whoever waits gets the lock when the owner gives it back", async () => {
  using folder = new TempDir();
  const path = folder.join("lock");
  const held = await acquireVenvLock(path, AT_ONCE);
  using taken = await acquireVenvLock(path, {
    waitMs: 60_000,
    onProgress: () => held[Symbol.dispose](),
  });
  expect(existsSync(taken.path)).toBe(true);
});

/** The text of a lock that this process would write, changed. */
async function lockText(folder: TempDir, change: Record<string, unknown>): Promise<string> {
  const path = folder.join("model");
  using _lock = await acquireVenvLock(path, AT_ONCE);
  return JSON.stringify({ ...(await Bun.file(path).json()), ...change });
}

test.each([
  ["a pid that is in use by nobody", { pid: 2 ** 22 + 1 }],
  ["a pid that another process has now", { startTime: "long ago" }],
])("the lock of %s is taken over at once", async (_, change) => {
  using folder = new TempDir();
  const path = folder.write("lock", await lockText(folder, change));
  using lock = await acquireVenvLock(path, AT_ONCE);
  expect((await Bun.file(lock.path).json()).pid).toBe(process.pid);
});

test.each([
  ["an owner in another container", JSON.stringify({ pid: 1, startTime: "x", scope: "elsewhere" })],
  ["an owner that died while it wrote its name", ""],
])("the lock of %s counts only while it is touched", async (_, text) => {
  using folder = new TempDir();
  const path = folder.write("lock", text);
  const waiting = acquireVenvLock(path, AT_ONCE);
  await expect(waiting).rejects.toBeInstanceOf(EnvironmentLockedError);

  const longAgo = new Date(Date.now() - 10 * 60_000);
  utimesSync(path, longAgo, longAgo);
  using lock = await acquireVenvLock(path, AT_ONCE);
  expect((await Bun.file(lock.path).json()).pid).toBe(process.pid);
});

test("of many that find the same dead owner, one at a time gets the lock", async () => {
  using folder = new TempDir();
  const path = folder.write("lock", await lockText(folder, { startTime: "long ago" }));
  let holders = 0;
  let most = 0;
  const hold = async () => {
    using _lock = await acquireVenvLock(path, { waitMs: 60_000 });
    holders += 1;
    most = Math.max(most, holders);
    await Promise.resolve();
    holders -= 1;
  };
  await Promise.all(Array.from({ length: 8 }, hold));
  expect(most).toBe(1);
});

test("a lock that cannot be written is an error, not a wait", async () => {
  using folder = new TempDir();
  writeFileSync(folder.join("file"), "");
  await expect(acquireVenvLock(folder.join("file/lock"), AT_ONCE)).rejects.toThrow("ENOTDIR");
});
