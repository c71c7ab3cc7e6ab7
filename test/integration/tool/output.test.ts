/** What cells print, show and raise, through real kernels: bounded, clean, whole. */

import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statSync } from "node:fs";
import { describeWithPython } from "../../support/python.ts";
import { textOf, ToolKernel } from "../../support/tool-kernel.ts";

/** A cell, and what the model must read: the whole text, or something in it. */
interface Case {
  name: string;
  code: string;
  text: string | RegExp;
  isError?: boolean;
}

const BIG: Case[] = [
  {
    name: "one print of 5 MB",
    code: "print('y' * 5_000_000)",
    text: /^y+\n\[\.\.\. output truncated at 65536 chars \.\.\.\]/,
  },
  { name: "a repr of 3 MB", code: "'z' * 3_000_000", text: /truncated.*z+'$/s },
  { name: "200,000 lines", code: "for i in range(200_000): print(i)", text: /\n199999\n$/ },
  {
    name: "an exception text of 200 kB",
    code: "raise ValueError('q' * 200_000)",
    text: /^-+\nValueError.*q+$/s,
    isError: true,
  },
  {
    name: "10,000 displays",
    code: "for i in range(10_000): display(i)",
    text: /^0\n1\n.*\n9999\n$/s,
  },
  {
    name: "a shell's flood, whose error is seen",
    code: "%%bash\nseq 1 200000; echo FINAL-ERROR >&2; exit 3",
    text: /FINAL-ERROR[^]*exit code 3/,
    isError: true,
  },
  {
    name: "a list nested 100,000 deep",
    code: "l = []\nfor _ in range(100_000): l = [l]\nl",
    text: /RecursionError/,
    isError: true,
  },
  {
    name: "endless recursion",
    code: "def f(): return f()\nf()",
    text: /RecursionError/,
    isError: true,
  },
];

const CLEAN: Case[] = [
  {
    name: "a megabyte of a child process, once",
    code: "import subprocess\nsubprocess.run('seq 1 200000', shell=True).returncode",
    text: /^1\n2\n[^]*\n200000\n0$/,
  },
  {
    name: "colours of a shell",
    code: "%%bash\nprintf '\\033[31mred\\033[0m\\n'",
    text: "red\nexit 0\n",
  },
  { name: "a traceback", code: "1/0", text: /ZeroDivisionError: division by zero$/, isError: true },
  { name: "help by a question mark", code: "len?", text: /Signature:\s+len\(obj/ },
  {
    name: "2,000 states of a progress bar",
    code: "import sys\nfor i in range(2000): sys.stderr.write(f'\\r{i}%|####'); sys.stderr.flush()",
    text: "1999%|####",
  },
  {
    name: "a shell's progress",
    code: "%%bash\nfor i in 1 2 3; do printf '\\rstep %d' $i; done",
    text: "step 3\nexit 0\n",
  },
  { name: "Windows line ends", code: "print('a\\r\\nb\\r\\n', end='')", text: "a\nb\n" },
  {
    name: "a shell cell with Windows line ends",
    code: "%%bash\r\nif true; then\r\necho hi\r\nfi\r\n",
    text: "hi\nexit 0\n",
  },
  { name: "a lone surrogate", code: "print('\\ud800x')", text: "\\ud800x\n" },
  {
    name: "an undecodable file name",
    code: "import os\nprint(os.fsdecode(b'caf\\xe9.txt'))",
    text: "caf\ufffd.txt\n",
  },
  {
    name: "bytes of a shell that are no UTF-8",
    code: "%%bash\necho first\nprintf 'caf\\xe9\\n'\necho last",
    text: "first\ncaf\ufffd\nlast\nexit 0\n",
  },
  {
    name: "NaN in JSON",
    code: "from IPython.display import display\ndisplay({'application/json': {'x': float('nan')}}, raw=True)",
    text: '{\n  "x": "nan"\n}\n',
  },
  {
    name: "a clear_output that waits",
    code: "from IPython.display import clear_output\nfor i in range(5): clear_output(wait=True); print(i)",
    text: "4\n",
  },
  {
    name: "an updated display",
    code: "h = display('0%', display_id=True)\nfor i in (50, 100): h.update(f'{i}%')",
    text: "'100%'",
  },
  {
    name: "Markdown",
    code: "from IPython.display import Markdown\nMarkdown('**b**')",
    text: "**b**",
  },
  { name: "nothing", code: "x = 1", text: "(no output)" },
];

const HABITS: Case[] = [
  { name: "input()", code: "input('name? ')", text: /input/i, isError: true },
  { name: "getpass()", code: "import getpass; getpass.getpass()", text: /input/i, isError: true },
  { name: "reading stdin", code: "import sys; sys.stdin.read()", text: "''" },
  {
    name: "a child that reads stdin",
    code: "import subprocess; subprocess.run(['cat']).returncode",
    text: "0",
  },
  {
    name: "asyncio.run()",
    code: "import asyncio\nasync def f(): return 1\nasyncio.run(f())",
    text: /^1$|top-level/,
  },
  {
    name: "running out of memory",
    code: "import resource\nold = resource.getrlimit(resource.RLIMIT_AS)\nresource.setrlimit(resource.RLIMIT_AS, (3 * 2**30, old[1]))\ntry:\n    bytearray(6 * 2**30)\nfinally:\n    resource.setrlimit(resource.RLIMIT_AS, old)",
    text: /MemoryError/,
    isError: true,
  },
  { name: "an unknown magic", code: "%nosuchmagic", text: /nosuchmagic/, isError: true },
  {
    name: "a forked child that goes on",
    code: "import os\npid = os.fork()\nif pid == 0: raise SystemExit\nos.waitpid(pid, 0)[1]",
    text: /(^|\n)0$/,
  },
  {
    name: "a pool of processes",
    code: "import multiprocessing as mp\ndef f(x): return x * x\nwith mp.get_context('fork').Pool(2) as pool: r = pool.map(f, range(3))\nr",
    text: "[0, 1, 4]",
  },
];

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python},`, () => {
    let kernel: ToolKernel;
    beforeAll(async () => {
      kernel = new ToolKernel({ python, env: { FORCE_COLOR: "1" } });
      await kernel.run("1");
    });
    afterAll(() => kernel[Symbol.asyncDispose]());

    const check = async ({ code, text, isError = false }: Case) => {
      const result = await kernel.run(code);
      if (typeof text === "string") expect(textOf(result)).toBe(text);
      else expect(textOf(result)).toMatch(text);
      expect(result.isError).toBe(isError);
      // Nothing that could move a cursor, no half characters, no more than the caps allow.
      expect(textOf(result)).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      expect(textOf(result).isWellFormed()).toBe(true);
      expect(textOf(result).length).toBeLessThan(140_000);
      expect(await kernel.text("1 + 1")).toBe("2");
    };

    test.each(BIG)("$name is cut in the middle", check);
    test.each(CLEAN)("$name is shown as plain text", check);
    test.each(HABITS)("$name does what a script would expect", check);

    test("output that is cut is whole in the file that the result names", async () => {
      const text = await kernel.text("for i in range(200_000): print(i)");
      const path = /full text: (.+)\]/.exec(text)?.[1] as string;
      const lines = Array.from({ length: 200_000 }, (_, index) => `${index}\n`).join("");
      expect(readFileSync(path, "utf8") === lines).toBe(true);
      expect(statSync(path).mode & 0o777).toBe(0o600);
    });

    test("what a child process prints belongs to its cell", async () => {
      await kernel.run("import os, subprocess");
      for (let index = 0; index < 20; index += 1) {
        const text = await kernel.text(`os.system('echo system ${index}'); print('after')`);
        expect(text).toContain(`system ${index}\n`);
      }
    });

    test("a cell after SIGINT was ignored can still be interrupted", async () => {
      await kernel.run("import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)");
      const aborted = await kernel.run("while True: time.sleep(0.01)", {
        signal: AbortSignal.timeout(200),
      });
      expect(aborted.details.status).toBe("aborted");
      expect(await kernel.text("1 + 1")).toBe("2");
    });

    test("helpers and the kernel survive a cell that takes their names", async () => {
      const spoil =
        "print = 5; open = None; list = 3; dict = 1; type = 2; asyncio = None; dill = None; rlm = 1";
      await kernel.run(spoil);
      expect(await kernel.text("%%bash\necho shell")).toBe("shell\nexit 0\n");
      await kernel.run("del print, open, list, dict, type, asyncio, dill, rlm");
      await kernel.run("%reset -f");
      expect(await kernel.text("type(rlm).__name__ != 'int'")).toEndWith("True");
    });
  });
}

describeWithPython("newest", "figures:", () => {
  let kernel: ToolKernel;
  beforeAll(async () => {
    kernel = new ToolKernel();
    await kernel.run("import matplotlib.pyplot as plt");
  });
  afterAll(() => kernel[Symbol.asyncDispose]());

  const images = async (code: string) => {
    const { content, isError } = await kernel.run(code);
    expect(isError).toBe(false);
    return content.map((block) => (block.type === "image" ? block.mimeType : block.text));
  };

  test("one that was saved and not shown comes once, with a line of text", async () => {
    expect(await images("plt.plot([1]); plt.savefig('x.png')")).toEqual([
      expect.stringContaining("<Figure size 640x480 with 1 Axes>"),
      "image/png",
    ]);
  });

  test("three in a loop come as three", async () => {
    const found = await images("for i in range(3):\n    plt.figure(); plt.plot([i]); plt.show()");
    expect(found.slice(1)).toEqual(["image/png", "image/png", "image/png"]);
  });

  test("a huge one is scaled down, or left out with the reason", async () => {
    const [text, image] = await images("plt.figure(figsize=(60, 40)); plt.plot([1]); plt.show()");
    expect(text).toMatch(/scaled down from \d+×\d+ to at most 1568 pixels an edge/);
    expect(image).toBe("image/png");
  });

  test("a corrupt one is left out, and the cell is fine", async () => {
    const [text] = await images(
      "from IPython.display import display, Image\ndisplay(Image(data=b'x', format='png'))",
    );
    expect(text).toContain("left out: its data is not a readable image/png image");
  });
});
