/** Starts that go wrong or another way: each fails at once with its reason, and leaves nothing behind. */

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { resolve } from "node:path";
import { Semaphore } from "../../../src/async.ts";
import { AbortedError } from "../../../src/errors.ts";
import { bootKernel, type BootOptions } from "../../../src/kernel/boot.ts";
import { KernelStartError } from "../../../src/kernel/errors.ts";
import { connectExistingKernel } from "../../../src/kernel/existing.ts";
import { ForkServers } from "../../../src/kernel/fork-servers.ts";
import { bootOwnKernel, IpythonKernelProvisioner } from "../../../src/kernel/provisioner.ts";
import { describeWithPython, pythonFor } from "../../support/python.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { textOf, ToolKernel } from "../../support/tool-kernel.ts";

const KERNEL = resolve(import.meta.dir, "../../../kernel");

/** Boot options whose sockets go into a folder of the test. */
function optionsIn(dir: TempDir, changes: Partial<BootOptions> = {}, python?: string): BootOptions {
  mkdirSync(dir.join("run"), { recursive: true });
  return {
    prepare: async () => ({ python: python ?? pythonFor("newest"), root: KERNEL }),
    permits: new Semaphore(4),
    forkServers: new ForkServers(false),
    cwd: dir.path,
    paths: [],
    env: { PATH: process.env["PATH"] ?? "", HOME: dir.path },
    transport: "ipc",
    runtimeDirs: [dir.join("run")],
    handlers: {},
    bootstrap: { skills: [], depth: 0, max_depth: 1 },
    ...changes,
  };
}

/** Boots, and gives the error. */
async function bootError(options: BootOptions, signal = new AbortController().signal) {
  const error = await bootKernel(options, () => undefined, signal).then(
    ({ kernel }) => kernel.kill(),
    (reason) => reason,
  );
  return error as KernelStartError;
}

/** Programs that are no Python, or a bad one. */
const BROKEN: Array<{ name: string; script: string; message: RegExp; stderr: RegExp }> = [
  {
    name: "prints a warning and exits",
    script: "echo 'warning: old' >&2; exit 1",
    message: /exited with code 1 before it was ready\.\nwarning: old$/,
    stderr: /warning: old/,
  },
  {
    name: "dies of a signal",
    script: "kill -SEGV $$",
    message: /killed by SIGSEGV before it was ready/,
    stderr: /^$/,
  },
  {
    name: "says something else than that it is ready",
    script: "echo nonsense >&3; exit 3",
    message: /exited with code 3/,
    stderr: /^$/,
  },
  {
    name: "says why it can't start",
    script: `echo '{"ready": false, "error": "lacks ipykernel"}' >&3; exit 1`,
    message: /^lacks ipykernel$/,
    stderr: /^$/,
  },
  {
    name: "says that it is ready, and dies before it can be reached",
    script: `echo '{"ready": true, "pid": 1}' >&3; echo sorry >&2; exit 4`,
    message: /ended before it could be reached: it exited with code 4\.\nsorry$/,
    stderr: /sorry/,
  },
];

describe("a start with a program that", () => {
  test.each(BROKEN)(
    "$name fails with that, and leaves no folder",
    async ({ script, message, stderr }) => {
      using dir = new TempDir();
      const program = dir.write("python", `#!/bin/sh\n${script}\n`);
      chmodSync(program, 0o755);
      const error = await bootError(optionsIn(dir, {}, program));
      expect(error).toBeInstanceOf(KernelStartError);
      expect(error.message).toMatch(message);
      expect(error.stderrTail).toMatch(stderr);
      expect(readdirSync(dir.join("run"))).toEqual([]);
    },
  );

  test("is not there names its path", async () => {
    using dir = new TempDir();
    const error = await bootError(optionsIn(dir, {}, dir.join("nothing")));
    expect(error).toBeInstanceOf(KernelStartError);
    expect(error.message).toContain(dir.join("nothing"));
  });

  test("never becomes ready is given up when the caller is aborted", async () => {
    using dir = new TempDir();
    const program = dir.write("python", "#!/bin/sh\necho $$ > pid\nexec sleep 1000\n");
    chmodSync(program, 0o755);
    const error = await bootError(optionsIn(dir, {}, program), AbortSignal.timeout(200));
    expect(error).toBeInstanceOf(AbortedError);
    expect(readdirSync(dir.join("run"))).toEqual([]);
  });
});

describeWithPython("newest", "a start", () => {
  test("that is slow is waited for", async () => {
    using dir = new TempDir();
    const slow = dir.write("python", `#!/bin/sh\nsleep 2\nexec ${pythonFor("newest")} "$@"\n`);
    chmodSync(slow, 0o755);
    const { signal } = new AbortController();
    const { kernel } = await bootKernel(optionsIn(dir, {}, slow), () => undefined, signal);
    expect((await kernel.execute("1", { onOutput: () => undefined })).status).toBe("ok");
    await kernel.shutdown();
    expect(readdirSync(dir.join("run"))).toEqual([]);
  });

  test("that waits for its turn is not begun once it is aborted or disposed of", async () => {
    using dir = new TempDir();
    const permits = new Semaphore(1);
    const release = await permits.acquire();
    const stages: string[] = [];
    const options = optionsIn(dir, { permits });
    const provisioner = new IpythonKernelProvisioner({ boot: bootOwnKernel(options) });
    const starting = provisioner.ensure((stage) => stages.push(stage)).catch((error) => error);
    while (stages.length === 0) await Bun.sleep(1);
    await provisioner.dispose();
    expect(await starting).toBeInstanceOf(AbortedError);
    expect(await bootError(options, AbortSignal.timeout(10))).toBeInstanceOf(AbortedError);
    release();
    expect(stages).toEqual(["Waiting for other kernels to start…"]);
    expect(readdirSync(dir.join("run"))).toEqual([]);
    // The turn that nobody took is free for the next one.
    const { signal } = new AbortController();
    const { kernel } = await bootKernel(options, () => undefined, signal);
    await kernel.kill();
  });

  test("over TCP works the same", async () => {
    await using kernel = new ToolKernel({ transport: "tcp" });
    expect(await kernel.text("1 + 1")).toBe("2");
  });

  test("in a folder that is gone names it and runs above it; shell cells work there", async () => {
    using dir = new TempDir();
    const cwd = dir.join("gone");
    mkdirSync(cwd);
    rmSync(cwd, { recursive: true });
    await using kernel = new ToolKernel({ cwd });
    expect(await kernel.text("import os; os.getcwd()")).toBe(`'${dir.path}'`);
    expect(kernel.ready[0]?.ready?.cwd_missing).toBe(cwd);
    expect(await kernel.text("%%bash\npwd")).toContain(dir.path);
  });

  test("survives the loss of the folder that it runs in", async () => {
    using dir = new TempDir();
    const cwd = dir.join("worktree");
    mkdirSync(cwd);
    await using kernel = new ToolKernel({ cwd });
    await kernel.run("x = 1");
    rmSync(cwd, { recursive: true });
    const text = await kernel.text("x");
    expect(text).toContain(`${cwd} no longer exists`);
    expect(text).toEndWith("\n1");
    await kernel.run("%cd /tmp");
    expect(await kernel.text("%%bash\npwd")).toContain("/tmp");
  });

  test("of twenty kernels at once on a few permits brings all up", async () => {
    using dir = new TempDir();
    const options = optionsIn(dir, { permits: new Semaphore(3) });
    const { signal } = new AbortController();
    const booted = await Promise.all(
      Array.from({ length: 20 }, () => bootKernel(options, () => undefined, signal)),
    );
    await Promise.all(booted.map(({ kernel }) => kernel.kill()));
    expect(new Set(booted.map(({ kernel }) => kernel.pid)).size).toBe(20);
    expect(readdirSync(dir.join("run"))).toEqual([]);
  });
});

test("an existing kernel without a connection file, or gone since, is refused with the reason", async () => {
  using dir = new TempDir();
  expect(() => connectExistingKernel(dir.join("none.json"))).toThrow("there is no connection file");
  const ports = { shell_port: 1, iopub_port: 1, stdin_port: 1, control_port: 1, hb_port: 1 };
  const info = { transport: "ipc", ip: dir.join("k"), key: "", signature_scheme: "hmac-sha256" };
  const file = dir.write("old.json", JSON.stringify({ ...info, ...ports }));
  await using kernel = new ToolKernel({ boot: connectExistingKernel(file) });
  const error = await kernel.run("1").then(textOf, (reason: Error) => reason.message);
  expect(error).toContain("no connection to ipc://");
});
