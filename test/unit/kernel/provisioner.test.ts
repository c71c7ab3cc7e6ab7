/** One kernel for all who ask: shared starts, failed starts, restarts, and ends that overtake starts. */

import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { AbortedError } from "../../../src/errors.ts";
import { KernelDisposedError, KernelStartError } from "../../../src/kernel/errors.ts";
import {
  IpythonKernelProvisioner,
  type KernelReadyEvent,
  type ProvisionerOptions,
} from "../../../src/kernel/provisioner.ts";
import type { RestoreReport } from "../../../src/kernel/snapshot.ts";
import { ScriptedBoots, type BootScript } from "../../support/scripted-boots.ts";

const caught = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => error,
  );
const died = { code: null, signal: "SIGKILL" };
const RESTORE = { restored: ["x"], failed: [{ name: "f", reason: "an open file" }] };

/** A provisioner over scripted boots, and all that it reports. */
function provide(scripts: BootScript[] = [], options: Partial<ProvisionerOptions> = {}) {
  const boots = new ScriptedBoots(...scripts);
  const ready: KernelReadyEvent[] = [];
  const lost: Error[] = [];
  const restores: RestoreReport[] = [];
  const provisioner = new IpythonKernelProvisioner({
    boot: boots.boot,
    onReady: (event) => ready.push(event),
    onLost: (error) => lost.push(error),
    onRestore: (report) => restores.push(report),
    ...options,
  });
  return { boots, provisioner, ready, lost, restores };
}

describe("a start", () => {
  test("is shared by all who ask, each told the stage, also who joins late", async () => {
    const gate = defer<void>();
    const { boots, provisioner, ready } = provide([{ gate: gate.promise }]);
    await using _ = boots;
    const stages: string[] = [];
    const listen = (who: string) => (stage: string) => stages.push(`${who}: ${stage}`);
    const first = provisioner.ensure(listen("a"));
    await boots.untilBegun(1);
    const second = provisioner.ensure(listen("b"));
    provisioner.prewarm();
    gate.resolve();
    expect(await first).toBe(await second);
    expect(await provisioner.ensure()).toBe(await first);
    expect(boots.begun).toBe(1);
    expect(stages).toEqual(["a: Starting IPython kernel…", "b: Starting IPython kernel…"]);
    expect(ready).toEqual([{ restarted: false, bootMs: 1 }]);
  });

  test("that fails is forgotten: the next call tries again", async () => {
    const failed = Promise.reject(new KernelStartError("no Python"));
    const { boots, provisioner, ready } = provide([{ gate: failed }, {}]);
    await using _ = boots;
    const both = [provisioner.ensure(), provisioner.ensure()].map(caught);
    for (const error of await Promise.all(both)) expect(error).toBeInstanceOf(KernelStartError);
    expect(await provisioner.ensure()).toBe(boots.kernels[0]?.kernel as never);
    expect(boots.begun).toBe(2);
    expect(ready).toEqual([{ restarted: false, bootMs: 1 }]);
    expect(provisioner.takeNotice()).toBeUndefined();
  });

  test("in the background swallows its failure", async () => {
    const { boots, provisioner } = provide([{ gate: Promise.reject(new Error("no")) }, {}]);
    await using _ = boots;
    provisioner.prewarm();
    await boots.untilBegun(1);
    await caught(provisioner.ensure());
    await provisioner.ensure();
    expect(boots.begun).toBe(2);
  });

  test("waits for the ready gate, and goes on when that fails", async () => {
    const readyGate = defer<void>();
    const { boots, provisioner } = provide([], { readyGate: readyGate.promise });
    await using _ = boots;
    const starting = provisioner.ensure();
    await Promise.resolve();
    expect(boots.begun).toBe(0);
    readyGate.reject(new Error("the last kernel hung"));
    await starting;
    expect(boots.begun).toBe(1);
  });

  test("goes on for the others when one caller is aborted, whose listener is dropped", async () => {
    const gate = defer<void>();
    const { boots, provisioner } = provide([{ gate: gate.promise }]);
    await using _ = boots;
    const abort = new AbortController();
    const aborted = caught(provisioner.ensure(undefined, abort.signal));
    const other = provisioner.ensure();
    await boots.untilBegun(1);
    abort.abort();
    expect(await aborted).toBeInstanceOf(AbortedError);
    gate.resolve();
    expect((await other).goneReason).toBeUndefined();
  });

  test("that nobody waits for any more ends, and the next call begins anew", async () => {
    const { boots, provisioner } = provide([{ gate: new Promise(() => undefined) }, {}]);
    await using _ = boots;
    const abort = new AbortController();
    const aborted = caught(provisioner.ensure(undefined, abort.signal));
    await boots.untilBegun(1);
    abort.abort();
    await aborted;
    await provisioner.ensure();
    expect(boots.begun).toBe(2);
  });

  test("is not begun by a signal that has fired, and a later one works", async () => {
    const { boots, provisioner } = provide();
    await using _ = boots;
    const error = await caught(provisioner.ensure(undefined, AbortSignal.abort()));
    expect(error).toBeInstanceOf(AbortedError);
    expect(boots.begun).toBe(0);
    expect((await provisioner.ensure()).goneReason).toBeUndefined();
  });
});

describe("a restart", () => {
  test("after a death is reported once, with its reason and what came back", async () => {
    const { boots, provisioner, ready, lost, restores } = provide([{}, { restore: RESTORE }]);
    await using _ = boots;
    const first = await provisioner.ensure();
    boots.kernels[0]?.process.exit(died);
    await first.gone;
    expect(provisioner.kernel).toBeUndefined();
    await provisioner.ensure();
    expect(lost.map(({ message }) => message)).toEqual([expect.stringContaining("SIGKILL")]);
    expect(ready[1]).toMatchObject({ restarted: true, restore: RESTORE });
    expect(restores).toEqual([RESTORE]);
    expect(provisioner.takeNotice()).toEqual({
      reason: expect.stringContaining("SIGKILL") as unknown as string,
      ...RESTORE,
    });
    expect(provisioner.takeNotice()).toBeUndefined();
  });

  test("by a kill has the reason that was given, and is not reported as a loss", async () => {
    const { boots, provisioner, lost } = provide();
    await using _ = boots;
    const first = await provisioner.ensure();
    await provisioner.kill("the user asked for it");
    expect(first.goneReason).toBeInstanceOf(KernelDisposedError);
    expect(await provisioner.ensure()).not.toBe(first);
    expect(lost).toEqual([]);
    expect(provisioner.takeNotice()?.reason).toBe("the user asked for it");
  });

  test("hands on the late output of the kernel that is gone", async () => {
    const { boots, provisioner } = provide();
    await using _ = boots;
    const run = (code: string) => provisioner.kernel?.execute(code, { onOutput: () => undefined });
    const first = await provisioner.ensure();
    await run("first");
    boots.kernels[0]?.cells[0]?.print("before the end\n");
    await run("second");
    boots.kernels[0]?.process.exit(died);
    await first.gone;
    await provisioner.ensure();
    await run("third");
    boots.kernels[1]?.cells[0]?.print("after");
    await run("fourth");
    expect(provisioner.takeLate()).toEqual({ text: "before the end\nafter", droppedChars: 0 });
    expect(provisioner.takeLate()).toBeUndefined();
  });

  test("of a kernel that somebody else started is told as a new connection", async () => {
    const { boots, provisioner } = provide([{ foreign: true }]);
    await using _ = boots;
    const first = await provisioner.ensure();
    boots.kernels[0]?.wire.cut("shell");
    await first.gone;
    await provisioner.ensure();
    expect(provisioner.takeNotice()).toMatchObject({ reconnected: true });
  });

  test("is none when a kill comes before any kernel", async () => {
    const { boots, provisioner, ready } = provide();
    await using _ = boots;
    await provisioner.kill("nothing to kill");
    await provisioner.ensure();
    expect(ready[0]?.restarted).toBe(false);
    expect(provisioner.takeNotice()).toBeUndefined();
  });
});

describe("dispose", () => {
  test("settles a start in flight, and no kernel starts afterwards", async () => {
    const { boots, provisioner } = provide([{ gate: new Promise(() => undefined) }]);
    await using _ = boots;
    const starting = caught(provisioner.ensure());
    await boots.untilBegun(1);
    await provisioner.dispose();
    expect(await starting).toBeInstanceOf(AbortedError);
    expect(await caught(provisioner.ensure())).toBeInstanceOf(KernelDisposedError);
    expect(boots.begun).toBe(1);
  });

  test("before the ready gate opens means that nothing is ever started", async () => {
    const { boots, provisioner } = provide([], { readyGate: new Promise(() => undefined) });
    await using _ = boots;
    const starting = caught(provisioner.ensure());
    await provisioner.dispose();
    expect(await starting).toBeInstanceOf(AbortedError);
    expect(boots.begun).toBe(0);
  });

  test("ends the kernel, reports no loss, and may be called again", async () => {
    const { boots, provisioner, lost } = provide([
      {
        onRequest: (request) => {
          if (request.header.msg_type === "shutdown_request")
            boots.kernels[0]?.process.exit({ code: 0, signal: null });
        },
      },
    ]);
    await using _ = boots;
    const kernel = await provisioner.ensure();
    await Promise.all([provisioner.dispose(), provisioner.dispose()]);
    expect(kernel.goneReason).toBeInstanceOf(KernelDisposedError);
    expect(lost).toEqual([]);
    expect(boots.kernels[0]?.requests("shutdown_request")).toHaveLength(1);
  });

  test("is hastened by a kill", async () => {
    const { boots, provisioner } = provide([{ onRequest: ({ channel }) => channel === "control" }]);
    await using _ = boots;
    await provisioner.ensure();
    const disposing = provisioner.dispose();
    await boots.kernels[0]?.wire.request("shutdown_request", "control");
    await provisioner.kill("the run was ended");
    await disposing;
    expect(boots.kernels[0]?.process.signals).toEqual(["SIGKILL group"]);
  });
});

describe("a kill that overtakes a start", () => {
  test("settles it; a call behind it gets a start of its own", async () => {
    const { boots, provisioner } = provide([{ gate: new Promise(() => undefined) }, {}]);
    await using _ = boots;
    const starting = caught(provisioner.ensure());
    await boots.untilBegun(1);
    const killing = provisioner.kill("again");
    const next = provisioner.ensure();
    await killing;
    expect(await starting).toBeInstanceOf(AbortedError);
    expect((await next).goneReason).toBeUndefined();
    expect(boots.begun).toBe(2);
  });

  test("at the last moment ends that kernel, and leaves the newer one alone", async () => {
    const gate = defer<void>();
    const { boots, provisioner } = provide([{ gate: gate.promise, ignoresAbort: true }, {}]);
    await using _ = boots;
    const starting = caught(provisioner.ensure());
    await boots.untilBegun(1);
    const killing = provisioner.kill("again");
    const newer = await provisioner.ensure();
    gate.resolve();
    await killing;
    expect(await starting).toBeInstanceOf(KernelDisposedError);
    expect(boots.kernels[1]?.kernel.goneReason).toBeInstanceOf(KernelDisposedError);
    expect(provisioner.kernel).toBe(newer);
    expect(newer.goneReason).toBeUndefined();
  });
});

test("without a kernel there are no names, and nothing is pruned", async () => {
  const { boots, provisioner } = provide();
  await using _ = boots;
  expect(await provisioner.listNamespaceNames()).toBeUndefined();
  expect(await provisioner.prune()).toBeUndefined();
  provisioner.onCellEnded(true);
  expect(boots.begun).toBe(0);
});
