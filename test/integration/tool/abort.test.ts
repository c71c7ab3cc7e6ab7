/** Aborting a cell: it ends, its processes end, the next cell runs, and the result says what happened. */

import { expect, test } from "bun:test";
import { describeWithPython } from "../../support/python.ts";
import { abortWhen, textOf, ToolKernel, Watched } from "../../support/tool-kernel.ts";

/** Cells that never end by themselves; each says when it is under way. */
const ENDLESS: Record<string, string> = {
  "a busy loop": "print('begun')\nwhile True: pass",
  "a sleeping thread": "import time\nprint('begun')\ntime.sleep(1000)",
  "a top-level await": "import asyncio\nprint('begun')\nawait asyncio.sleep(1000)",
  "a future that nobody resolves":
    "import asyncio\nprint('begun')\nawait asyncio.get_event_loop().create_future()",
  "a shell cell": "%%bash\necho begun; sleep 1000",
  "a shell cell that ignores INT and TERM":
    "%%bash\ntrap '' INT TERM; echo begun; while true; do sleep 1; done",
  "a subprocess of Python":
    "import subprocess\nprint('begun', flush=True)\nsubprocess.run(['sleep', '1000'])",
  "a child that ignores INT and TERM and is not waited for":
    "import subprocess\nsubprocess.Popen(['sh', '-c', \"trap '' INT TERM; while true; do sleep 1; done\"])\nprint('begun', flush=True)\nwhile True: pass",
  "a subprocess that ignores INT and TERM":
    "import subprocess\nprint('begun', flush=True)\nsubprocess.run(['sh', '-c', \"trap '' INT TERM; while true; do sleep 1; done\"])",
};

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test.each(Object.entries(ENDLESS))(
      "%s settles as aborted and leaves nothing running",
      async (_name, code) => {
        await using kernel = new ToolKernel({ python });
        await kernel.run("kept = 41");
        const before = await descendants(kernel);
        const watched = new Watched();
        const result = await kernel.run(code, {
          signal: abortWhen(watched.saw("begun")),
          onOutput: watched.onOutput,
        });
        expect(result.details.status).toBe("aborted");
        expect(result.isError).toBe(true);
        expect(textOf(result)).toContain("begun");
        expect(textOf(result)).toContain("interrupted by the user");
        expect(await kernel.text("kept + 1")).toBe("42");
        await until(async () => (await descendants(kernel)) === before);
        expect(kernel.lost).toEqual([]);
      },
    );

    test("200 cells sent right after errors and aborts all run, and none is reported as ok unrun", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("n = 0");
      for (let pair = 0; pair < 200; pair += 1) {
        if (pair % 4 === 0) {
          const watched = new Watched();
          const signal = abortWhen(watched.saw("on"));
          await kernel.run("print('on', flush=True)\nwhile True: pass", {
            signal,
            onOutput: watched.onOutput,
          });
        } else {
          expect((await kernel.run("1/0")).details.errorEname).toBe("ZeroDivisionError");
        }
        expect(await kernel.text("n += 1; n")).toBe(String(pair + 1));
      }
    });

    test("aborts at any moment since a cell was sent end it at once, and none hits the next cell", async () => {
      await using kernel = new ToolKernel({ python, snapshots: true });
      await kernel.run("kept = 41");
      for (let turns = 0; turns < 120; turns += 1) {
        const controller = new AbortController();
        const call = kernel.run("import time; time.sleep(1000)", { signal: controller.signal });
        for (let turn = 0; turn < turns * 4; turn += 1) await new Promise(setImmediate);
        controller.abort();
        const result = await call;
        expect(result.details.status).toBe("aborted");
        expect(textOf(result)).not.toContain("has not ended yet");
        expect(await kernel.text("kept + 1")).toBe("42");
      }
    });

    test("a cell limit interrupts the cell, says so, and keeps the kernel", async () => {
      await using kernel = new ToolKernel({ python, cellTimeoutMs: 500 });
      const result = await kernel.run("import time\nfor i in range(100): time.sleep(0.1)");
      expect(result.details.status).toBe("aborted");
      expect(textOf(result)).toContain("timed out after 0.5 s");
      expect(await kernel.text("i > 0")).toBe("True");
    });

    test("a call that is aborted before it starts runs nothing", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("ran = False");
      const result = await kernel.run("ran = True", { signal: AbortSignal.abort() });
      expect(result.details.status).toBe("aborted");
      expect(await kernel.text("ran")).toBe("False");
    });
  });
}

/** How many processes live below the kernel. */
async function descendants(kernel: ToolKernel): Promise<number> {
  const pid = kernel.provisioner.kernel?.pid as number;
  const { stdout } = Bun.spawnSync(["ps", "-eo", "pid,ppid,sid,stat"]);
  const rows = stdout
    .toString()
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => line.trim().split(/\s+/))
    .filter(([, , , stat]) => !stat?.startsWith("Z"))
    .map(([id, parent]) => ({ id: Number(id), parent: Number(parent) }));
  const found = new Set([pid]);
  for (let grown = true; grown;) {
    grown = false;
    for (const { id, parent } of rows) {
      if (found.has(parent) && !found.has(id)) {
        found.add(id);
        grown = true;
      }
    }
  }
  return found.size;
}

async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await Bun.sleep(20);
}
