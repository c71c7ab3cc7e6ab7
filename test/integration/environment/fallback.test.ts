import { expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { choosePythons } from "../../../src/kernel/base-python.ts";
import {
  EnvironmentBuildError,
  NoPythonError,
  PackageInstallError,
  UnusablePythonError,
} from "../../../src/kernel/environment-errors.ts";
import { basePython, describeWithWheels, evaluate, Sandbox } from "../../support/environment.ts";
import { describeWithPython, pythonFor } from "../../support/python.ts";

const WHEEL_CACHE = resolve(import.meta.dir, "../../../.cache/wheels");

/** A uv that does what ours is asked for with the standard library, and writes down its calls. */
const WORKING_UV = `
echo "$@" >>"$(dirname "$0")/uv.log"
case "$1 $2" in
"venv --quiet") for stage; do :; done; exec ${"${PYTHON}"} -m venv --without-pip "$stage" ;;
"pip install") exec "$5" -m zipfile -e ${WHEEL_CACHE}/dill-*.whl "$("$5" -c 'import site; print(site.getsitepackages()[0])')" ;;
esac
exit 3`.replace("${PYTHON}", "PYTHON_HERE");

function workingUv(sandbox: Sandbox): string {
  return sandbox.script(
    "uv",
    `PATH=/usr/bin:/bin\n${WORKING_UV.replace("PYTHON_HERE", basePython())}`,
  );
}

describeWithWheels("where the carried wheels do not fit", () => {
  /** Only dill is needed, so that one wheel of the cache is all that an installer has to bring. */
  const withoutWheels = (sandbox: Sandbox) =>
    sandbox.assets({ requirements: "dill>=0.3.6\n", wheels: false });

  test("a Python that has what is needed is used as it is, without a download", async () => {
    using sandbox = new Sandbox();
    sandbox.script("python3", `exec ${pythonFor("newest")} "$@"`);
    const environment = await sandbox.ensure({ assets: sandbox.assets({ wheels: false }) });
    expect(environment).toMatchObject({
      python: sandbox.folder.join("bin/python3"),
      source: "foreign",
      built: false,
    });
    expect(sandbox.lines).toEqual([expect.stringMatching(/^Using .*, as it is\.$/)]);
  });

  test("uv builds it, is announced, and the scripts know their final place", async () => {
    using sandbox = new Sandbox();
    workingUv(sandbox);
    const { python, built } = await sandbox.ensure({ assets: withoutWheels(sandbox) });
    expect(built).toBe(true);
    expect(evaluate(python, "import dill; print(dill.__file__)")).toStartWith(sandbox.venv);
    expect(readFileSync(join(sandbox.venv, "bin/activate"), "utf8")).not.toContain(".new-");
    expect(sandbox.lines[0]).toMatch(/packages from uv\)…$/);
  });

  test("pip builds it where there is no uv", async () => {
    using sandbox = new Sandbox();
    Object.assign(sandbox.env, { PIP_NO_INDEX: "1", PIP_FIND_LINKS: WHEEL_CACHE });
    const { python } = await sandbox.ensure({ assets: withoutWheels(sandbox) });
    expect(evaluate(python, "import dill; print(dill.__file__)")).toStartWith(sandbox.venv);
    expect(sandbox.lines[0]).toMatch(/packages from pip\)…$/);
    expect(evaluate(join(sandbox.venv, "bin/pip"), "")).not.toContain(".new-");
  }, 30_000);

  test("a failing uv is followed by pip, and one error tells all that was tried", async () => {
    using sandbox = new Sandbox();
    sandbox.script("uv", "echo 'no route to the index' >&2; exit 2");
    const building = sandbox.ensure({ assets: withoutWheels(sandbox) });
    const error: EnvironmentBuildError = await building.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(EnvironmentBuildError);
    expect(error.attempts).toEqual([
      "carried packages: none are carried",
      expect.stringMatching(/^packages from uv: .*uv venv .*exited with 2: no route to the index$/),
      expect.stringMatching(/^packages from pip: .*-m pip install .*exited with 1: /),
    ]);
    expect(sandbox.lines.filter((line) => line.startsWith("That failed"))).toHaveLength(2);
    expect(readdirSync(sandbox.home)).toEqual([]);
  }, 30_000);

  test("packages that can't be added leave a working environment and name the reason", async () => {
    using sandbox = new Sandbox();
    const { python } = await sandbox.ensure();
    sandbox.script("uv", "echo 'no route to the index' >&2; exit 2");
    const adding = sandbox.ensure({ extraPackages: ["numpy", "pandas"] });
    const error: PackageInstallError = await adding.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(PackageInstallError);
    expect(error.message).toStartWith("Could not install numpy, pandas: ");
    expect(error.message).toContain("no route to the index");
    expect(await sandbox.ensure()).toMatchObject({ python, built: false });
  });

  test("packages are added once, and are named when the environment has to be built anew", async () => {
    using sandbox = new Sandbox();
    workingUv(sandbox);
    await sandbox.ensure({ extraPackages: ["dill"] });
    await sandbox.ensure({ extraPackages: ["dill"] });
    const calls = readFileSync(sandbox.folder.join("bin/uv.log"), "utf8").trim().split("\n");
    expect(calls).toHaveLength(1);
    expect(calls[0]).toEndWith(" -- dill");
    await Bun.file(join(sandbox.venv, "bin/python")).delete();
    await sandbox.ensure();
    expect(sandbox.lines.at(-1)).toBe(
      "Packages added earlier are to be added again: setup --packages dill",
    );
  });
});

describeWithPython("newest", "choosing the Python to build from", () => {
  const options = (sandbox: Sandbox) => ({
    assets: sandbox.assets(),
    env: sandbox.env,
    systemFolders: [],
  });

  test("a virtual environment on PATH leads to the Python that it was made from", async () => {
    using sandbox = new Sandbox();
    sandbox.env["PATH"] = resolve(pythonFor("newest"), "..");
    const [chosen] = await choosePythons(options(sandbox));
    expect(chosen?.baseExecutable).toBe(basePython());
  });

  test("a newer numbered Python is found when python3 is too old", async () => {
    using sandbox = new Sandbox();
    sandbox.script("python3", `printf '{"version":[3,8,18]}' >&3`);
    const numbered = sandbox.script("python3.13", `exec ${basePython()} "$@"`);
    const [chosen] = await choosePythons(options(sandbox));
    expect(chosen?.path).toBe(numbered);
  });

  test("without any Python the error tells what was found instead and the ways out", async () => {
    using sandbox = new Sandbox();
    const old = sandbox.script("python3", `printf '{"version":[3,8,18]}' >&3`);
    const error: NoPythonError = await choosePythons(options(sandbox)).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(NoPythonError);
    expect(error.seen).toEqual([`${old} is Python 3.8.18, and 3.10 or newer is needed`]);
    expect(error.hint).toContain("uv");
    expect(error.hint).toContain("PRIME_AGENT_KERNEL_PYTHON");
  });

  test("without any Python but with uv, uv is asked for one", async () => {
    using sandbox = new Sandbox();
    await Bun.file(sandbox.folder.join("bin/python3")).delete();
    sandbox.script("uv", `[ "$2" = find ] && echo ${basePython()}; exit 0`);
    const lines: string[] = [];
    const [chosen] = await choosePythons({
      ...options(sandbox),
      onProgress: (line) => lines.push(line),
    });
    expect(chosen?.path).toBe(basePython());
    expect(lines).toEqual(["No Python 3.10 or newer was found; asking uv for one…"]);
  });

  test("a named Python is used or refused, and no other is looked for", async () => {
    using sandbox = new Sandbox();
    const old = sandbox.script("old", `printf '{"version":[3,9,1]}' >&3`);
    const choosing = choosePythons({ ...options(sandbox), python: old });
    const error: UnusablePythonError = await choosing.catch((thrown) => thrown);
    expect(error).toBeInstanceOf(UnusablePythonError);
    expect(error.message).toContain(`--python is ${old}`);
    expect(existsSync(sandbox.home)).toBe(false);
  });
});
