/** Requests to the host from real cells: awaited, detached, interrupted, and cut off by the kernel's end. */

import { expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { HostRequestError, type HostHandlers } from "../../../src/kernel/host-bridge.ts";
import { describeWithPython } from "../../support/python.ts";
import { abortWhen, textOf, ToolKernel } from "../../support/tool-kernel.ts";

/** Handlers, and what the tests learn of them. */
function createHandlers() {
  const slow = { started: defer<AbortSignal>(), finish: defer<void>() };
  const seen: unknown[] = [];
  const handlers: HostHandlers = {
    "goal.get": (payload) => {
      seen.push(payload);
      return { echoed: payload };
    },
    "goal.create": () => {
      throw new HostRequestError("goal.create needs an objective");
    },
    "compact.run": async (_payload, { signal }) => {
      slow.started.resolve(signal);
      await slow.finish.promise;
      return { done: true };
    },
  };
  return { handlers, slow, seen };
}

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test("an awaited request gets its answer, and what the host throws is a Python exception", async () => {
      const { handlers, seen } = createHandlers();
      await using kernel = new ToolKernel({ python, handlers });
      expect(await kernel.text("await rlm.host_request('goal.get', {'n': 1})")).toBe(
        "{'echoed': {'n': 1}}",
      );
      const refused = await kernel.run("await rlm.host_request('goal.create')");
      expect(refused.isError).toBe(true);
      expect(textOf(refused)).toEndWith("goal.create needs an objective");
      const unknown = await kernel.run("await rlm.host_request('no.such')");
      expect(textOf(unknown)).toContain('"no.such"');
      // The payload can't reach another handler.
      const forged = await kernel.run(
        "await rlm.host_request('goal.get', {'type': 'goal.create'})",
      );
      expect(forged.isError).toBe(true);
      expect(seen).toEqual([{ n: 1 }]);
    });

    test("requests of one cell run side by side, each with its own answer", async () => {
      const { handlers } = createHandlers();
      await using kernel = new ToolKernel({ python, handlers });
      const code = `import asyncio
answers = await asyncio.gather(*[rlm.host_request('goal.get', {'n': n}) for n in range(50)])
[answer['echoed']['n'] for answer in answers] == list(range(50))`;
      expect(await kernel.text(code)).toBe("True");
    });

    test("a task that outlives its cell asks and is answered; a later cell awaits it", async () => {
      const { handlers, slow } = createHandlers();
      await using kernel = new ToolKernel({ python, handlers });
      await kernel.run(
        "import asyncio\ntask = asyncio.create_task(rlm.host_request('compact.run'))",
      );
      await slow.started.promise;
      slow.finish.resolve();
      expect(await kernel.text("await task")).toBe("{'done': True}");
    });

    test("an interrupted cell cancels its request, and a late answer reaches nobody", async () => {
      const { handlers, slow } = createHandlers();
      await using kernel = new ToolKernel({ python, handlers });
      const result = await kernel.run("await rlm.host_request('compact.run')", {
        signal: abortWhen(slow.started.promise),
      });
      expect(result.details.status).toBe("aborted");
      const signal = await slow.started.promise;
      while (!signal.aborted) await Bun.sleep(5);
      slow.finish.resolve();
      expect(await kernel.text("await rlm.host_request('goal.get', {'n': 2})")).toBe(
        "{'echoed': {'n': 2}}",
      );
    });

    test("the kernel's death cancels its requests, and the next kernel is not answered for it", async () => {
      const { handlers, slow } = createHandlers();
      await using kernel = new ToolKernel({ python, handlers });
      const running = kernel.run("await rlm.host_request('compact.run')");
      const signal = await slow.started.promise;
      process.kill(kernel.provisioner.kernel?.pid as number, "SIGKILL");
      expect((await running).details.errorEname).toBe("KernelDied");
      expect(signal.aborted).toBe(true);
      slow.finish.resolve();
      expect(await kernel.text("await rlm.host_request('goal.get', {'n': 3})")).toEndWith(
        "{'echoed': {'n': 3}}",
      );
    });
  });
}
