/** The private folder of a kernel: short enough for sockets, closed to others, gone afterwards. */

import { expect, test } from "bun:test";
import { existsSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { makeRuntimeDir, removeRuntimeDir } from "../../../src/kernel/runtime-dir.ts";
import { TempDir } from "../../support/temp-dir.ts";

test("it is made in the first place that serves, for its owner only", () => {
  using dir = new TempDir();
  const made = makeRuntimeDir(["", dir.join("missing"), dir.path]);
  expect(dirname(made)).toBe(dir.path);
  expect(statSync(made).mode & 0o777).toBe(0o700);
  removeRuntimeDir(made);
  expect(existsSync(made)).toBe(false);
  removeRuntimeDir(made);
});

test("a place whose path is too long for sockets is passed over", () => {
  using dir = new TempDir();
  const long = dir.write(`${"x".repeat(90)}/file`, "").replace("/file", "");
  const made = makeRuntimeDir([long, dir.path]);
  expect(dirname(made)).toBe(dir.path);
  expect(`${made}/stderr`.length).toBeLessThan(107);
  removeRuntimeDir(made);
});

test("what is left is removed when the process exits", () => {
  using dir = new TempDir();
  const source = `import { makeRuntimeDir } from ${JSON.stringify(`${import.meta.dir}/../../../src/kernel/runtime-dir.ts`)};
    process.stdout.write(makeRuntimeDir([process.argv[1]]));`;
  const { stdout } = Bun.spawnSync(["bun", "-e", source, dir.path]);
  expect(dirname(stdout.toString())).toBe(dir.path);
  expect(existsSync(stdout.toString())).toBe(false);
});
