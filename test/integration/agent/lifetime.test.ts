/** How long sub-agents and their kernels live: beyond a parent's turn, not beyond their deletion or the run. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { defer } from "../../../src/async.ts";
import { AppRun, cell } from "../../support/app-run.ts";
import { describeWithPython } from "../../support/python.ts";

const SLEEP = "import os, time\nprint(f'pid {os.getpid()}.', flush=True)\ntime.sleep(1000)";

/** The process id that an agent's cell has printed. */
async function pidOf(run: AppRun, name: string): Promise<number> {
  const pid = () => /pid (\d+)\./.exec(run.printed(name))?.[1];
  await run.until(() => pid() !== undefined);
  return Number(pid());
}

/** Whether a process lives; one that nobody has collected yet does not. */
async function isAlive(pid: number): Promise<boolean> {
  if (!existsSync(`/proc/${pid}/stat`)) return false;
  return !/\) [ZX] /.test(await Bun.file(`/proc/${pid}/stat`).text());
}

describeWithPython("newest", "the life of a sub-agent", () => {
  test("deleting one that runs ends its cell, its kernel and what it started", async () => {
    const asked = defer<void>();
    const removal = ["r = await rlm.delete_subagent('sleeper')", "print(r['outcome'])"];
    await using run = await AppRun.open(
      {
        root: [
          cell("child = await rlm('sleep', name='sleeper')"),
          cell(removal.join("\n"), { gate: "asked" }),
          { text: "deleted" },
          { text: "noted" },
        ],
        sleeper: [cell(`%%bash\necho pid $$.\nsleep 1000`)],
      },
      { gates: { asked: asked.promise } },
    );
    const outcome = run.run("go");
    const shell = await pidOf(run, "sleeper");
    asked.resolve();
    // The receipt comes with the result of the call or, a moment later, as a message of its own.
    const text = expect.stringMatching(/^(deleted|noted)$/);
    expect(await outcome).toMatchObject({ subtype: "success", text });
    expect(run.printed()).toBe("cancelled\n");
    expect(run.received()).toEqual([expect.stringContaining('outcome="cancelled"')]);
    expect(await isAlive(shell)).toBe(false);
    expect(run.app.agents()).toMatchObject([{ name: "sleeper", state: "cancelled" }]);
  });

  test("interrupting the parent's turn leaves sub-agents at work; their messages start the next one", async () => {
    const parent = defer<void>();
    await using run = await AppRun.open(
      {
        root: [
          cell("child = await rlm('find it', name='finder')"),
          { gate: "never" },
          { text: "found" },
        ],
        finder: [
          cell("await agent_message.send('it is here', receiver_role='parent')", {
            gate: "parent",
          }),
          { text: "sent" },
        ],
      },
      { gates: { parent: parent.promise, never: new Promise(() => undefined) } },
    );
    const interrupt = new AbortController();
    const outcome = run.run("go", interrupt.signal);
    await run.asked("root", 2);
    await run.asked("finder", 1);
    interrupt.abort();
    expect((await outcome).subtype).toBe("error_interrupted");
    parent.resolve();
    await run.app.agent.inbox.arrival();
    expect(await run.run(undefined)).toMatchObject({ subtype: "success", text: "found" });
  });

  test("the run's end takes all kernels with it, also those of sub-agents that work", async () => {
    const pids: number[] = [];
    {
      await using run = await AppRun.open({
        root: [cell("for name in ('a', 'b'): await rlm('sleep', name=name)"), { text: "I wait." }],
        a: [cell(SLEEP)],
        b: [cell(SLEEP)],
      });
      void run.run("go");
      pids.push(await pidOf(run, "a"), await pidOf(run, "b"));
    }
    expect(await Promise.all(pids.map(isAlive))).toEqual([false, false]);
  });

  test("a run that is not saved has sub-agents too, with files nowhere", async () => {
    await using run = await AppRun.open(
      {
        root: [
          cell("child = await rlm('hi', name='ann')\nprint(repr(child.session_dir))"),
          { text: "I wait." },
          { text: "done" },
        ],
        ann: [
          cell("await agent_message.send('hi there', receiver_role='parent')"),
          { text: "sent" },
        ],
      },
      { args: ["--no-session"] },
    );
    expect(await run.run("go")).toMatchObject({ subtype: "success", text: "done" });
    expect(run.printed()).toBe("''\n");
    expect(run.app.agents()).toMatchObject([{ state: "completed", sessionFile: null }]);
    expect(existsSync(run.dir.join("home/.prime/agent/sessions"))).toBe(false);
  });

  test("grandchildren are waited for where the limit allows them", async () => {
    await using run = await AppRun.open(
      {
        root: [
          cell("c = await rlm('level one', name='one')"),
          { text: "I wait." },
          { text: "done" },
        ],
        one: [
          cell("c = await rlm('level two', name='two')"),
          { text: "I wait too." },
          { text: "so it is" },
        ],
        two: [
          cell("try: await rlm('level three')\nexcept Exception as error: print(error)"),
          cell("await agent_message.send('from below', receiver_role='parent')"),
          { text: "sent" },
        ],
      },
      { env: { RLM_MAX_DEPTH: "2" } },
    );
    expect(await run.run("go")).toMatchObject({ subtype: "success", text: "done" });
    expect(run.printed("two")).toContain("agents may nest 2 deep");
    const [one, two] = run.app.agents();
    expect([one?.parentId, two?.parentId]).toEqual([null, one?.id]);
    expect(two?.sessionFile).toContain(`session-artifacts/${one?.id}`);
  });
});
