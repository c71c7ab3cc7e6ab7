/** A cell's end, whatever a kernel says, leaves out, repeats or says in the wrong order. */

import { describe, expect, test } from "bun:test";
import type { CellOutput, ExecutionOutcome } from "../../../src/kernel/execution.ts";
import { ScriptedKernel, type ScriptedCell } from "../../support/scripted-kernel.ts";

const OK = { status: "ok", executionCount: 1, pages: [] };
const LOST_OUTPUT = expect.stringContaining("some of it may be missing");
const error = (ename: string, evalue: string, traceback: string[] = []) => ({
  ename,
  evalue,
  traceback,
});
const ZERO = { ename: "ZeroDivisionError", evalue: "division by zero", traceback: ["tb"] };

/** What the kernel does, and what the caller must learn. */
const ENDS: Array<{
  name: string;
  cell(cell: ScriptedCell): void;
  outcome: object;
  output?: CellOutput[];
}> = [
  {
    name: "reply, then idle",
    cell: (cell) => cell.busy().input().print("a").reply().idle(),
    outcome: OK,
    output: [{ kind: "stream", name: "stdout", text: "a" }],
  },
  {
    name: "idle, then reply",
    cell: (cell) => cell.busy().input().print("a").idle().reply(),
    outcome: OK,
    output: [{ kind: "stream", name: "stdout", text: "a" }],
  },
  {
    name: "a reply before busy",
    cell: (cell) => cell.reply().busy().input().idle(),
    outcome: OK,
  },
  {
    name: "a reply without idle, of a cell that ran",
    cell: (cell) => cell.busy().input().print("a").reply(),
    outcome: { ...OK, note: LOST_OUTPUT },
    output: [{ kind: "stream", name: "stdout", text: "a" }],
  },
  {
    name: "an idle without reply",
    cell: (cell) => cell.busy().input().print("a").idle(),
    outcome: {
      status: "error",
      pages: [],
      error: error("NoReply", "The kernel finished this cell without reporting how it ended."),
    },
    output: [{ kind: "stream", name: "stdout", text: "a" }],
  },
  {
    name: "an idle without reply after an error",
    cell: (cell) => cell.busy().input().publish("error", ZERO).idle(),
    outcome: { status: "error", pages: [], error: ZERO },
    output: [{ kind: "error", error: ZERO }],
  },
  {
    name: "an error in reply and on iopub",
    cell: (cell) =>
      cell
        .busy()
        .publish("error", ZERO)
        .reply({ status: "error", ...ZERO })
        .idle(),
    outcome: { status: "error", pages: [], error: ZERO },
    output: [{ kind: "error", error: ZERO }],
  },
  {
    name: "an error only in the reply",
    cell: (cell) =>
      cell
        .busy()
        .reply({ status: "error", ...ZERO })
        .idle(),
    outcome: { status: "error", pages: [], error: ZERO },
  },
  {
    name: "an error only on iopub",
    cell: (cell) => cell.busy().publish("error", ZERO).reply().idle(),
    outcome: { ...OK, status: "error", error: ZERO },
    output: [{ kind: "error", error: ZERO }],
  },
  {
    name: "a result after an error, since only one representation failed",
    cell: (cell) =>
      cell
        .busy()
        .publish("error", ZERO)
        .publish("execute_result", { data: { "text/plain": "x" } })
        .reply()
        .idle(),
    outcome: OK,
    output: [
      { kind: "error", error: ZERO },
      { kind: "result", data: { "text/plain": "x" } },
    ],
  },
  {
    name: "a display after an error whose reply says error",
    cell: (cell) =>
      cell
        .busy()
        .publish("error", ZERO)
        .publish("display_data", { data: { "text/plain": "x" } })
        .reply({ status: "error", ...ZERO })
        .idle(),
    outcome: { status: "error", pages: [], error: ZERO },
    output: [
      { kind: "error", error: ZERO },
      { kind: "display", data: { "text/plain": "x" }, update: false },
    ],
  },
  {
    name: 'status "error" without a name (xeus)',
    cell: (cell) => cell.busy().input().reply({ status: "error" }).idle(),
    outcome: {
      status: "error",
      pages: [],
      error: error("KernelError", 'the kernel reported the status "error" and nothing else'),
    },
  },
  {
    name: "a reply without a status",
    cell: (cell) => cell.busy().input().reply({}).idle(),
    outcome: {
      status: "error",
      pages: [],
      error: error("KernelError", "the kernel did not say how the cell ended"),
    },
  },
  {
    name: "a second reply that contradicts the first",
    cell: (cell) => cell.busy().reply().reply({ status: "error" }).idle(),
    outcome: OK,
  },
  {
    name: "pages of a pager, in both forms",
    cell: (cell) =>
      cell
        .busy()
        .reply({
          status: "ok",
          payload: [
            { source: "page", data: { "text/plain": "a" } },
            { source: "page", text: "b" },
            { source: "ask_exit" },
            null,
          ],
        })
        .idle(),
    outcome: { status: "ok", pages: [{ "text/plain": "a" }, { "text/plain": "b" }] },
  },
  {
    name: "fields of the wrong type, and messages of unknown types",
    cell: (cell) =>
      cell
        .busy()
        .publish("stream", { text: 5 })
        .publish("display_data", { data: null, transient: null })
        .publish("something_new", {})
        .publish("error", {})
        .reply({ status: "ok", payload: 5 })
        .idle(),
    outcome: {
      status: "error",
      pages: [],
      error: error("KernelError", "the kernel did not say how the cell ended"),
    },
    output: [
      { kind: "stream", name: "stdout", text: "5" },
      { kind: "display", data: {}, update: false },
      { kind: "error", error: error("KernelError", "the kernel did not say how the cell ended") },
    ],
  },
];

describe("a cell ends", () => {
  test.each(ENDS)("with $name", async ({ cell, outcome, output = [] }) => {
    await using scripted = await ScriptedKernel.start({ onCell: cell });
    const run = await scripted.run("code");
    expect(run.outcome as object).toEqual(outcome);
    expect(run.output).toEqual(output);
    expect(scripted.kernel.busy).toBe(false);
  });

  test("when the kernel has gone silent after the reply and answers no fence either", async () => {
    let silent = false;
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => {
        silent = true;
        cell.busy().input().reply();
      },
      onRequest: () => silent,
    });
    expect((await scripted.run("code")).outcome).toEqual(OK as ExecutionOutcome);
  });

  test.each(["aborted", "abort"])(
    'by being sent again when the kernel drops it unread with "%s"',
    async (status) => {
      await using scripted = await ScriptedKernel.start({
        onCell: (cell) => {
          // ipykernel publishes busy and idle also around what it drops.
          if (scripted.cells.length < 3) cell.busy().reply({ status }).idle();
          else cell.busy().input().print(cell.code).reply().idle();
        },
      });
      const { outcome, output } = await scripted.run("code");
      expect(outcome.status).toBe("ok");
      expect(output).toEqual([{ kind: "stream", name: "stdout", text: "code" }]);
      expect(scripted.cells).toHaveLength(3);
      expect(scripted.requests("execute_request")[0]?.content["stop_on_error"]).toBe(false);
    },
  );

  test("as an error, unrepeated, when it was aborted after it had begun to run", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => cell.busy().input().reply({ status: "aborted" }).idle(),
    });
    expect((await scripted.run("code")).outcome.error?.evalue).toContain('"aborted"');
    expect(scripted.cells).toHaveLength(1);
  });

  test("as an error when the kernel drops it for ever", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => cell.reply({ status: "aborted" }).idle(),
    });
    expect((await scripted.run("code")).outcome.status).toBe("error");
    expect(scripted.cells).toHaveLength(6);
  });

  test("when a request on shell wakes a kernel that has not taken it up", async () => {
    let waiting: ScriptedCell | undefined;
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => (waiting = cell),
      onRequest: (request) => {
        if (request.header.msg_type === "kernel_info_request")
          waiting?.busy().input().reply().idle();
      },
    });
    expect((await scripted.run("code")).outcome.status).toBe("ok");
  });
});

describe("a cell's output", () => {
  test("does not hold what belongs to others, and nothing of theirs ends the cell", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => {
        const foreign = { parent: { msg_id: "somebody-else_1" } };
        cell.busy().input();
        scripted.wire.publish("stream", { name: "stdout", text: "theirs" }, foreign);
        scripted.wire.publish("status", { execution_state: "idle" }, foreign);
        scripted.wire.publish("status", { execution_state: "idle" });
        scripted.wire.publish("iopub_welcome", { subscription: "" });
        cell.print("mine").reply().idle();
      },
    });
    const { output } = await scripted.run("code");
    expect(output).toEqual([{ kind: "stream", name: "stdout", text: "mine" }]);
    expect(scripted.kernel.takeLate()).toBeUndefined();
  });

  test("is not touched by a reply that comes long after", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => {
        if (cell.code === "first") cell.busy().input().idle();
        else {
          scripted.cells[0]?.reply({ status: "error", ...ZERO });
          cell.busy().input().print("second").reply().idle();
        }
      },
    });
    expect((await scripted.run("first")).outcome.error?.ename).toBe("NoReply");
    expect((await scripted.run("second")).outcome).toEqual(OK as ExecutionOutcome);
  });

  test("that trails behind the end is waited for, where the kernel is known for it", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: (cell) => cell.busy().input().reply().idle().print("trailing"),
      times: { linger: 50 },
    });
    const { output } = await scripted.run("code");
    expect(output).toEqual([{ kind: "stream", name: "stdout", text: "trailing" }]);
  });

  test("that comes after the cell is kept apart as late", async () => {
    await using scripted = await ScriptedKernel.start();
    await scripted.run("first");
    scripted.cells[0]?.print("late");
    await scripted.run("second");
    expect(scripted.kernel.takeLate()).toEqual({ text: "late", droppedChars: 0 });
    expect(scripted.kernel.takeLate()).toBeUndefined();
  });
});
