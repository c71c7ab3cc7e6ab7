/** Requests of cells to the host: each gets its own answer, on control, or is cancelled. */

import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import { defer } from "../../../src/async.ts";
import { HostRequestError, type HostHandlers } from "../../../src/kernel/host-bridge.ts";
import { ScriptedKernel } from "../../support/scripted-kernel.ts";

/** A kernel that asks the host; `ask` sends a request and resolves with the data of the answer. */
async function askingKernel(handlers: HostHandlers) {
  const scripted = await ScriptedKernel.start({ handlers });
  const open = (id: string, data: unknown, target: string = contract.comm_target, cell?: string) =>
    scripted.wire.publish(
      "comm_open",
      { comm_id: id, target_name: target, data },
      cell === undefined ? {} : { parent: { msg_id: cell } },
    );
  const answers = (id: string) =>
    scripted.wire.requests
      .filter(({ channel, content }) => channel === "control" && content["comm_id"] === id)
      .map(({ content }) => content["data"]);
  const answer = async (id: string): Promise<unknown> => {
    await scripted.wire.until(() => answers(id).length > 0);
    return answers(id)[0];
  };
  return { scripted, open, answers, answer };
}

/** The client has read all that was published so far. */
async function settle(scripted: ScriptedKernel): Promise<void> {
  await scripted.run("pass");
}

describe("a request", () => {
  test("is answered on control with the handler's fields and status ok", async () => {
    const handlers = {
      double: ({ n }: Record<string, unknown>) => ({ n: 2 * Number(n), status: "x" }),
    };
    const { scripted, open, answer } = await askingKernel(handlers);
    await using _ = scripted;
    open("1", { type: "double", n: 21 });
    expect(await answer("1")).toEqual({ n: 42, status: "ok" });
  });

  const REFUSALS: Array<{ name: string; data: unknown; says: string }> = [
    {
      name: "of an unknown type",
      data: { type: "nope" },
      says: '"nope" (known: fails, throws, twisted)',
    },
    { name: "of an inherited name", data: { type: "toString" }, says: '"toString"' },
    { name: "without a type", data: {}, says: '"undefined"' },
    { name: "that is no object", data: 5, says: "not an object" },
    { name: "that the handler refuses", data: { type: "fails" }, says: "needs a prompt" },
    { name: "whose handler throws anything", data: { type: "throws" }, says: "boom" },
    { name: "whose answer is no JSON", data: { type: "twisted" }, says: "BigInt" },
  ];
  test.each(REFUSALS)("$name is refused with the reason", async ({ data, says }) => {
    const { scripted, open, answer } = await askingKernel({
      fails: () => Promise.reject(new HostRequestError("rlm.run needs a prompt")),
      throws: () => {
        throw "boom";
      },
      twisted: () => ({ n: 1n }),
    });
    await using _ = scripted;
    open("1", data);
    expect(await answer("1")).toEqual({ status: "error", error: expect.stringContaining(says) });
  });

  test("knows the cell that asked, and may come while none runs", async () => {
    const seen: Array<string | undefined> = [];
    const { scripted, open, answer } = await askingKernel({
      who: (_payload, { cellId }) => {
        seen.push(cellId);
        return {};
      },
    });
    await using _ = scripted;
    open("1", { type: "who" }, contract.comm_target, "cell-1");
    open("2", { type: "who" });
    await answer("2");
    expect(seen).toEqual(["cell-1", undefined]);
  });

  test("runs beside others, and each gets its own answer", async () => {
    const gates = new Map([1, 2, 3].map((n) => [n, defer<void>()]));
    const { scripted, open, answer, answers } = await askingKernel({
      wait: async ({ n }) => {
        await gates.get(n as number)?.promise;
        return { n };
      },
    });
    await using _ = scripted;
    for (const n of gates.keys()) open(`${n}`, { type: "wait", n });
    gates.get(3)?.resolve();
    expect(await answer("3")).toEqual({ n: 3, status: "ok" });
    expect([answers("1"), answers("2")]).toEqual([[], []]);
    gates.get(1)?.resolve();
    gates.get(2)?.resolve();
    expect(await answer("1")).toEqual({ n: 1, status: "ok" });
    expect(await answer("2")).toEqual({ n: 2, status: "ok" });
  });

  test("of another comm target, or with an id that is taken, is ignored", async () => {
    let calls = 0;
    const { scripted, open, answers } = await askingKernel({
      count: () => {
        calls += 1;
        return new Promise<object>(() => undefined);
      },
    });
    await using _ = scripted;
    open("1", { type: "count" }, "jupyter.widget");
    open("2", { type: "count" });
    open("2", { type: "count" });
    await settle(scripted);
    expect(calls).toBe(1);
    expect(answers("1")).toEqual([]);
  });
});

test("what the cells of somebody else's kernel ask is left to its own host", async () => {
  await using scripted = await ScriptedKernel.start({ foreign: true });
  const data = { type: "goal.get" };
  scripted.wire.publish("comm_open", { comm_id: "1", target_name: contract.comm_target, data });
  await settle(scripted);
  expect(scripted.requests("comm_msg")).toEqual([]);
});

describe("a request in flight", () => {
  /** A handler that never answers before it is cancelled, and then does. */
  function slowHandler() {
    const started = defer<AbortSignal>();
    const finish = defer<void>();
    const handlers: HostHandlers = {
      slow: async (_payload, { signal }) => {
        started.resolve(signal);
        await finish.promise;
        return {};
      },
    };
    return { handlers, started: started.promise, finish };
  }

  test("is cancelled when the kernel closes its comm, and a late answer goes nowhere", async () => {
    const { handlers, started, finish } = slowHandler();
    const { scripted, open, answers } = await askingKernel(handlers);
    await using _ = scripted;
    open("1", { type: "slow" });
    const signal = await started;
    scripted.wire.publish("comm_close", { comm_id: "1" });
    await settle(scripted);
    expect(signal.aborted).toBe(true);
    finish.resolve();
    await settle(scripted);
    expect(answers("1")).toEqual([]);
  });

  test.each(["death", "kill"])("is cancelled by the kernel's %s", async (how) => {
    const { handlers, started, finish } = slowHandler();
    const { scripted, open } = await askingKernel(handlers);
    await using _ = scripted;
    open("1", { type: "slow" });
    const signal = await started;
    if (how === "kill") void scripted.kernel.kill();
    else scripted.process.exit({ code: 1, signal: null });
    await scripted.kernel.gone;
    expect(signal.aborted).toBe(true);
    finish.resolve();
  });
});
