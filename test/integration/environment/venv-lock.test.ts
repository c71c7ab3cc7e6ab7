import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { AbortedError } from "../../../src/errors.ts";
import { acquireVenvLock } from "../../../src/kernel/venv-lock.ts";
import { processStartTime } from "../../../src/process-identity.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** Writes the lock that process `pid` would hold. */
async function lockOf(folder: TempDir, pid: number): Promise<string> {
  const path = folder.join("lock");
  const lock = await acquireVenvLock(path, { waitMs: 0 });
  const text = readFileSync(path, "utf8");
  lock[Symbol.dispose]();
  const owner = { ...JSON.parse(text), pid, startTime: processStartTime(pid) ?? "it was here" };
  return folder.write("lock", JSON.stringify(owner));
}

test("a live process that holds the lock is named while we wait for it", async () => {
  using folder = new TempDir();
  const owner = Bun.spawn(["sleep", "60"]);
  const path = await lockOf(folder, owner.pid);
  const abort = new AbortController();
  const lines: string[] = [];
  const waiting = acquireVenvLock(path, {
    waitMs: 60_000,
    signal: abort.signal,
    onProgress(line) {
      lines.push(line);
      abort.abort();
    },
  });
  await expect(waiting).rejects.toBeInstanceOf(AbortedError);
  expect(lines).toEqual([`Waiting for pid ${owner.pid}, which is building the environment…`]);
  owner.kill("SIGKILL");
  await owner.exited;
});

test("the lock of a process that ends while we wait for it is taken over", async () => {
  using folder = new TempDir();
  const owner = Bun.spawn(["sleep", "60"]);
  const path = await lockOf(folder, owner.pid);
  using lock = await acquireVenvLock(path, {
    waitMs: 60_000,
    onProgress: () => owner.kill("SIGKILL"),
  });
  expect(JSON.parse(readFileSync(lock.path, "utf8")).pid).toBe(process.pid);
});

test("the lock of a zombie is taken over at once", async () => {
  using folder = new TempDir();
  const program =
    "import os, signal; pid = os.fork() or os._exit(0); print(pid, flush=True); signal.pause()";
  const parent = Bun.spawn(["python3", "-c", program], { stdout: "pipe" });
  const { value } = await parent.stdout.getReader().read();
  const zombie = Number(new TextDecoder().decode(value));
  const path = await lockOf(folder, zombie);
  using lock = await acquireVenvLock(path, { waitMs: 60_000 });
  expect(JSON.parse(readFileSync(lock.path, "utf8")).pid).toBe(process.pid);
  parent.kill("SIGKILL");
  await parent.exited;
});
