/** Cells that an interrupt can't reach at once: in C code, or deaf to it. */

import { expect, test } from "bun:test";
import { existsSync, rmSync } from "node:fs";
import type { IpythonResult } from "../../../src/tool/ipython.ts";
import { processStartTime } from "../../../src/process-identity.ts";
import { describeWithPython } from "../../support/python.ts";
import { abortWhen, textOf, ToolKernel } from "../../support/tool-kernel.ts";

/** Says by a file that it has begun: what an interrupt hits next must be what follows, not a print. */
const BEGIN = "open('begun', 'w').close()";

/** Holds the interpreter lock in C code for about a second and a half, on any machine. */
const BUSY_IN_C = `
import time
size, took = 1_000_000, 0.0
while took < 0.05:
    size *= 2
    begin = time.perf_counter(); sum(range(size)); took = time.perf_counter() - begin
size = int(size * 1.5 / took)
${BEGIN}
sum(range(size))`;

const HASHING = `import hashlib\n${BEGIN}\nhashlib.pbkdf2_hmac('sha256', b'a', b'b', 3_000_000)`;

/** Ends after so many seconds, whatever is raised in it. */
const deaf = (seconds: number) => `
import time
until = time.monotonic() + ${seconds}
while time.monotonic() < until:
    try:
        ${BEGIN}
        while time.monotonic() < until: time.sleep(0.01)
    except KeyboardInterrupt:
        pass`;

/** Runs a cell and aborts it once it has begun. */
async function runAborted(kernel: ToolKernel, code: string): Promise<IpythonResult> {
  const file = kernel.dir.join("begun");
  rmSync(file, { force: true });
  const begun = (async () => {
    while (!existsSync(file)) await Bun.sleep(5);
  })();
  return await kernel.run(code, { signal: abortWhen(begun) });
}

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test("a cell that is interrupted in C code ends by itself, and its late interrupts hit no other cell", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("cells = []");
      expect((await runAborted(kernel, BUSY_IN_C)).details.status).toBe("aborted");
      for (let index = 0; index < 20; index += 1) {
        const result = await kernel.run(`cells.append(${index})\nfor _ in range(10_000): pass`);
        expect(result.details.status).toBe("ok");
      }
      expect(await kernel.text("cells == list(range(20))")).toBe("True");
      expect(kernel.lost).toEqual([]);
    });

    test("a hash that takes long is left when it is done, and the next cell runs", async () => {
      await using kernel = new ToolKernel({ python });
      expect((await runAborted(kernel, HASHING)).details.status).toBe("aborted");
      expect(await kernel.text("1 + 1")).toBe("2");
    });
  });
}

describeWithPython("newest", "on newest", () => {
  test("a line that an aborted shell cell had begun is in its result", async () => {
    await using kernel = new ToolKernel();
    const result = await runAborted(kernel, "%%bash\nprintf 'prompt> '; touch begun; sleep 1000");
    expect(result.details.status).toBe("aborted");
    expect(textOf(result)).toStartWith("prompt> ");
  });

  test("a program in the background does not keep its shell cell open, and lives on", async () => {
    await using kernel = new ToolKernel();
    const text = await kernel.text("%%bash\nsleep 1000 &\necho started $!");
    expect(text).toStartWith("started");
    const pid = Number(/started (\d+)/.exec(text)?.[1]);
    expect(processStartTime(pid)).toBeDefined();
  });

  test("a cell that ignores interrupts keeps the kernel busy; waiting for it keeps the state", async () => {
    await using kernel = new ToolKernel({ chooseWhenBusy: async () => "wait" });
    await kernel.run("kept = 1");
    const result = await runAborted(kernel, deaf(8));
    expect(textOf(result)).toContain("The cell has not ended yet");
    expect(await kernel.text("kept")).toBe("1");
    expect(kernel.ready).toHaveLength(1);
  });

  test("a cell that never ends is told to be busy, and killed when that is chosen", async () => {
    let choice: "cancel" | "restart" = "cancel";
    await using kernel = new ToolKernel({ chooseWhenBusy: async () => choice, snapshots: true });
    await kernel.run("kept = 1");
    await kernel.provisioner.prune();
    await runAborted(kernel, deaf(1_000));
    const cancelled = await kernel.run("1 + 1");
    expect(cancelled.details.errorEname).toBe("KernelBusy");
    choice = "restart";
    const restarted = await kernel.run("kept + 1");
    expect(textOf(restarted)).toStartWith("<ipython_kernel_reset>");
    expect(textOf(restarted)).toContain("Restored from the last snapshot: kept.");
    expect(textOf(restarted)).toEndWith("\n2");
    expect(restarted.details.kernelRestarted).toBe(true);
    expect(kernel.lost).toEqual([]);
  });

  test("a thread that goes on printing takes a bounded part of each result", async () => {
    await using kernel = new ToolKernel();
    await kernel.run(
      "import threading, time\ndef noise():\n    while True:\n        print('noise' * 50); time.sleep(0.005)\nthreading.Thread(target=noise, daemon=True).start()",
    );
    for (let index = 0; index < 10; index += 1) {
      const text = await kernel.text(`time.sleep(0.05); print('cell ${index}')`);
      expect(text).toContain(`cell ${index}\n`);
      expect(text.length).toBeLessThan(30_000);
    }
  });
});
