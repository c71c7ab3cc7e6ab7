import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import {
  PackageInstallError,
  UnusablePythonError,
} from "../../../src/kernel/environment-errors.ts";
import { metadata, Sandbox } from "../../support/environment.ts";
import { describeWithPython, pythonFor } from "../../support/python.ts";

/** The error of using `python` as it is. */
async function refusal(sandbox: Sandbox, python: string): Promise<UnusablePythonError> {
  const error = await sandbox.ensure({ pythonOverride: python }).catch((thrown) => thrown);
  expect(error).toBeInstanceOf(UnusablePythonError);
  expect(sandbox.lines).toEqual([]);
  return error;
}

describeWithPython("newest", "a Python that is to be used as it is", () => {
  test.each([
    ["a path", () => pythonFor("newest")],
    ["a relative path", () => join(".", pythonFor("newest").slice(process.cwd().length))],
    [
      "a wrapper that prints when it starts",
      (sandbox: Sandbox) =>
        sandbox.script("noisy", `echo '{"version":[2,0,0]}'; exec ${pythonFor("newest")} "$@"`),
    ],
    [
      "a name on PATH",
      (sandbox: Sandbox) => {
        sandbox.script("mine", `exec ${pythonFor("newest")} "$@"`);
        return "mine";
      },
    ],
  ])("is accepted by %s, and nothing is built", async (_, named) => {
    using sandbox = new Sandbox();
    const environment = await sandbox.ensure({ pythonOverride: named(sandbox) });
    expect(environment).toMatchObject({ source: "override", built: false });
    expect(environment.python).toStartWith("/");
    expect(environment).not.toHaveProperty("venvDir");
    expect(sandbox.lines).toEqual([]);
  });

  test("is refused with everything that is missing and the command that installs it", async () => {
    using sandbox = new Sandbox();
    const python = sandbox.folder.join("bin/python3");
    const error = await refusal(sandbox, python);
    expect(error.problems).toEqual(["ipykernel is missing", "dill is missing"]);
    expect(error.hint).toBe(`run ${python} -m pip install 'ipykernel>=6.17' 'dill>=0.3.6'`);
  });

  test("is refused for a package that is too old, without naming those that are good", async () => {
    using sandbox = new Sandbox();
    const { python, venvDir = "" } = await sandbox.ensure({
      assets: sandbox.assets({ requirements: "dill>=0.3\n" }),
    });
    const [packages = ""] = new Bun.Glob("lib/python3*/site-packages").scanSync({
      cwd: venvDir,
      onlyFiles: false,
    });
    await Bun.write(
      join(venvDir, packages, "ipykernel-7.3.0.dist-info/METADATA"),
      metadata("ipykernel", "5.0"),
    );
    sandbox.lines.length = 0;
    const error = await refusal(sandbox, python);
    expect(error.problems).toEqual(["ipykernel is 5.0, older than 6.17"]);
    expect(error.hint).toBe(`run ${python} -m pip install 'ipykernel>=6.17'`);
  });

  test.each([
    ["an old Python", `printf '{"version":[3,8,18]}' >&3`, "is Python 3.8.18, and 3.10 or newer"],
    ["Python 2, which knows none of our options", "exit 2", "exited with 2"],
    ["a program that is no Python", "echo hello", "exited with 0: hello"],
  ])("is refused when it is %s", async (_, script, problem) => {
    using sandbox = new Sandbox();
    const error = await refusal(sandbox, sandbox.script("other", script));
    expect(error.problems).toEqual([expect.stringContaining(problem)]);
  });

  test.each([
    ["a folder", (sandbox: Sandbox) => sandbox.folder.join("venv"), "is a folder, not a program"],
    ["missing", (sandbox: Sandbox) => sandbox.folder.join("nowhere"), "can't be found"],
    ["not executable", (sandbox: Sandbox) => sandbox.folder.join("plain"), "EACCES"],
  ])("is refused when it is %s", async (_, named, problem) => {
    using sandbox = new Sandbox();
    mkdirSync(sandbox.folder.join("venv"));
    chmodSync(sandbox.folder.write("plain", ""), 0o644);
    const error = await refusal(sandbox, named(sandbox));
    expect(error.problems).toEqual([expect.stringContaining(problem)]);
  });

  test("is asked about itself without a descriptor being left open", async () => {
    using sandbox = new Sandbox();
    const descriptors = () => readdirSync("/dev/fd").length;
    await sandbox.ensure({ pythonOverride: pythonFor("newest") });
    const before = descriptors();
    const rounds = 5;
    for (let round = 0; round < rounds; round += 1) {
      await sandbox.ensure({ pythonOverride: pythonFor("newest") });
    }
    // Bun opens and closes some of its own meanwhile.
    expect(descriptors() - before).toBeLessThan(rounds);
  });

  test("is never installed into", async () => {
    using sandbox = new Sandbox();
    const adding = sandbox.ensure({
      pythonOverride: pythonFor("newest"),
      extraPackages: ["attrs"],
    });
    await expect(adding).rejects.toBeInstanceOf(PackageInstallError);
  });
});
