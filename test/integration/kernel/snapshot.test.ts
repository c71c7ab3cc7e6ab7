/** The namespace across kernels: saved after cells, revived in the next one, told to the model. */

import { expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import type { RestoreReport } from "../../../src/kernel/snapshot.ts";
import { describeWithPython } from "../../support/python.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { textOf, ToolKernel } from "../../support/tool-kernel.ts";

const STATE = "kernel-state.dill";
const MANIFEST = "kernel-state.json";

/** Runs cells in a kernel of its own, then ends it in order, so that all is saved. */
async function session(
  artifacts: string,
  cells: readonly string[],
  python: "newest" | "oldest" = "newest",
): Promise<{ texts: string[]; restores: RestoreReport[] }> {
  const restores: RestoreReport[] = [];
  await using kernel = new ToolKernel({
    python,
    snapshotDir: artifacts,
    onRestore: (report) => restores.push(report),
  });
  const texts: string[] = [];
  for (const cell of cells) texts.push(await kernel.text(cell));
  return { texts, restores };
}

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test("values, functions and shadowed builtins come back; what can't is named", async () => {
      using dir = new TempDir();
      const define = [
        "n = 0\ndef bump():\n    global n\n    n += 1\n    return n",
        "list = [1, 2]\nid = 'mine'\ngen = (i for i in range(3))\nimport threading\nlock = threading.Lock()\nfile = open('open.txt', 'w')",
      ];
      await session(dir.join("a"), define, python);
      expect(statSync(dir.join("a", STATE)).mode & 0o077).toBe(0);
      const manifest = JSON.parse(readFileSync(dir.join("a", MANIFEST), "utf8"));
      expect(manifest.saved.sort()).toEqual(expect.arrayContaining(["bump", "id", "list", "n"]));
      const { texts, restores } = await session(
        dir.join("a"),
        [
          "n = 100; print(bump(), n)",
          "print(list, id)",
          "sorted(k for k in ('gen', 'lock', 'file') if k in globals())",
        ],
        python,
      );
      expect(texts).toEqual(["101 101\n", "[1, 2] mine\n", "[]"]);
      expect(restores).toHaveLength(1);
      expect(restores[0]?.restored).toEqual(expect.arrayContaining(["bump", "id", "list", "n"]));
    });

    test("after a death the next result says what is back and what is gone", async () => {
      await using kernel = new ToolKernel({ python, snapshots: true });
      await kernel.run("kept = 42\nimport socket\nconnection = socket.socket()");
      while (!existsSync(kernel.dir.join("artifacts", STATE))) await Bun.sleep(10);
      await kernel.run("import os; os._exit(1)");
      const result = await kernel.run("kept");
      expect(textOf(result)).toMatch(
        /Restored from the last snapshot: kept, socket\.\nGone: connection \(.+\)\./,
      );
      expect(textOf(result)).toEndWith("\n42");
      const names = await kernel.provisioner.listNamespaceNames();
      expect(names?.map(({ name }) => name)).toEqual(["kept", "socket"]);
    });

    test("a corrupt file costs its names, is left alone, and the kernel works", async () => {
      using dir = new TempDir();
      await session(dir.path, ["a = 1", "b = 2"], python);
      const whole = readFileSync(dir.join(STATE));
      for (const broken of [Buffer.from("rubbish"), whole.subarray(0, whole.length - 40)]) {
        writeFileSync(dir.join(STATE), broken);
        const { texts, restores } = await session(dir.path, ["1 + 1"], python);
        expect(texts).toEqual(["2"]);
        expect(restores[0]?.failed.length).toBeGreaterThan(0);
        const kept = [STATE, "kernel-state.unrestored.dill"].filter(
          (name) => existsSync(dir.join(name)) && readFileSync(dir.join(name)).equals(broken),
        );
        expect(kept).not.toEqual([]);
      }
    });

    test("pruning removes what is too big, keeps the rest, and listing leaves files alone", async () => {
      await using kernel = new ToolKernel({ python, snapshots: true });
      await kernel.run("big = 'x' * 20_000_000\nsmall = 1");
      await kernel.run("'y' * 20_000_000");
      expect(await kernel.provisioner.prune()).toEqual({
        pruned: expect.arrayContaining(["big"]) as unknown as string[],
      });
      const names = await kernel.provisioner.listNamespaceNames();
      expect(names?.map(({ name }) => name)).toEqual(["small"]);
      expect(existsSync(kernel.dir.join("artifacts", STATE))).toBe(true);
      expect(await kernel.text("small")).toBe("1");
    });

    test("values that misbehave while they are saved or revived cost only themselves", async () => {
      using dir = new TempDir();
      const define = `
class Evil:
    def __reduce__(self): raise KeyboardInterrupt
class Leaving:
    def __reduce__(self): raise SystemExit
class Loud:
    def __init__(self): self.x = 1
    def __setstate__(self, state): print('LOUD'); raise ValueError('no')
evil, leaving, loud, keep = Evil(), Leaving(), Loud(), 42`;
      await session(dir.path, [define], python);
      const { texts, restores } = await session(dir.path, ["keep"], python);
      expect(texts).toEqual(["42"]);
      expect(restores[0]?.restored).toContain("keep");
      expect(restores[0]?.restored).not.toContain("loud");
    });
  });
}

describeWithPython("newest", "on newest", () => {
  test("a value that ends the kernel while it is revived costs one more start, not the session", async () => {
    using dir = new TempDir();
    const define =
      "import os\nclass Bomb:\n    def __init__(self): self.x = 1\n    def __setstate__(self, state): os._exit(9)\nbomb, keep = Bomb(), 1";
    await session(dir.path, [define]);
    const { texts, restores } = await session(dir.path, ["keep"]);
    expect(texts).toEqual(["1"]);
    expect(restores[0]?.failed).toContainEqual({
      name: "bomb",
      reason: expect.stringContaining("ended the kernel") as unknown as string,
    });
  });

  test("no cell waits for a snapshot: cells run while a slow one is written", async () => {
    await using kernel = new ToolKernel({ snapshots: true });
    const slow =
      "import time\nclass Slow:\n    def __reduce__(self): time.sleep(5); return (int, ())\nslow = Slow()";
    await kernel.run(slow);
    const status = async () =>
      (await kernel.provisioner.kernel?.call(
        "snapshot_status",
        {},
        { channel: "control", timeoutMs: 5_000 },
      )) as {
        running: boolean;
      };
    while (!(await status()).running) await Bun.sleep(10);
    for (let index = 0; index < 10; index += 1)
      expect(await kernel.text(`${index}`)).toBe(`${index}`);
    expect((await status()).running).toBe(true);
    await kernel.provisioner.kill("enough");
  });

  test("an unchanged namespace is not written again", async () => {
    using dir = new TempDir();
    await session(dir.path, ["x = 1"]);
    const { mtimeMs } = statSync(dir.join(STATE));
    await session(dir.path, ["x"]);
    expect(statSync(dir.join(STATE)).mtimeMs).toBe(mtimeMs);
  });

  test("without a folder nothing is saved", async () => {
    await using kernel = new ToolKernel();
    await kernel.run("x = 1");
    expect(await kernel.provisioner.prune()).toBeUndefined();
    expect(existsSync(kernel.dir.join("artifacts"))).toBe(false);
  });
});
