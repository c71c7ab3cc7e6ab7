import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync, utimesSync } from "node:fs";
import { knownPython } from "../../src/app-packages.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { readConfig } from "../../src/cli/read-config.ts";
import { readEnvironment } from "../../src/config.ts";
import { writeStamp } from "../../src/kernel/environment-stamp.ts";
import { TempDir } from "../support/temp-dir.ts";

/** An environment as far as its stamp goes, and the variables that name it. */
function environmentIn(dir: TempDir): Record<string, string> {
  const venv = dir.join("venv");
  const sitePackages = dir.join("venv", "lib", "site-packages");
  for (const name of ["numpy-2.3.1.dist-info", "python_dateutil-2.9.0.post0.dist-info", "numpy"])
    mkdirSync(`${sitePackages}/${name}`, { recursive: true });
  mkdirSync(`${venv}/bin`);
  symlinkSync("/bin/sh", `${venv}/bin/python`);
  const interpreter = {
    version: [3, 12, 4],
    cacheTag: "cpython-312",
    sitePackages,
    baseExecutable: "/bin/sh",
  } as unknown as Parameters<typeof writeStamp>[1];
  writeStamp(venv, interpreter, { meets: "hash" });
  return { HOME: dir.path, PRIME_AGENT_KERNEL_VENV: venv };
}

function known(variables: Record<string, string>, ...args: string[]) {
  const options = parseArguments(["exec", ...args]).options;
  return knownPython(readConfig(options, readEnvironment(variables)));
}

describe("knownPython", () => {
  test("reads version and packages from the environment as it is", () => {
    using dir = new TempDir();
    expect(known(environmentIn(dir))).toEqual({
      version: "3.12.4",
      packages: expect.arrayContaining(["numpy", "python_dateutil"]),
    });
  });

  test("knows nothing of one that is not there, was changed, or is somebody else's", () => {
    using dir = new TempDir();
    expect(known({ HOME: dir.path, XDG_DATA_HOME: dir.path, TMPDIR: dir.path })).toBeUndefined();
    const variables = environmentIn(dir);
    expect(known({ ...variables, PRIME_AGENT_KERNEL_PYTHON: "/usr/bin/python3" })).toBeUndefined();
    expect(known(variables, "--existing", "/tmp/kernel.json")).toBeUndefined();
    utimesSync(dir.join("venv", "lib", "site-packages"), 1, 1);
    expect(known({ ...variables, TMPDIR: dir.path, XDG_DATA_HOME: dir.path })).toBeUndefined();
  });
});
