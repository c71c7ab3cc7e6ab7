/** Kernels forked from a template: the same as started ones, watched and killed by identity, with a way back. */

import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { open } from "node:fs/promises";
import { join, resolve } from "node:path";
import { ForkServerUnavailableError, type KernelExit } from "../../../src/kernel/errors.ts";
import { ForkServer } from "../../../src/kernel/fork-server.ts";
import { ForkServers } from "../../../src/kernel/fork-servers.ts";
import type { KernelProcess, LaunchConfig } from "../../../src/kernel/process.ts";
import { createIpcConnection, writeConnectionFile } from "../../../src/jupyter/connection-file.ts";
import { processStartTime } from "../../../src/process-identity.ts";
import { describeWithPython, pythonFor } from "../../support/python.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { textOf, ToolKernel } from "../../support/tool-kernel.ts";

const LAUNCHER = resolve(import.meta.dir, "../../../kernel/launcher.py");
const ENV = { PATH: process.env["PATH"] ?? "", HOME: "/" };
const isAlive = (pid: number) => processStartTime(pid) !== undefined;

/** One template and the folders of its kernels. */
class Template implements Disposable {
  readonly dir = new TempDir();
  readonly server: ForkServer;
  #count = 0;

  constructor(python: "newest" | "oldest") {
    this.server = new ForkServer(pythonFor(python), LAUNCHER, ENV);
  }

  fork(
    env: Record<string, string> = ENV,
    changes: Partial<LaunchConfig> = {},
  ): Promise<KernelProcess> {
    const kernel_dir = this.dir.join(`k${(this.#count += 1)}`);
    mkdirSync(kernel_dir);
    const connection_file = join(kernel_dir, "connection.json");
    writeConnectionFile(connection_file, createIpcConnection(kernel_dir));
    return this.server.fork({ connection_file, cwd: "/", paths: [], kernel_dir, ...changes }, env);
  }

  [Symbol.dispose](): void {
    this.server.dispose();
    this.dir[Symbol.dispose]();
  }
}

async function untilGone(...pids: number[]): Promise<void> {
  while (pids.some(isAlive)) await Bun.sleep(10);
}

for (const python of ["newest", "oldest"] as const) {
  describeWithPython(python, `on ${python}`, () => {
    test("a forked kernel is ready, can be signalled, and its end is noticed", async () => {
      using template = new Template(python);
      const kernel = await template.fork();
      expect(await kernel.ready).toMatchObject({ pid: kernel.pid, cwd: "/" });
      kernel.signal("SIGKILL", "group");
      expect(await kernel.exited).toEqual({ code: null, signal: "SIGKILL" });
      await untilGone(kernel.pid);
      // What has ended is signalled no more, whoever has its pid by now.
      kernel.signal("SIGKILL", "process");
    });

    test("a kernel that dies for an outside reason is noticed, and its siblings live on", async () => {
      using template = new Template(python);
      const kernels = await Promise.all(Array.from({ length: 6 }, () => template.fork()));
      await Promise.all(kernels.map(({ ready }) => ready));
      const [victims, others] = [kernels.slice(0, 3), kernels.slice(3)];
      for (const { pid } of victims) process.kill(pid, "SIGKILL");
      const exits = await Promise.all(victims.map(({ exited }) => exited));
      expect(exits).toEqual(victims.map((): KernelExit => ({ code: null, signal: "SIGKILL" })));
      expect(others.every(({ pid }) => isAlive(pid))).toBe(true);
    });

    test("a kernel that can't start says why", async () => {
      using template = new Template(python);
      const kernel = await template.fork(ENV, { connection_file: "/nowhere/connection.json" });
      const error = await kernel.ready.catch((reason) => reason);
      expect(error.message).toContain("/nowhere/connection.json");
      expect((await kernel.exited).code).toBe(1);
    });

    test("cells run in forked kernels as in started ones, each on its own", async () => {
      const forkServers = new ForkServers(true);
      const kernels = Array.from({ length: 3 }, () => new ToolKernel({ python, forkServers }));
      for (const [index, kernel] of kernels.entries()) await kernel.run(`x = ${index}`);
      const texts = await Promise.all(
        kernels.map((kernel) => kernel.text("import os; print(os.getcwd()); x")),
      );
      expect(texts).toEqual(kernels.map(({ dir }, index) => `${dir.path}\n${index}`));
      const dead = await (kernels[2] as ToolKernel).run("import os; os._exit(5)");
      expect(textOf(dead)).toContain("exited with code 5");
      const crash = await (kernels[1] as ToolKernel).run("import ctypes; ctypes.string_at(0)");
      expect(textOf(crash)).toContain("SIGSEGV");
      expect(textOf(crash)).toContain("Fatal Python error");
      for (const kernel of kernels) await kernel[Symbol.asyncDispose]();
      forkServers.dispose();
    });
  });
}

describeWithPython("newest", "a template", () => {
  test("refuses an environment that a fork can't have, and says which variable it is", async () => {
    using template = new Template("newest");
    for (const name of ["PYTHONPATH", "PYTHONHASHSEED", "LD_PRELOAD", "LC_ALL"]) {
      const error = await template.fork({ ...ENV, [name]: "x" }).catch((reason) => reason);
      expect(error).toBeInstanceOf(ForkServerUnavailableError);
      expect(error.message).toContain(name);
    }
    const kernel = await template.fork({ ...ENV, PROJECT: "mine" });
    await kernel.ready;
  });

  test("that is killed takes its kernels with it, and the next kernel is started anew", async () => {
    const forkServers = new ForkServers(true);
    await using first = new ToolKernel({ forkServers });
    await using second = new ToolKernel({ forkServers });
    await first.run("1");
    await second.run("1");
    const pid = second.provisioner.kernel?.pid as number;
    const { stdout } = Bun.spawnSync(["ps", "-o", "ppid=", "-p", String(pid)]);
    process.kill(Number(stdout.toString()), "SIGKILL");
    const error = await second.provisioner.kernel?.gone;
    expect(error?.message).toContain("its fork server ended");
    await untilGone(pid);
    expect(textOf(await second.run("1 + 1"))).toEndWith("2");
    expect(await first.text("2 + 2")).toBe("4");
    forkServers.dispose();
  });

  test("that does not answer keeps no kernel from being ended, and costs the others nothing", async () => {
    using template = new Template("newest");
    const [victim, other] = await Promise.all([template.fork(), template.fork()]);
    await Promise.all([victim.ready, other.ready]);
    process.kill(template.server.pid, "SIGSTOP");
    victim.signal("SIGKILL", "group");
    await untilGone(victim.pid);
    process.kill(template.server.pid, "SIGCONT");
    expect(await victim.exited).toEqual({ code: null, signal: "SIGKILL" });
    expect(isAlive(other.pid)).toBe(true);
    await (
      await template.fork()
    ).ready;
  });

  test("that is disposed of refuses requests, and ends with its kernels", async () => {
    using template = new Template("newest");
    const kernel = await template.fork();
    await kernel.ready;
    const { pid } = template.server;
    template.server.dispose();
    expect(template.server.alive).toBe(false);
    expect(await template.fork().catch((reason) => reason)).toBeInstanceOf(
      ForkServerUnavailableError,
    );
    await untilGone(pid, kernel.pid);
  });

  test("of an interpreter that does not work is given up, and the error is that of the start", async () => {
    using dir = new TempDir();
    const broken = dir.write("python", "#!/bin/sh\necho no such library >&2\nexit 1\n");
    Bun.spawnSync(["chmod", "+x", broken]);
    const server = new ForkServer(broken, LAUNCHER, ENV);
    const config = { connection_file: "", cwd: "/", paths: [], kernel_dir: dir.path };
    const error = await server.fork(config, ENV).catch((reason) => reason);
    expect(error).toBeInstanceOf(ForkServerUnavailableError);
    expect(error.message).toContain("no such library");
    const missing = () => new ForkServer(dir.join("nothing"), LAUNCHER, ENV);
    expect(missing).toThrow(ForkServerUnavailableError);
  });

  test("that says only after it has closed its pipes why it ends is heard out", async () => {
    using dir = new TempDir();
    const fifo = dir.join("go");
    Bun.spawnSync(["mkfifo", fifo]);
    const dying = `#!/bin/sh\nexec 3<&- 4>&-\nread -r _ <${fifo}\necho no such library >&2\nexit 3\n`;
    const path = dir.write("python", dying);
    Bun.spawnSync(["chmod", "+x", path]);
    const server = new ForkServer(path, LAUNCHER, ENV);
    const closed = await open(fifo, "w");
    const forks = ["a", "b"].map((name) => {
      mkdirSync(dir.join(name));
      const config = { connection_file: "", cwd: "/", paths: [], kernel_dir: dir.join(name) };
      return server.fork(config, ENV).catch((reason) => reason);
    });
    await closed.write("go\n");
    await closed.close();
    for (const error of await Promise.all(forks)) {
      expect(error).toBeInstanceOf(ForkServerUnavailableError);
      expect(error.message).toContain("it exited with code 3: no such library");
    }
    expect(server.alive).toBe(false);
  });

  test("is not used when it is off, nor where the environment has variables of Python's own", async () => {
    expect(new ForkServers(false).next("python", LAUNCHER, ENV)).toBeUndefined();
    const forkServers = new ForkServers(true);
    const env = { PYTHONHASHSEED: "1" };
    for (let index = 0; index < 3; index += 1) {
      await using kernel = new ToolKernel({ forkServers, env: index === 2 ? env : {} });
      await kernel.run("import os");
      const parent = Number(await kernel.text("os.getppid()"));
      expect(parent === process.pid).toBe(index !== 1);
    }
    forkServers.dispose();
  });

  test("forks 16 kernels at once, and all run cells", async () => {
    const forkServers = new ForkServers(true);
    const kernels = Array.from({ length: 16 }, () => new ToolKernel({ forkServers }));
    const texts = await Promise.all(kernels.map((kernel, index) => kernel.text(`${index} * 2`)));
    expect(texts).toEqual(kernels.map((_, index) => `${index * 2}`));
    await Promise.all(kernels.map((kernel) => kernel[Symbol.asyncDispose]()));
    forkServers.dispose();
  });

  test("keeps one kernel in reserve, from which the next one of its kind comes", async () => {
    using dir = new TempDir();
    const forkServers = new ForkServers(true);
    const kernels: ToolKernel[] = [];
    const next = async () => {
      const env = { HOME: dir.path, IPYTHONDIR: dir.path };
      const kernel = new ToolKernel({ forkServers, cwd: dir.path, env });
      kernels.push(kernel);
      await kernel.run("1");
      return kernel.provisioner.kernel?.pid as number;
    };
    const first = await next();
    const second = await next();
    const parent = Bun.spawnSync(["ps", "-o", "ppid=", "-p", String(second)]).stdout.toString();
    const children = () =>
      Bun.spawnSync(["ps", "-o", "pid=", "--ppid", parent.trim()])
        .stdout.toString()
        .trim()
        .split(/\s+/)
        .map(Number);
    while (children().length < 2) await Bun.sleep(10);
    const [spare = 0] = children().filter((pid) => pid !== second);
    while (!forkServers.spare.isReady) await Bun.sleep(10);
    expect(await next()).toBe(spare);
    expect(first).not.toBe(spare);
    for (const kernel of kernels) await kernel[Symbol.asyncDispose]();
    while (!forkServers.spare.isReady) await Bun.sleep(10);
    const left = children();
    forkServers.dispose();
    await untilGone(...left);
  });
});
