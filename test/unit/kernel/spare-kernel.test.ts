/** The kernel in reserve: made when it is quiet, taken once, and never left behind. */

import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { defer } from "../../../src/async.ts";
import { createIpcConnection } from "../../../src/jupyter/connection-file.ts";
import type { LaunchedKernel } from "../../../src/kernel/launched-kernel.ts";
import { makeRuntimeDir } from "../../../src/kernel/runtime-dir.ts";
import { SpareKernel } from "../../../src/kernel/spare-kernel.ts";
import { ScriptedProcess } from "../../support/scripted-kernel.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** Makes kernels with folders below `base`, and resolves when so many were made. */
function createMaker(base: TempDir) {
  const made: Array<LaunchedKernel & { process: ScriptedProcess }> = [];
  let changed = defer<void>();
  const make = async () => {
    const dir = makeRuntimeDir([base.path]);
    const kernel = { process: new ScriptedProcess(), connection: createIpcConnection(dir), dir };
    made.push(kernel);
    changed.resolve();
    changed = defer();
    return kernel;
  };
  const untilMade = async (count: number) => {
    while (made.length < count) await changed.promise;
    // It counts as a reserve when its process is ready, a few turns later.
    await Bun.sleep(0);
  };
  return { made, make, untilMade };
}

test("orders in a row make one kernel, which is taken once and by its own kind only", async () => {
  using base = new TempDir();
  const { made, make, untilMade } = createMaker(base);
  const spare = new SpareKernel(1);
  for (let order = 0; order < 5; order += 1) spare.order("a", make);
  await untilMade(1);
  expect(spare.take("b")).toBeUndefined();
  expect(spare.take("a")).toBe(made[0] as LaunchedKernel);
  expect(spare.take("a")).toBeUndefined();
  expect(made).toHaveLength(1);
  expect(made[0]?.process.signals).toEqual([]);
});

test("a kernel of another kind takes the place of the one before, which ends", async () => {
  using base = new TempDir();
  const { made, make, untilMade } = createMaker(base);
  const spare = new SpareKernel(1);
  spare.order("a", make);
  await untilMade(1);
  spare.order("b", make);
  await untilMade(2);
  expect(made[0]?.process.signals).toEqual(["SIGKILL group"]);
  expect(existsSync(made[0]?.dir as string)).toBe(false);
  expect(spare.take("b")).toBe(made[1] as LaunchedKernel);
});

test("a kernel that dies in reserve is no reserve, and its folder goes", async () => {
  using base = new TempDir();
  const { made, make, untilMade } = createMaker(base);
  const spare = new SpareKernel(1);
  spare.order("a", make);
  await untilMade(1);
  made[0]?.process.exit({ code: 1, signal: null });
  await Bun.sleep(0);
  expect(spare.take("a")).toBeUndefined();
  expect(existsSync(made[0]?.dir as string)).toBe(false);
});

test("what can't be made costs nothing, and may be ordered again", async () => {
  using base = new TempDir();
  const { make, untilMade } = createMaker(base);
  const spare = new SpareKernel(1);
  const tried = defer<void>();
  spare.order("a", () => {
    tried.resolve();
    return Promise.reject(new Error("no fork"));
  });
  await tried.promise;
  await Bun.sleep(0);
  spare.order("a", make);
  await untilMade(1);
  expect(spare.take("a")).toBeDefined();
});

test("dispose ends the kernel in reserve, one that is being made, and orders", async () => {
  using base = new TempDir();
  const { made, make, untilMade } = createMaker(base);
  const kept = new SpareKernel(1);
  kept.order("a", make);
  await untilMade(1);
  kept.dispose();
  expect(made[0]?.process.signals).toEqual(["SIGKILL group"]);
  const late = new SpareKernel(1);
  const gate = defer<void>();
  const begun = defer<void>();
  late.order("a", async () => {
    begun.resolve();
    await gate.promise;
    return await make();
  });
  await begun.promise;
  late.dispose();
  gate.resolve();
  await untilMade(2);
  expect(made[1]?.process.signals).toEqual(["SIGKILL group"]);
  expect(existsSync(made[1]?.dir as string)).toBe(false);
  late.order("a", make);
  await Bun.sleep(5);
  expect(made).toHaveLength(2);
});
