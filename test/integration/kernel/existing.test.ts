/** `--existing`: the tool on kernels that somebody else started, with their own habits, which outlive us. */

import { expect, test } from "bun:test";
import { join } from "node:path";
import { connectExistingKernel } from "../../../src/kernel/existing.ts";
import {
  describeWithForeignKernel,
  ForeignKernel,
  type ForeignName,
} from "../../support/foreign-kernel.ts";
import { describeWithPython } from "../../support/python.ts";
import { RealKernel } from "../../support/real-kernel.ts";
import { abortWhen, textOf, ToolKernel, Watched } from "../../support/tool-kernel.ts";

/** The same cells in two languages. */
interface Cells {
  print: string;
  fail: string;
  says: RegExp;
  define: string;
  use: string;
  flood: string;
  /** Prints "begun", then waits for so many seconds. */
  wait(seconds: number): string;
}

const PYTHON: Cells = {
  print: "print('héllo')",
  fail: "1/0",
  says: /ZeroDivisionError: division by zero/,
  define: "x = 41",
  use: "x + 1",
  flood: "for i in range(400): print(i)",
  wait: (seconds) => `import time\nprint('begun', flush=True)\ntime.sleep(${seconds})`,
};
const TYPESCRIPT: Cells = {
  print: "console.log('héllo')",
  fail: "throw new Error('division by zero')",
  says: /Error: division by zero/,
  define: "const x = 41",
  use: "x + 1",
  flood: "for (let i = 0; i < 400; i++) console.log(i)",
  wait: (seconds) =>
    `console.log('begun'); await new Promise((done) => setTimeout(done, ${seconds * 1000}))`,
};

/** A kernel that runs, and where its connection file is. */
interface Running extends AsyncDisposable {
  file(): Promise<string>;
  isAlive(): boolean;
}

function foreign(name: ForeignName): Running {
  const kernel = new ForeignKernel(name);
  return {
    file: async () => kernel.connectionFile,
    isAlive: () => kernel.isAlive,
    [Symbol.asyncDispose]: () => kernel[Symbol.asyncDispose](),
  };
}

function ipykernel(python: "newest" | "oldest", transport: "ipc" | "tcp"): Running {
  const kernel = new RealKernel(python, transport);
  return {
    file: async () => {
      await kernel.info;
      return join(kernel.directory.path, "kernel.json");
    },
    isAlive: () => true,
    [Symbol.asyncDispose]: () => kernel[Symbol.asyncDispose](),
  };
}

/** A tool on the kernel; its sockets may not be there yet. */
async function attach(running: Running): Promise<ToolKernel> {
  const path = await running.file();
  for (;;) {
    const tool = new ToolKernel({ boot: connectExistingKernel(path) });
    try {
      await tool.provisioner.ensure();
      return tool;
    } catch {
      await tool[Symbol.asyncDispose]();
    }
  }
}

function commonTests(start: () => Running, cells: Cells): void {
  test("runs cells: output, values, errors, state, and all of a flood", async () => {
    await using running = start();
    await using tool = await attach(running);
    expect(await tool.text(cells.print)).toBe("héllo\n");
    await tool.run(cells.define);
    const failed = await tool.run(cells.fail);
    expect(failed.isError).toBe(true);
    expect(textOf(failed)).toMatch(cells.says);
    expect(await tool.text(cells.use)).toBe("42");
    // Below what a publisher keeps for a reader that is slow, at two messages a line: beyond that it drops without a word.
    const lines = Array.from({ length: 400 }, (_, index) => `${index}\n`).join("");
    expect((await tool.run(cells.flood)).details.stdout).toBe(lines);
    expect(await tool.text(cells.use)).toBe("42");
  });

  test("outlives us, with its state, and takes us back", async () => {
    await using running = start();
    const first = await attach(running);
    await first.run(cells.define);
    await first[Symbol.asyncDispose]();
    await using again = await attach(running);
    expect(await again.text(cells.use)).toBe("42");
    expect(running.isAlive()).toBe(true);
  });
}

/** For kernels that heed an interrupt. */
function interruptTest(start: () => Running, cells: Cells): void {
  test("is interrupted, and runs the next cell at once", async () => {
    await using running = start();
    await using tool = await attach(running);
    const watched = new Watched();
    const result = await tool.run(cells.wait(1_000), {
      signal: abortWhen(watched.saw("begun")),
      onOutput: watched.onOutput,
    });
    expect(result.details.status).toBe("aborted");
    expect(textOf(result)).toContain("the next cell runs normally");
    await tool.run(cells.define);
    expect(await tool.text(cells.use)).toBe("42");
  });
}

/** For kernels that don't. */
function deafTest(start: () => Running, cells: Cells): void {
  test("that ignores the interrupt keeps the next cell waiting, which then runs", async () => {
    await using running = start();
    await using tool = await attach(running);
    const watched = new Watched();
    const result = await tool.run(cells.wait(3), {
      signal: abortWhen(watched.saw("begun")),
      onOutput: watched.onOutput,
    });
    expect(result.details.status).toBe("aborted");
    expect(textOf(result)).toContain("The cell has not ended yet");
    await tool.run(cells.define);
    expect(await tool.text(cells.use)).toBe("42");
    expect(running.isAlive()).toBe(true);
  });
}

for (const python of ["newest", "oldest"] as const) {
  const transport = python === "newest" ? "ipc" : "tcp";
  describeWithPython(python, `the ${python} ipykernel over ${transport}`, () => {
    const start = () => ipykernel(python, transport);
    commonTests(start, PYTHON);
    interruptTest(start, PYTHON);
  });
}

describeWithForeignKernel("xeus-python", () => {
  commonTests(() => foreign("xeus-python"), PYTHON);
  deafTest(() => foreign("xeus-python"), PYTHON);
});

describeWithForeignKernel("xeus-python --raw", () => {
  commonTests(() => foreign("xeus-python --raw"), PYTHON);
});

describeWithForeignKernel("deno", () => {
  commonTests(() => foreign("deno"), TYPESCRIPT);

  test("whose interrupted cell never ends is told to be busy, and left alone", async () => {
    await using running = foreign("deno");
    await using tool = await attach(running);
    const watched = new Watched();
    const result = await tool.run(TYPESCRIPT.wait(1), {
      signal: abortWhen(watched.saw("begun")),
      onOutput: watched.onOutput,
    });
    expect(result.details.status).toBe("aborted");
    expect((await tool.run(TYPESCRIPT.use)).details.errorEname).toBe("KernelBusy");
    expect(running.isAlive()).toBe(true);
  });
});
