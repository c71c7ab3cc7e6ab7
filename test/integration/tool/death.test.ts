/** A kernel that dies: noticed at once, told truly, replaced on the next call. */

import { expect, test } from "bun:test";
import { describeWithPython } from "../../support/python.ts";
import { textOf, ToolKernel, Watched } from "../../support/tool-kernel.ts";

/** Ways to die, and what the result must say. */
const DEATHS: Array<{ name: string; code: string; says: RegExp }> = [
  { name: "os._exit(3)", code: "import os; os._exit(3)", says: /exited with code 3/ },
  { name: "SIGKILL", code: "import os; os.kill(os.getpid(), 9)", says: /SIGKILL.*out of memory/ },
  { name: "a segmentation fault", code: "import ctypes; ctypes.string_at(0)", says: /SIGSEGV/ },
  {
    name: "a segmentation fault deep in calls, beside other threads",
    code: `import ctypes, threading
for _ in range(20): threading.Thread(target=threading.Event().wait, daemon=True).start()
def culprit(depth): return culprit(depth - 1) if depth else ctypes.string_at(0)
culprit(200)`,
    says: /SIGSEGV[\s\S]*Fatal Python error: Segmentation fault[\s\S]*in string_at\n[^\n]*in culprit\n/,
  },
  { name: "os.abort()", code: "import os; os.abort()", says: /SIGABRT/ },
  {
    name: "closing all of its descriptors",
    code: "import os; os.closerange(3, 200)\nimport time; time.sleep(60)",
    says: /The kernel (ended|connection was lost)/,
  },
  {
    name: "an alarm with its default action",
    code: "import signal, time\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nsignal.alarm(1)\ntime.sleep(60)",
    says: /SIGALRM/,
  },
];

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test.each(DEATHS)(
      "$name ends the call with its reason; the next call has a fresh kernel and says so",
      async ({ code, says }) => {
        await using kernel = new ToolKernel({ python });
        await kernel.run("lost = 1");
        const result = await kernel.run(code);
        expect(result.isError).toBe(true);
        expect(textOf(result)).toMatch(says);
        const next = await kernel.run("1 + 1");
        expect(textOf(next)).toStartWith("<ipython_kernel_reset>");
        expect(textOf(next)).toMatch(says);
        expect(textOf(next)).toEndWith("2");
        expect(next.details.kernelRestarted).toBe(true);
        expect(textOf(await kernel.run("2 + 2"))).toBe("4");
        expect(kernel.lost).toHaveLength(1);
      },
    );

    test("output that was flushed before the death is kept", async () => {
      await using kernel = new ToolKernel({ python });
      const watched = new Watched();
      const dying = kernel.run(
        "import os, sys, time\nprint('printed', flush=True)\nwhile True: time.sleep(0.01)",
        watched,
      );
      await watched.saw("printed");
      process.kill(kernel.provisioner.kernel?.pid as number, "SIGKILL");
      const text = textOf(await dying);
      expect(text).toStartWith("printed");
      expect(text).toContain("SIGKILL");
    });

    test("a recursion without Python's limit ends by a crash or by the cell's limit, and the next cell runs", async () => {
      const chooseWhenBusy = async () => "restart" as const;
      await using kernel = new ToolKernel({ python, cellTimeoutMs: 1_500, chooseWhenBusy });
      const result = await kernel.run(
        "import sys; sys.setrecursionlimit(10**7)\ndef f(n): return f(n + 1)\nf(0)",
      );
      expect(result.isError).toBe(true);
      expect(textOf(result)).toMatch(/SIGSEGV|timed out after 1.5 s/);
      expect(await kernel.text("1 + 1")).toEndWith("2");
    });

    test("a death between cells is reported at the next call, which runs", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("import os, threading\nthreading.Timer(0.2, lambda: os._exit(7)).start()");
      await kernel.provisioner.kernel?.gone;
      const result = await kernel.run("1 + 1");
      expect(textOf(result)).toContain("exited with code 7");
      expect(textOf(result)).toEndWith("2");
      expect(result.isError).toBe(false);
    });

    test("a cell that stops the event loop does not end the session", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("import asyncio; asyncio.get_event_loop().stop()");
      await kernel.run("1 + 1");
      expect(await kernel.text("2 + 2")).toEndWith("4");
    });

    test.each([
      { code: "exit()", status: "ok" },
      { code: "quit()", status: "ok" },
      { code: "import sys; sys.exit(3)", status: "error" },
      { code: "raise SystemExit", status: "ok" },
    ])("$code does not end the kernel", async ({ code, status }) => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("kept = 1");
      const result = await kernel.run(code);
      expect(result.details.status).toBe(status as never);
      expect(textOf(result)).not.toContain("To exit: use");
      expect(await kernel.text("kept")).toBe("1");
      expect(kernel.lost).toEqual([]);
    });

    test("a broken reply, a NUL byte and a failing repr end their calls and say so", async () => {
      await using kernel = new ToolKernel({ python });
      const nul = await kernel.run("print('a\0b')");
      expect(nul.isError).toBe(true);
      const magic = await kernel.run("%nosuchmagic");
      expect(magic.isError).toBe(true);
      const repr = await kernel.run(
        "class Bad:\n    def __repr__(self): raise ValueError('no repr')\nBad()",
      );
      expect(repr.isError).toBe(true);
      expect(textOf(repr)).toContain("no repr");
      const html = await kernel.run(
        "class Half:\n    def _repr_html_(self): raise ValueError('no html')\n    def __repr__(self): return 'plain'\nHalf()",
      );
      expect(textOf(html)).toContain("plain");
      expect(html.details.status).toBe("ok");
      expect(await kernel.text("1 + 1")).toBe("2");
    });

    test("cells that break their own output streams do not break the kernel", async () => {
      await using kernel = new ToolKernel({ python });
      await kernel.run("import sys; sys.stdout.close()");
      expect(await kernel.text("print('one')")).toContain("one");
      await kernel.run("import io, sys; sys.stdout = io.StringIO()");
      expect(await kernel.text("print('two')")).toContain("two");
      await kernel.run("import os; os.close(1)");
      expect(await kernel.text("print('three')")).toContain("three");
    });
  });
}
