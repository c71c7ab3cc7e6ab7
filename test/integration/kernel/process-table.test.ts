/** Ending sessions as a closing terminal would: whom it ends, whom it spares, and whom it never touches. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { endSessions, recordedSessions } from "../../../src/kernel/process-table.ts";
import { processStartTime } from "../../../src/process-identity.ts";
import { TempDir } from "../../support/temp-dir.ts";

const isAlive = (pid: number) => processStartTime(pid) !== undefined;

/** A shell that leads a session of its own and prints the pids of the background jobs of `script`. */
class Session implements AsyncDisposable {
  readonly #child: Bun.Subprocess<"ignore", "pipe", "ignore">;
  #pids: number[] = [];

  constructor(script: string) {
    this.#child = Bun.spawn(["sh", "-c", `${script}\necho\nwait`], {
      detached: true,
      stdio: ["ignore", "pipe", "ignore"],
    });
  }

  get id(): number {
    return this.#child.pid;
  }

  /** Resolves when its jobs run. */
  async jobs(): Promise<number[]> {
    const { value } = await this.#child.stdout.getReader().read();
    const line = new TextDecoder().decode(value).trim();
    return (this.#pids = line === "" ? [] : line.split(/\s+/).map(Number));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const pid of [this.id, ...this.#pids]) if (isAlive(pid)) process.kill(pid, "SIGKILL");
    await this.#child.exited;
  }
}

test("a session ends with all its processes, also those that ignore SIGTERM", async () => {
  await using session = new Session(
    `sleep 1000 & a=$!; sh -c 'trap "" TERM; while :; do sleep 0.1; done' & printf '%s %s' $a $!`,
  );
  const jobs = await session.jobs();
  expect(jobs.every(isAlive)).toBe(true);
  await endSessions([session.id]);
  while ([session.id, ...jobs].some(isAlive)) await Bun.sleep(5);
});

test("what ignores SIGHUP, or left for a session of its own, is spared; so is everybody else", async () => {
  await using session = new Session(
    `nohup sleep 1000 >/dev/null 2>&1 & a=$!; setsid sleep 1000 & printf '%s %s' $a $!`,
  );
  await using other = new Session("sleep 1000 & printf '%s' $!");
  const [nohup = 0, setsid = 0] = await session.jobs();
  // Until both have done what they are for, and become what they start.
  const program = (pid: number) => readFileSync(`/proc/${pid}/comm`, "utf8").trim();
  while (program(nohup) !== "sleep" || program(setsid) !== "sleep") await Bun.sleep(5);
  const [bystander] = await other.jobs();
  await endSessions([session.id, 0, 1, -1]);
  while (isAlive(session.id)) await Bun.sleep(5);
  expect([nohup, setsid, bystander].map((pid) => isAlive(pid as number))).toEqual([
    true,
    true,
    true,
  ]);
});

test("recorded sessions are read, without those whose number went to another process", async () => {
  using dir = new TempDir();
  expect(recordedSessions(dir.path)).toEqual([]);
  await using session = new Session("sleep 1000 & printf '%s' $!");
  await session.jobs();
  const start = (processStartTime(session.id) as string).split("/").at(-1);
  // A session whose leader is gone may still have members, so its number counts.
  const lines = [`${session.id} ${start}`, `${process.pid} 1`, "4194305 77", "1 1", "rubbish", ""];
  dir.write("sessions", lines.join("\n"));
  expect(recordedSessions(dir.path)).toEqual([session.id, 4_194_305]);
});
