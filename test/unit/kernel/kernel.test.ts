/** A kernel's life beside its cells: calls, loss of the connection, shutdown, kill. */

import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import {
  KernelCallError,
  KernelConnectionLostError,
  KernelDiedError,
  KernelDisposedError,
} from "../../../src/kernel/errors.ts";
import { ScriptedKernel, type KernelScript } from "../../support/scripted-kernel.ts";

const caught = (promise: Promise<unknown>): Promise<Error> =>
  promise.then(String, (error) => error).then((value) => value as Error);

/** Answers internal calls with this content. */
const answering = (content: object): KernelScript => ({
  onRequest: (request, wire) => {
    if (request.header.msg_type !== contract.call.request) return false;
    wire.reply(request, contract.call.reply, content);
    return true;
  },
});

describe("a call to the kernel's own Python side", () => {
  test("gives the result", async () => {
    await using scripted = await ScriptedKernel.start(answering({ status: "ok", result: [1] }));
    expect(await scripted.kernel.call("op", { a: 1 }, { timeoutMs: 5_000 })).toEqual([1]);
    expect(scripted.requests(contract.call.request)[0]?.content).toEqual({
      op: "op",
      args: { a: 1 },
    });
  });

  test("throws what Python raised", async () => {
    const failure = { status: "error", ename: "ValueError", evalue: "no" };
    await using scripted = await ScriptedKernel.start(answering(failure));
    const error = await caught(scripted.kernel.call("op", {}, { timeoutMs: 5_000 }));
    expect(error).toBeInstanceOf(KernelCallError);
    expect(error).toMatchObject({ ename: "ValueError", evalue: "no" });
  });

  test("throws when there is no answer in time", async () => {
    await using scripted = await ScriptedKernel.start({
      onRequest: ({ channel }) => channel === "control",
    });
    const options = { channel: "control", timeoutMs: 20 } as const;
    expect(await caught(scripted.kernel.call("op", {}, options))).toMatchObject({
      ename: "TimeoutError",
    });
  });

  test("throws the reason at once when the kernel is gone", async () => {
    await using scripted = await ScriptedKernel.start();
    scripted.process.exit({ code: 3, signal: null });
    await scripted.kernel.gone;
    const error = await caught(scripted.kernel.call("op", {}, { timeoutMs: 5_000 }));
    expect(error).toBeInstanceOf(KernelDiedError);
  });
});

describe("a kernel whose connection breaks", () => {
  test.each(["shell", "control", "iopub"] as const)(
    "on %s has died when its process exits, and the reason is that exit",
    async (channel) => {
      await using scripted = await ScriptedKernel.start({ onCell: () => undefined });
      const running = caught(scripted.run("code"));
      await scripted.wire.request("execute_request");
      scripted.wire.cut(channel);
      scripted.process.exit({ code: null, signal: "SIGKILL" });
      const error = await running;
      expect(error).toBeInstanceOf(KernelDiedError);
      expect(error.message).toContain("probably out of memory");
      expect(await scripted.kernel.gone).toBe(error);
    },
  );

  test("while its process lives is lost, and killed since nothing can be trusted any more", async () => {
    await using scripted = await ScriptedKernel.start({ onCell: () => undefined });
    const running = caught(scripted.run("code"));
    await scripted.wire.request("execute_request");
    scripted.wire.cut("shell");
    const error = await running;
    expect(error).toBeInstanceOf(KernelConnectionLostError);
    expect(error.message).toContain("shell");
    expect(scripted.process.signals).toEqual(["SIGKILL group"]);
  });

  test("and that somebody else started is lost at once", async () => {
    await using scripted = await ScriptedKernel.start({ foreign: true });
    scripted.wire.cut("iopub");
    expect(await scripted.kernel.gone).toBeInstanceOf(KernelConnectionLostError);
  });
});

describe("shutdown", () => {
  test("asks on control, and fails what still runs", async () => {
    await using scripted = await ScriptedKernel.start({
      onCell: () => undefined,
      onRequest: (request) => {
        if (request.header.msg_type === "shutdown_request")
          scripted.process.exit({ code: 0, signal: null });
      },
    });
    const running = caught(scripted.run("code"));
    await scripted.wire.request("execute_request");
    await scripted.kernel.shutdown();
    expect(await running).toBeInstanceOf(KernelDisposedError);
    expect(await scripted.kernel.gone).toBeInstanceOf(KernelDisposedError);
    expect(scripted.requests("shutdown_request").map(({ content }) => content)).toEqual([
      { restart: false },
    ]);
    expect(scripted.process.signals).toEqual([]);
  });

  test("takes only the answer to its own request", async () => {
    await using scripted = await ScriptedKernel.start({
      onRequest: (request, wire) => {
        if (request.header.msg_type !== "shutdown_request") return false;
        wire.reply(request, "shutdown_reply", {}, { parent: { msg_id: "another" } });
        wire.reply(request, "shutdown_reply", {});
        scripted.process.exit({ code: 0, signal: null });
        return true;
      },
    });
    await Promise.all([scripted.kernel.shutdown(), scripted.kernel.shutdown()]);
    expect(scripted.requests("shutdown_request")).toHaveLength(1);
  });

  test("is hastened by a kill", async () => {
    await using scripted = await ScriptedKernel.start({
      onRequest: ({ channel }) => channel === "control",
    });
    const ended = scripted.kernel.shutdown();
    await scripted.wire.request("shutdown_request", "control");
    await scripted.kernel.kill();
    await ended;
    expect(scripted.process.signals).toEqual(["SIGKILL group"]);
  });

  test("only disconnects from a kernel that somebody else started, as a kill does", async () => {
    for (const end of ["shutdown", "kill"] as const) {
      await using scripted = await ScriptedKernel.start({ foreign: true });
      await scripted.kernel[end]();
      await scripted.wire.until(() => scripted.wire.clients("shell").length === 0);
      expect(scripted.requests("shutdown_request")).toEqual([]);
      expect(await scripted.kernel.gone).toBeInstanceOf(KernelDisposedError);
    }
  });
});
