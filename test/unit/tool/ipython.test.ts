/** The tool over scripted kernels: busy kernels and the choice about them, aborts, notices, shapes of results. */

import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { KernelBusyAfterInterruptError, KernelStartError } from "../../../src/kernel/errors.ts";
import { IpythonKernelProvisioner } from "../../../src/kernel/provisioner.ts";
import {
  createIpythonTool,
  type BusyChoice,
  type IpythonToolOptions,
} from "../../../src/tool/ipython.ts";
import { renderNotice } from "../../../src/tool/result.ts";
import { ScriptedBoots, type BootScript } from "../../support/scripted-boots.ts";
import { succeed, type ScriptedCell } from "../../support/scripted-kernel.ts";
import { textOf } from "../../support/tool-kernel.ts";

/** Begins what is called "stuck", and acts out all else by printing its code. */
function stick(cell: ScriptedCell): void {
  if (cell.code === "stuck") cell.busy().input();
  else cell.busy().input().print(`${cell.code}\n`).reply().idle();
}

/** A tool over scripted boots. */
function createTool(scripts: BootScript[], options: Partial<IpythonToolOptions> = {}) {
  const boots = new ScriptedBoots(...scripts);
  const questions: KernelBusyAfterInterruptError[] = [];
  const tool = createIpythonTool({
    provisioner: new IpythonKernelProvisioner({ boot: boots.boot }),
    outputDir: () => undefined,
    ...options,
    chooseWhenBusy: async (error, moot) => {
      questions.push(error);
      return (await options.chooseWhenBusy?.(error, moot)) ?? "cancel";
    },
  });
  return { boots, tool, questions };
}

/** A tool whose kernel is kept busy by a cell that was aborted; `free` ends that cell. */
async function busyTool(
  choose: IpythonToolOptions["chooseWhenBusy"],
  script: BootScript = {},
): Promise<ReturnType<typeof createTool> & { free(): void }> {
  const created = createTool([{ onCell: stick, ...script }], { chooseWhenBusy: choose });
  const { boots, tool } = created;
  const abort = new AbortController();
  await tool.run("warm");
  const [kernel] = boots.kernels;
  const stuck = tool.run("stuck", { signal: abort.signal });
  await kernel?.wire.until(() => kernel.cells.length === 2);
  abort.abort();
  expect((await stuck).details.status).toBe("aborted");
  return { ...created, free: () => kernel?.cells[1]?.reply().idle() };
}

describe("when an earlier cell keeps the kernel busy", () => {
  test("a choice to cancel gives an error, sends nothing and keeps the kernel", async () => {
    const { boots, tool, questions } = await busyTool(async () => "cancel");
    await using _ = boots;
    const result = await tool.run("next");
    expect(result.isError).toBe(true);
    expect(result.details).toMatchObject({
      status: "error",
      errorEname: "KernelBusy",
      kernelRestarted: false,
      notes: [],
    });
    expect(textOf(result)).toContain("An earlier cell still runs");
    expect(questions).toHaveLength(1);
    expect(boots.kernels.flatMap(({ cells }) => cells.map(({ code }) => code))).toEqual([
      "warm",
      "stuck",
    ]);
    expect(boots.kernels[0]?.kernel.goneReason).toBeUndefined();
  });

  test("a choice to wait tries again without killing, as often as it is chosen", async () => {
    const { boots, tool, questions, free } = await busyTool(async () => {
      if (questions.length === 2) free();
      return "wait";
    });
    await using _ = boots;
    expect(textOf(await tool.run("next"))).toBe("next\n");
    expect(questions).toHaveLength(2);
    expect(boots.begun).toBe(1);
  });

  test("a choice to restart kills, runs the cell in a fresh kernel and says what is gone", async () => {
    const { boots, tool } = await busyTool(async () => "restart");
    await using _ = boots;
    const result = await tool.run("next");
    expect(textOf(result)).toBe(
      renderNotice({
        reason: "an earlier cell did not end, and the restart was chosen",
        restored: [],
        failed: [],
      }) + "\nnext\n",
    );
    expect(result.details.kernelRestarted).toBe(true);
    expect(result.isError).toBe(false);
    expect(boots.kernels[0]?.process.signals.at(-1)).toBe("SIGKILL group");
    expect((await tool.run("again")).details.kernelRestarted).toBe(false);
  });

  test("a kernel that somebody else started is not restarted", async () => {
    const { boots, tool } = await busyTool(async () => "restart", { foreign: true });
    await using _ = boots;
    const result = await tool.run("next");
    expect(textOf(result)).toContain("somebody else started is not restarted");
    expect(boots.kernels[0]?.kernel.goneReason).toBeUndefined();
  });

  test("a question that fails counts as cancel", async () => {
    const { boots, tool } = await busyTool(() => Promise.reject(new Error("the window is gone")));
    await using _ = boots;
    expect((await tool.run("next")).details.errorEname).toBe("KernelBusy");
  });

  test("a question is taken back when the cell ends meanwhile, and the call goes on", async () => {
    let taken = false;
    const { boots, tool, free } = await busyTool((_error, moot) => {
      moot?.addEventListener("abort", () => (taken = true));
      free();
      return new Promise<BusyChoice>(() => undefined);
    });
    await using _ = boots;
    expect(textOf(await tool.run("next"))).toBe("next\n");
    expect(taken).toBe(true);
  });

  test("an abort during the question ends the call", async () => {
    const abort = new AbortController();
    const asked = defer<AbortSignal>();
    const { boots, tool } = await busyTool((_error, moot) => {
      asked.resolve(moot as AbortSignal);
      return new Promise<BusyChoice>(() => undefined);
    });
    await using _ = boots;
    const running = tool.run("next", { signal: abort.signal });
    const moot = await asked.promise;
    abort.abort();
    const result = await running;
    expect(result.details.status).toBe("aborted");
    expect(textOf(result)).toBe("[interrupted by the user]\nThe cell was not run.");
    expect(moot.aborted).toBe(true);
  });

  test("two calls behind a hung cell both get a result", async () => {
    const { boots, tool } = await busyTool(async () => "cancel");
    await using _ = boots;
    const results = await Promise.all([tool.run("second"), tool.run("third")]);
    expect(results.map(({ isError }) => isError)).toEqual([true, true]);
  });
});

describe("a call", () => {
  /** Cells, and what the model reads of them. */
  const SHAPES: Array<{
    name: string;
    cell(cell: ScriptedCell): void;
    text: string;
    isError: boolean;
  }> = [
    { name: "nothing", cell: succeed, text: "(no output)", isError: false },
    {
      name: "all four parts, in their order",
      cell: (cell) =>
        cell
          .busy()
          .publish("error", { ename: "E", evalue: "v", traceback: ["traceback"] })
          .print("err\n", "stderr")
          .publish("execute_result", { data: { "text/plain": "result" } })
          .print("out\n")
          .reply({ status: "error", ename: "E", evalue: "v" })
          .idle(),
      text: "out\nerr\nresult\ntraceback",
      isError: false,
    },
    {
      name: "an error that only the reply tells",
      cell: (cell) =>
        cell.busy().reply({ status: "error", ename: "UsageError", evalue: "no magic" }).idle(),
      text: "UsageError: no magic",
      isError: true,
    },
    {
      name: "a pager's page",
      cell: (cell) =>
        cell
          .busy()
          .print("printed")
          .reply({ status: "ok", payload: [{ source: "page", data: { "text/plain": "help" } }] })
          .idle(),
      text: "printed\nhelp\n",
      isError: false,
    },
    {
      name: "output that is over when the kernel does not say so",
      cell: (cell) => cell.busy().input().print("all\n").reply(),
      text: "all\nThe kernel did not report the end of this cell's output; some of it may be missing.",
      isError: false,
    },
    {
      name: "an image that can't be read",
      cell: (cell) =>
        cell
          .busy()
          .publish("display_data", { data: { "image/png": "eA==", "text/plain": "<Figure>" } })
          .reply()
          .idle(),
      text: "<Figure>\n[image 1: left out: its data is not a readable image/png image]",
      isError: false,
    },
  ];
  test.each(SHAPES)("shows $name", async ({ cell, text, isError }) => {
    const { boots, tool } = createTool([{ onCell: cell }]);
    await using _ = boots;
    const result = await tool.run("code");
    expect(textOf(result)).toBe(text);
    expect(result.isError).toBe(isError);
  });

  test("keeps details for others: clean, bounded, without the data of attachments", async () => {
    const huge = `\x1b[31m${"q".repeat(200_000)}`;
    const { boots, tool } = createTool([
      {
        onCell: (cell) =>
          cell
            .busy()
            .publish("error", { ename: "V", evalue: huge, traceback: [huge, huge] })
            .reply({ status: "error", ename: "V", evalue: huge, traceback: [huge, huge] })
            .idle(),
      },
    ]);
    await using _ = boots;
    const { details, content } = await tool.run("code");
    expect(JSON.stringify(details).length).toBeLessThan(80_000);
    expect(JSON.stringify(content).length).toBeLessThan(70_000);
    expect(JSON.stringify([details, content])).not.toContain("\\u001b");
    expect(details.errorEname).toBe("V");
  });

  test("before any kernel is aborted without being run", async () => {
    const { boots, tool } = createTool([{ gate: new Promise(() => undefined) }]);
    await using _ = boots;
    const result = await tool.run("code", { signal: AbortSignal.timeout(0) });
    expect(result.details.status).toBe("aborted");
    expect(textOf(result)).toContain("The cell was not run.");
  });

  test("throws what means that there is no kernel", async () => {
    const { boots, tool } = createTool([
      { gate: Promise.reject(new KernelStartError("no Python")) },
    ]);
    await using _ = boots;
    expect(await tool.run("code").catch((error) => error)).toBeInstanceOf(KernelStartError);
  });

  test("keeps the output of a cell whose kernel dies, and is never run again", async () => {
    const { boots, tool } = createTool([
      {
        onCell: (cell) => {
          cell.busy().input().print("so far\n");
          if (cell.code === "die") boots.kernels[0]?.process.exit({ code: 3, signal: null });
          else cell.reply().idle();
        },
      },
    ]);
    await using _ = boots;
    const dead = await tool.run("die");
    expect(dead.isError).toBe(true);
    expect(dead.details.errorEname).toBe("KernelDied");
    expect(textOf(dead)).toStartWith("so far\nThe kernel ended: it exited with code 3.");
    expect(textOf(await tool.run("next"))).toContain("<ipython_kernel_reset>");
    expect(boots.kernels.flatMap(({ cells }) => cells.map(({ code }) => code))).toEqual([
      "die",
      "next",
    ]);
  });

  test("hands over late output marked as such, once", async () => {
    const { boots, tool } = createTool([{ onCell: stick }]);
    await using _ = boots;
    await tool.run("first");
    boots.kernels[0]?.cells[0]?.print("\x1b[1mlate\x1b[0m\n");
    const second = await tool.run("second");
    expect(textOf(second)).toBe("second\n[late output of earlier cells]\nlate");
    expect(second.details.notes).toEqual(["[late output of earlier cells]\nlate"]);
    expect(textOf(await tool.run("third"))).toBe("third\n");
  });
});

describe("the notice of a restart", () => {
  test("names what is back and what is gone", () => {
    const notice = {
      reason: "killed",
      restored: ["a", "b"],
      failed: [{ name: "f", reason: "a file" }],
    };
    expect(renderNotice(notice).split("\n")).toEqual([
      "<ipython_kernel_reset>",
      "The kernel was restarted: killed",
      "Restored from the last snapshot: a, b.",
      "Gone: f (a file).",
      expect.stringContaining("Everything else"),
      "</ipython_kernel_reset>",
    ]);
  });

  test("stays readable with thousands of names", () => {
    const restored = Array.from({ length: 5_000 }, (_, index) => `name_${index}`);
    expect(renderNotice({ reason: "killed", restored, failed: [] })).toContain(" and 4900 more.");
  });
});
