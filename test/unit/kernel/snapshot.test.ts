/** When the namespace is saved, and what a restore reports. */

import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import {
  listNamespaceNames,
  restoreNamespace,
  SnapshotScheduler,
} from "../../../src/kernel/snapshot.ts";
import { ScriptedKernel } from "../../support/scripted-kernel.ts";
import { TempDir } from "../../support/temp-dir.ts";

const DEBOUNCE_MS = 20;

type Answers = Record<string, unknown>;

/** A kernel that answers calls by operation; a missing answer is an error of Python's, "silence" is none. */
async function kernelAnswering(answers: Answers) {
  const scripted = await ScriptedKernel.start({
    onCell: (cell) => (cell.code === "stuck" ? cell.busy().input() : cell.busy().reply().idle()),
    onRequest: (request, wire) => {
      if (request.header.msg_type !== contract.call.request) return false;
      const answer = answers[String(request.content["op"])];
      if (answer === "silence") return true;
      const content =
        answer === undefined
          ? { status: "error", ename: "LookupError", evalue: "unknown operation" }
          : { status: "ok", result: answer };
      wire.reply(request, contract.call.reply, content);
      return true;
    },
  });
  const calls = () =>
    scripted.requests(contract.call.request).map(({ content }) => content["op"] as string);
  const untilCalled = (op: string, times = 1) =>
    scripted.wire.until(() => calls().filter((called) => called === op).length >= times);
  return { scripted, calls, untilCalled };
}

const STARTED = { snapshot: { started: true, pid: 7 }, snapshot_wait: { running: false } };

describe("a snapshot", () => {
  test("follows quick cells once, with the limits of the contract", async () => {
    using dir = new TempDir();
    const { scripted, calls, untilCalled } = await kernelAnswering(STARTED);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.join("artifacts"), DEBOUNCE_MS);
    for (let cell = 0; cell < 5; cell += 1) scheduler.onCellEnded(true);
    await untilCalled("snapshot");
    const [call] = scripted.requests(contract.call.request);
    expect(call?.channel).toBe("shell");
    expect(call?.content["args"]).toEqual({
      dir: dir.join("artifacts"),
      max_variable_bytes: 16 * 1024 * 1024,
      max_total_bytes: 256 * 1024 * 1024,
      seconds: 60,
    });
    await scheduler.flush();
    expect(calls()).toEqual(["snapshot", "snapshot_wait"]);
  });

  test("does not follow a failed cell, and none follows a stop", async () => {
    using dir = new TempDir();
    const { scripted, calls } = await kernelAnswering(STARTED);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, DEBOUNCE_MS);
    scheduler.onCellEnded(false);
    await scheduler.flush();
    expect(calls()).toEqual(["snapshot_wait"]);
    scheduler.onCellEnded(true);
    scheduler.stop();
    await scheduler.flush();
    expect(calls()).toEqual(["snapshot_wait"]);
  });

  test("that is due is written when leaving, and waited for", async () => {
    using dir = new TempDir();
    const { scripted, calls } = await kernelAnswering(STARTED);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, 60_000);
    scheduler.onCellEnded(true);
    await scheduler.flush();
    expect(calls()).toEqual(["snapshot_wait", "snapshot", "snapshot_wait"]);
    expect(scripted.requests(contract.call.request)[0]?.channel).toBe("control");
  });

  test("comes again when the one before was still being written", async () => {
    using dir = new TempDir();
    const answers: Answers = {
      snapshot: { started: false, reason: "a snapshot is being written", pid: 7 },
      snapshot_wait: { running: false },
    };
    const { scripted, calls, untilCalled } = await kernelAnswering(answers);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, DEBOUNCE_MS);
    scheduler.onCellEnded(true);
    await untilCalled("snapshot_wait");
    answers["snapshot"] = STARTED.snapshot;
    await untilCalled("snapshot", 2);
    await scheduler.flush();
    expect(calls()).toEqual(["snapshot", "snapshot_wait", "snapshot", "snapshot_wait"]);
  });

  test("is not asked for while a cell runs", async () => {
    using dir = new TempDir();
    const { scripted, calls } = await kernelAnswering(STARTED);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, 0);
    const running = scripted.run("stuck");
    await scripted.wire.request("execute_request");
    scheduler.onCellEnded(true);
    await scheduler.flush();
    expect(await scheduler.prune()).toBeUndefined();
    expect(calls()).toEqual([]);
    scripted.cells[0]?.reply().idle();
    await running;
  });

  test("whose time came while a cell ran is taken before the next one", async () => {
    using dir = new TempDir();
    const { scripted, untilCalled } = await kernelAnswering(STARTED);
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, 0);
    const running = scripted.run("stuck");
    await scripted.wire.request("execute_request");
    scheduler.onCellEnded(true);
    // The timer has fired by now: timers fire in the order of their times.
    await new Promise((resolve) => setTimeout(resolve, 5));
    scripted.cells[0]?.reply().idle();
    await running;
    scheduler.onCellEnded(true);
    await Promise.all([scripted.run("next"), untilCalled("snapshot")]);
    const order = scripted.wire.requests.map(({ header }) => header.msg_type);
    expect(order.lastIndexOf("execute_request")).toBeGreaterThan(
      order.indexOf(contract.call.request),
    );
  });

  test("that Python can't make costs nothing but itself", async () => {
    using dir = new TempDir();
    const { scripted } = await kernelAnswering({});
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path, DEBOUNCE_MS);
    scheduler.onCellEnded(true);
    await scheduler.flush();
    expect(await scheduler.prune()).toBeUndefined();
    expect((await scripted.run("1")).outcome.status).toBe("ok");
  });
});

test("pruning gives the names that are gone, and undefined when nothing could be saved", async () => {
  using dir = new TempDir();
  for (const prune of [{ pruned: ["big"] }, null]) {
    const { scripted } = await kernelAnswering({ prune });
    await using _ = scripted;
    const scheduler = new SnapshotScheduler(scripted.kernel, dir.path);
    expect((await scheduler.prune()) ?? null).toEqual(prune);
  }
});

describe("a restore", () => {
  const REPORTS: Array<{ name: string; answers: Answers; report: unknown }> = [
    {
      name: "gives what came back and what did not",
      answers: { restore: { restored: ["a"], failed: [{ name: "f", reason: "a file" }] } },
      report: { restored: ["a"], failed: [{ name: "f", reason: "a file" }] },
    },
    { name: "of nothing gives nothing", answers: { restore: null }, report: undefined },
    {
      name: "with missing fields has empty lists",
      answers: { restore: {} },
      report: { restored: [], failed: [] },
    },
    {
      name: "of a damaged file that names nothing blames the file",
      answers: { restore: { restored: [], failed: [], error: "it ends in the middle" } },
      report: {
        restored: [],
        failed: [{ name: "kernel-state.dill", reason: "it ends in the middle" }],
      },
    },
    { name: "that Python can't do gives nothing", answers: {}, report: undefined },
  ];
  test.each(REPORTS)("$name", async ({ answers, report }) => {
    const { scripted } = await kernelAnswering(answers);
    await using _ = scripted;
    expect(await restoreNamespace(scripted.kernel, "/artifacts")).toEqual(report as never);
  });
});

test("a restore names what was there and could not be saved", async () => {
  using dir = new TempDir();
  const skipped = [{ name: "lock", reason: "a lock" }, { name: "a", reason: "too big then" }, {}];
  dir.write("kernel-state.json", JSON.stringify({ skipped }));
  const { scripted } = await kernelAnswering({ restore: { restored: ["a"], failed: [] } });
  await using _ = scripted;
  expect(await restoreNamespace(scripted.kernel, dir.path)).toEqual({
    restored: ["a"],
    failed: [{ name: "lock", reason: "a lock" }],
  });
});

test("names are listed, but not by a kernel that is busy, fails or is gone", async () => {
  const names = [{ name: "x", description: "int" }];
  const { scripted } = await kernelAnswering({ list_names: { names } });
  await using _ = scripted;
  expect(await listNamespaceNames(scripted.kernel)).toEqual(names);
  const running = scripted.run("stuck");
  await scripted.wire.request("execute_request");
  expect(await listNamespaceNames(scripted.kernel)).toBeUndefined();
  scripted.cells[0]?.reply().idle();
  await running;
  scripted.process.exit({ code: 1, signal: null });
  await scripted.kernel.gone;
  expect(await listNamespaceNames(scripted.kernel)).toBeUndefined();
  const failing = await kernelAnswering({});
  await using __ = failing.scripted;
  expect(await listNamespaceNames(failing.scripted.kernel)).toBeUndefined();
});
