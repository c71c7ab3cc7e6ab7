/** Aborts, interrupts and a busy kernel: who waits for whom, and what is never sent. */

import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import { AbortedError } from "../../../src/errors.ts";
import { KernelBusyAfterInterruptError, KernelDiedError } from "../../../src/kernel/errors.ts";
import { ScriptedKernel, succeed, type ScriptedCell } from "../../support/scripted-kernel.ts";

const isInterrupt = (request: { header: { msg_type: string } }) =>
  request.header.msg_type === "interrupt_request";
const isCall = (request: { header: { msg_type: string } }) =>
  request.header.msg_type === contract.call.request;

/** Until the client knows that no cell runs any more, and all that it sends on that has arrived. */
async function untilFree({ kernel }: ScriptedKernel): Promise<void> {
  const roundTrip = () => kernel.call("ping", {}, { timeoutMs: 5_000 });
  while (kernel.busy) await roundTrip();
  await roundTrip();
}

/** Acts out every cell but those called "stuck", which only begin. */
function stick(cell: ScriptedCell): void {
  if (cell.code === "stuck") cell.busy().input().print("begun");
  else succeed(cell);
}

describe("an aborted cell", () => {
  test("is interrupted on control, and settles as aborted when it ends by that", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: (request) => {
        if (isInterrupt(request)) scripted.cells[0]?.reply({ status: "error" }).idle();
      },
    });
    const abort = new AbortController();
    const running = scripted.run("stuck", { signal: abort.signal });
    await scripted.wire.request("execute_request");
    abort.abort();
    expect((await running).outcome).toMatchObject({ status: "aborted", abortCause: "user" });
    expect(scripted.requests("interrupt_request").map(({ channel }) => channel)).toEqual([
      "control",
    ]);
    expect(scripted.process.signals).toEqual([]);
  });

  test("settles after the grace when the kernel never reports idle, and keeps it busy until then", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    const { outcome, output } = await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    expect(outcome).toEqual({
      status: "aborted",
      abortCause: "user",
      pages: [],
      note: "The cell has not ended yet; the next call waits for it.",
    });
    expect(output).toEqual([{ kind: "stream", name: "stdout", text: "begun" }]);
    expect(scripted.kernel.busy).toBe(true);
    const next = scripted.run("next");
    await scripted.wire.until(() => scripted.requests("interrupt_request").length > 1);
    expect(scripted.cells).toHaveLength(1);
    scripted.cells[0]?.print("after").reply().idle();
    expect((await next).outcome.status).toBe("ok");
    expect(output).toHaveLength(1);
    expect(scripted.kernel.takeLate()?.text).toBe("after");
  });

  test("says aborted although the reply says ok", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: (request) => {
        if (isInterrupt(request)) scripted.cells[0]?.reply().idle();
      },
    });
    const { outcome } = await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    expect(outcome.status).toBe("aborted");
  });

  test("keeps its first cause, whether that is the time limit or the user", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    const abort = new AbortController();
    const first = scripted.run("stuck", { signal: abort.signal, timeoutMs: 1 });
    await scripted.wire.until(() => scripted.requests("interrupt_request").length > 0);
    abort.abort();
    expect((await first).outcome.abortCause).toBe("timeout");
    scripted.cells[0]?.reply().idle();
    const signal = AbortSignal.abort(new AbortedError("shutdown"));
    const before = scripted.run("stuck", { signal });
    expect(await before.catch((error) => error)).toMatchObject({ abortCause: "shutdown" });
    expect(scripted.cells).toHaveLength(1);
  });

  test("has the processes that it started ended, by its id, before the next cell is sent", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: (request) => {
        if (isInterrupt(request)) scripted.cells[0]?.reply().idle();
        return isCall(request) && request.channel === "control";
      },
    });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    const next = scripted.run("next");
    await untilFree(scripted);
    const call = await scripted.wire.request(contract.call.request, "control");
    expect(call.content).toEqual({
      op: "end_children",
      args: { cell: scripted.cells[0]?.request.header.msg_id },
    });
    expect(scripted.cells).toHaveLength(1);
    scripted.wire.reply(call, contract.call.reply, { status: "ok", result: {} });
    await next;
    expect(scripted.cells).toHaveLength(2);
  });

  test("does not let its interrupt hit the next cell: that waits for the acknowledgement", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: isInterrupt,
      times: { acknowledgeWait: 60_000 },
    });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    scripted.cells[0]?.reply().idle();
    const next = scripted.run("next");
    await untilFree(scripted);
    expect(scripted.cells).toHaveLength(1);
    for (const request of scripted.requests("interrupt_request"))
      scripted.wire.reply(request, "interrupt_reply", { status: "ok" });
    expect((await next).outcome.status).toBe("ok");
  });

  test("costs the next cell only a bounded wait when the kernel never acknowledges", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick, onRequest: isInterrupt });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    scripted.cells[0]?.reply().idle();
    expect((await scripted.run("next")).outcome.status).toBe("ok");
  });

  test("is woken by a request on shell after the interrupt", async () => {
    let interrupted = false;
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: (request) => {
        interrupted ||= isInterrupt(request);
        if (interrupted && request.header.msg_type === "kernel_info_request")
          scripted.cells[0]?.reply({ status: "error" }).idle();
      },
    });
    const { outcome } = await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    expect(outcome.status).toBe("aborted");
    expect(scripted.kernel.busy).toBe(false);
  });

  test("stays aborted when the kernel dies of the interrupt, and its end is told", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: (request) => {
        if (isInterrupt(request)) scripted.process.exit({ code: 0, signal: null });
      },
      times: { abortGrace: 10_000 },
    });
    const { outcome } = await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    expect(outcome).toMatchObject({ status: "aborted", abortCause: "user" });
    expect(outcome.note).toContain("exited with code 0");
  });

  test("is never sent when it was aborted before, and the call behind it runs", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    const abort = new AbortController();
    const first = scripted.run("stuck");
    const second = scripted.run("second", { signal: abort.signal });
    const third = scripted.run("third");
    await scripted.wire.request("execute_request");
    abort.abort();
    expect(await second.catch((error) => error)).toBeInstanceOf(AbortedError);
    scripted.cells[0]?.reply().idle();
    await Promise.all([first, third]);
    expect(scripted.cells.map(({ code }) => code)).toEqual(["stuck", "third"]);
  });
});

describe("a kernel whose cell does not end", () => {
  test("is busy for the next cell, which is never sent, after repeated interrupts", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    const error = await scripted.run("next").catch((reason) => reason);
    expect(error).toBeInstanceOf(KernelBusyAfterInterruptError);
    expect(scripted.cells).toHaveLength(1);
    // One with the abort, then one for each interval of the wait.
    const interrupts = scripted.requests("interrupt_request").length;
    expect(interrupts).toBeGreaterThan(2);
    expect(interrupts).toBeLessThanOrEqual(9);
  });

  test("runs the next cell after a second wait in which it ended", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    await scripted.run("next").catch(() => undefined);
    const again = scripted.run("again");
    scripted.cells[0]?.reply().idle();
    expect((await again).outcome.status).toBe("ok");
  });

  test("is signalled by its process when its control channel is stuck as well", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: stick,
      onRequest: isInterrupt,
      times: { reuseWait: 1_200, interruptInterval: 500 },
    });
    await scripted.run("stuck", { signal: AbortSignal.timeout(0) });
    await scripted.run("next").catch(() => undefined);
    expect(scripted.process.signals).toContain("SIGINT process");
  });

  test("fails all that waits when it dies, with the reason", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: stick });
    const calls = [scripted.run("stuck"), scripted.run("behind")];
    await scripted.wire.request("execute_request");
    scripted.process.stderr = "Segmentation fault";
    scripted.process.exit({ code: null, signal: "SIGSEGV" });
    for (const call of calls) {
      const error = await call.catch((reason) => reason);
      expect(error).toBeInstanceOf(KernelDiedError);
      expect(error.message).toContain("a crash in native code");
      expect(error.message).toContain("Segmentation fault");
    }
    const late = await scripted.run("late").catch((reason) => reason);
    expect(late).toBeInstanceOf(KernelDiedError);
  });
});

describe("a cell that can't be sent", () => {
  test("fails, and the kernel is free for the next one", async () => {
    await using scripted = await ScriptedKernel.start();
    const error = await scripted.run("x".repeat(300_000_000)).catch((reason) => reason);
    expect(error).toMatchObject({ name: "SendQueueFullError" });
    expect(scripted.kernel.busy).toBe(false);
    expect((await scripted.run("1")).outcome.status).toBe("ok");
  });
});
