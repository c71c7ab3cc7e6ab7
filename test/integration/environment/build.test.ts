import { expect, test } from "bun:test";
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, resolve } from "node:path";
import { AbortedError } from "../../../src/errors.ts";
import { EnvironmentBuildError } from "../../../src/kernel/environment-errors.ts";
import { basePython, evaluate, Sandbox } from "../../support/environment.ts";
import { describeWithPython } from "../../support/python.ts";

const IMPORT_ALL = "import ipykernel.kernelapp, dill; print('imported')";

describeWithPython("newest", "building the environment", () => {
  test("a warm start runs no Python", async () => {
    using sandbox = new Sandbox();
    await sandbox.ensure();
    sandbox.lines.length = 0;
    const assets = sandbox.assets();
    rmSync(join(assets.root, "inspect_environment.py"));
    rmSync(join(assets.root, "build_environment.py"));
    const python = join(sandbox.venv, "bin/python");
    expect(await sandbox.ensure({ assets })).toMatchObject({ python, built: false });
    expect(sandbox.lines).toEqual([]);
  });

  test.each([
    ["LC_ALL=C", { LC_ALL: "C", LANG: "C" }],
    ["a PYTHONHOME and PYTHONPATH that lead nowhere", { PYTHONHOME: "/x", PYTHONPATH: "/y" }],
    ["pip told to install elsewhere", { PIP_USER: "1", PIP_TARGET: "/nonexistent" }],
  ])("%s does not get in the way", async (_, variables) => {
    using sandbox = new Sandbox();
    Object.assign(sandbox.env, variables);
    const { python, built } = await sandbox.ensure();
    expect(built).toBe(true);
    expect(evaluate(python, IMPORT_ALL)).toBe("imported");
  });

  test("a home that can't be written to sends the environment elsewhere, and says so", async () => {
    using sandbox = new Sandbox();
    const home = join(sandbox.folder.write("file", ""), "agent");
    sandbox.env["XDG_DATA_HOME"] = sandbox.folder.join("data dir");
    const { venvDir } = await sandbox.ensure({ home });
    expect(venvDir).toBe(sandbox.folder.join("data dir/prime/agent/kernel-venv"));
    expect(sandbox.lines[0]).toBe(`${home}/kernel-venv can't be written to.`);
    sandbox.lines.length = 0;
    expect((await sandbox.ensure({ home })).built).toBe(false);
    expect(sandbox.lines).toEqual([]);
  });

  test("without HOME the folder for temporary files serves", async () => {
    using sandbox = new Sandbox();
    const home = join(sandbox.folder.write("file", ""), "agent");
    delete sandbox.env["HOME"];
    const { venvDir } = await sandbox.ensure({ home });
    expect(venvDir).toStartWith(sandbox.folder.join("tmp/prime-agent-"));
  });

  test("an empty folder that was prepared for it is filled, whatever its parent allows", async () => {
    using sandbox = new Sandbox();
    const venvDir = sandbox.folder.join("prepared é");
    mkdirSync(venvDir);
    const { ino } = lstatSync(venvDir);
    const environment = await sandbox.ensure({ venvDir });
    expect(environment).toMatchObject({ venvDir, built: true });
    expect(evaluate(environment.python, IMPORT_ALL)).toBe("imported");
    expect(lstatSync(venvDir).ino).toBe(ino);
    expect(readdirSync(venvDir).filter((name) => name.startsWith(".new"))).toEqual([]);
  });

  test("of several starts at once one builds and the others use what it built", async () => {
    using sandbox = new Sandbox();
    const all = await Promise.all([sandbox.ensure(), sandbox.ensure(), sandbox.ensure()]);
    expect(all.map((environment) => environment.built).sort()).toEqual([false, false, true]);
    expect(new Set(all.map((environment) => environment.python)).size).toBe(1);
  });

  test("an aborted build leaves nothing, and the next one works", async () => {
    using sandbox = new Sandbox();
    const abort = new AbortController();
    const building = sandbox.ensure({ signal: abort.signal, onProgress: () => abort.abort() });
    await expect(building).rejects.toBeInstanceOf(AbortedError);
    expect(readdirSync(sandbox.home)).toEqual([]);
    expect((await sandbox.ensure()).built).toBe(true);
  });

  test("a builder that is killed leaves nothing that stops the next one", async () => {
    using sandbox = new Sandbox();
    const source = sandbox.folder.write("build.ts", BUILD_SCRIPT);
    const builder = Bun.spawn([process.execPath, source, sandbox.home, sandbox.assets().root], {
      env: sandbox.env,
      stdout: "pipe",
      stderr: "inherit",
    });
    // It has the lock when it announces the build.
    await builder.stdout.getReader().read();
    builder.kill("SIGKILL");
    await builder.exited;
    expect(readdirSync(sandbox.home)).toContain("kernel-venv.lock");
    expect(await sandbox.ensure()).toMatchObject({ built: true, venvDir: sandbox.venv });
    expect(readdirSync(sandbox.home)).toEqual(["kernel-venv"]);
  });

  test("a removed Python makes ours be built anew, with a message", async () => {
    using sandbox = new Sandbox();
    await sandbox.ensure();
    const python = join(sandbox.venv, "bin/python");
    unlinkSync(python);
    symlinkSync(sandbox.folder.join("removed/python3"), python);
    sandbox.lines.length = 0;
    expect(await sandbox.ensure()).toMatchObject({ built: true, venvDir: sandbox.venv });
    expect(sandbox.lines[0]).toStartWith(`${sandbox.venv} is not used: its Python can't be found`);
    expect(readdirSync(sandbox.home)).toEqual(["kernel-venv"]);
  });

  test("a package that was removed from ours makes it be built anew", async () => {
    using sandbox = new Sandbox();
    const { python } = await sandbox.ensure();
    rmSync(dirname(evaluate(python, "import dill; print(dill.__file__)")), { recursive: true });
    sandbox.lines.length = 0;
    expect(await sandbox.ensure()).toMatchObject({ built: true, venvDir: sandbox.venv });
    expect(sandbox.lines[0]).toBe(`${sandbox.venv} is not used: dill is missing.`);
  });

  test("a Python that is named is the one that is used, and a second one gets a place of its own", async () => {
    using sandbox = new Sandbox();
    const wrapper = sandbox.script("mypython", `exec ${basePython()} "$@"`);
    await sandbox.ensure();
    const named = await sandbox.ensure({ python: wrapper });
    expect(named.built).toBe(true);
    expect(named.venvDir).toStartWith(`${sandbox.venv}-`);
    const again = await sandbox.ensure({ python: wrapper });
    expect(again).toMatchObject({ built: false, venvDir: named.venvDir! });
    expect((await sandbox.ensure()).venvDir).toBe(sandbox.venv);
  });

  test("two versions with other requirements share an environment that meets both", async () => {
    using sandbox = new Sandbox();
    const older = sandbox.assets({ requirements: "ipykernel>=6.17\n" });
    const newer = sandbox.assets({ requirements: "ipykernel>=6.18\ndill>=0.3\n" });
    const built = [];
    for (const assets of [older, newer, older, newer]) {
      built.push((await sandbox.ensure({ assets })).built);
    }
    expect(built).toEqual([true, false, false, false]);
    expect(readdirSync(sandbox.home)).toEqual(["kernel-venv"]);
  });

  test("a version that needs more than there is leaves the working environment alone", async () => {
    using sandbox = new Sandbox();
    const { python } = await sandbox.ensure();
    const before = lstatSync(sandbox.venv).ino;
    const assets = sandbox.assets({ requirements: "ipykernel>=999\n" });
    const failing = sandbox.ensure({ assets });
    await expect(failing).rejects.toBeInstanceOf(EnvironmentBuildError);
    expect(lstatSync(sandbox.venv).ino).toBe(before);
    expect(evaluate(python, IMPORT_ALL)).toBe("imported");
    expect(readdirSync(sandbox.home)).toEqual(["kernel-venv"]);
  }, 30_000);

  test("an environment that another tool made is used if it is good, and kept if it is not", async () => {
    using sandbox = new Sandbox();
    const { python } = await sandbox.ensure();
    rmSync(join(sandbox.venv, ".prime-agent.json"));
    expect(await sandbox.ensure()).toMatchObject({ python, source: "foreign", built: false });
    expect(await sandbox.ensure()).toMatchObject({ python, source: "foreign", built: false });

    rmSync(join(sandbox.venv, ".prime-agent.json"));
    rmSync(dirname(evaluate(python, "import ipykernel; print(ipykernel.__file__)")), {
      recursive: true,
    });
    writeFileSync(join(sandbox.venv, "theirs"), "");
    const own = await sandbox.ensure();
    expect(own.built).toBe(true);
    expect(own.venvDir).toStartWith(`${sandbox.venv}-`);
    expect(existsSync(join(sandbox.venv, "theirs"))).toBe(true);
    sandbox.lines.length = 0;
    expect(await sandbox.ensure()).toMatchObject({ built: false, venvDir: own.venvDir! });
    expect(sandbox.lines).toEqual([]);
  });
});

const BUILD_SCRIPT = `
import { loadAssets } from ${JSON.stringify(resolve(import.meta.dir, "../../../src/kernel/assets.ts"))};
import { ensurePythonEnvironment } from ${JSON.stringify(resolve(import.meta.dir, "../../../src/kernel/environment.ts"))};
const [home, env] = [process.argv[2], process.env];
const assets = { ...(await loadAssets({ home, env })), root: process.argv[3] };
await ensurePythonEnvironment({ home, env, assets, onProgress: console.log });
`;
