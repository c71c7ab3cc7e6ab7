/** What environment and numbers mean. */

import { describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, symlinkSync } from "node:fs";
import {
  bootLimit,
  depthLimit,
  firstWritable,
  kernelEnvironment,
  parseDuration,
  parseNumber,
  readEnvironment,
  readSettings,
  temporaryHome,
  variable,
} from "../../src/config.ts";
import { UsageError } from "../../src/errors.ts";
import { TempDir } from "../support/temp-dir.ts";

describe("parseDuration", () => {
  test.each([
    ["90", 90_000],
    ["90s", 90_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["500ms", 500],
    [" 5 s ", 5_000],
    ["0.0004s", 0],
  ])("%s is %d ms", (text, ms) => {
    expect(parseDuration("--timeout", text)).toBe(ms);
  });

  test.each(["", "0", "-1s", "5d", "soon", "1e3", "1 2", "s"])(
    "%j is refused with the option's name",
    (text) => {
      expect(() => parseDuration("--timeout", text)).toThrow(UsageError);
      expect(() => parseDuration("--timeout", text)).toThrow("--timeout takes a duration");
    },
  );
});

describe("parseNumber", () => {
  test.each([
    ["3", { min: 1 }, 3],
    ["0", { min: 0 }, 0],
    ["0.25", { min: 0, fractions: true }, 0.25],
  ])("%s with %j is %d", (text, rules, value) => {
    expect(parseNumber("--n", text, rules)).toBe(value);
  });

  test.each([
    ["0", { min: 1 }],
    ["1.5", { min: 1 }],
    ["-1", { min: 0, fractions: true }],
    ["Infinity", { min: 0, fractions: true }],
    ["0x10", { min: 0 }],
    ["", { min: 0 }],
  ])("%j with %j is refused", (text, rules) => {
    expect(() => parseNumber("--n", text, rules)).toThrow("--n takes");
  });
});

describe("the environment", () => {
  test.each([
    [{ HOME: "/h" }, "/h/.prime/agent"],
    [{ HOME: "/h", PRIME_AGENT_HOME: "/elsewhere" }, "/elsewhere"],
    [{ HOME: "/h", PRIME_AGENT_HOME: "" }, "/h/.prime/agent"],
    [{ HOME: "/h", PRIME_AGENT_HOME: "relative" }, "/relative"],
  ])("%j puts the program's files into %s", (source, home) => {
    expect(readEnvironment(source).home).toBe(home);
  });

  test("takes a variable that is set but empty for unset, and leaves out what has no value", () => {
    const environment = readEnvironment({ A: "", B: "b", C: undefined });
    expect([variable(environment, "A"), variable(environment, "B")]).toEqual([undefined, "b"]);
    expect(environment.variables).toEqual({ A: "", B: "b" });
  });

  test.each([
    [undefined, 1],
    ["0", 0],
    ["3", 3],
  ])("RLM_MAX_DEPTH=%s lets sub-agents nest %d deep", (value, depth) => {
    expect(depthLimit(readEnvironment({ RLM_MAX_DEPTH: value }))).toBe(depth);
  });

  test.each(["-1", "1.5", "deep", " "])("RLM_MAX_DEPTH=%j is refused by name", (value) => {
    expect(() => depthLimit(readEnvironment({ RLM_MAX_DEPTH: value }))).toThrow("RLM_MAX_DEPTH");
  });

  test.each([
    ["1", 1],
    ["64", 64],
    ["1000", 64],
  ])("%s kernels at once are %d", (value, limit) => {
    expect(bootLimit(value)).toBe(limit);
  });

  test.each([undefined, "", "0", "-3", "many", "2.5"])(
    "%j kernels at once are at least two",
    (value) => {
      expect(bootLimit(value)).toBeGreaterThanOrEqual(2);
    },
  );

  test("says how the kernel is to be reached, and refuses what it can't be", () => {
    const read = (source: Record<string, string>) => kernelEnvironment(readEnvironment(source));
    expect(read({})).toMatchObject({ transport: "ipc", forkServer: process.platform === "linux" });
    expect(
      read({
        PRIME_AGENT_KERNEL_TRANSPORT: "tcp",
        PRIME_AGENT_KERNEL_FORKSERVER: "0",
        PRIME_AGENT_KERNEL_PYTHON: "/p",
        PRIME_AGENT_KERNEL_VENV: "/v",
      }),
    ).toMatchObject({ transport: "tcp", forkServer: false, pythonOverride: "/p", venvDir: "/v" });
    expect(() => read({ PRIME_AGENT_KERNEL_TRANSPORT: "IPC" })).toThrow("must be ipc or tcp");
  });
});

describe("a settings file", () => {
  test("that is missing, or below a file, is empty", () => {
    using dir = new TempDir();
    dir.write("file", "");
    expect(readSettings(dir.join("none.json"))).toEqual({});
    expect(readSettings(dir.join("file/none.json"))).toEqual({});
  });

  test("keeps what we don't know", () => {
    using dir = new TempDir();
    const path = dir.write("settings.json", '{"model": "a/b", "theme": "dark"}');
    expect(readSettings(path)).toEqual({ model: "a/b", theme: "dark" } as object);
  });

  test("that is a folder is an error that names it", () => {
    using dir = new TempDir();
    mkdirSync(dir.join("settings.json"));
    expect(() => readSettings(dir.join("settings.json"))).toThrow("settings.json can't be read");
  });
});

describe("the home of somebody without one", () => {
  const uid = process.getuid?.() ?? 0;

  test("is a folder of their own", () => {
    using dir = new TempDir();
    const home = temporaryHome(dir.path);
    expect(home).toBe(dir.join(`prime-agent-${uid}`));
    mkdirSync(home, { mode: 0o700 });
    expect(temporaryHome(dir.path)).toBe(home);
  });

  test.each([
    ["others may write to", (path: string) => (mkdirSync(path), chmodSync(path, 0o777))],
    ["is a link", (path: string) => symlinkSync("/tmp", path)],
  ])("is none that %s", (_, plant) => {
    using dir = new TempDir();
    plant(dir.join(`prime-agent-${uid}`));
    expect(temporaryHome(dir.path)).toStartWith("/dev/null/");
  });

  test("is none that somebody else owns", () => {
    using dir = new TempDir();
    mkdirSync(dir.join("prime-agent-99999"));
    expect(temporaryHome(dir.path, 99_999)).toStartWith("/dev/null/");
  });
});

test("the first folder that can be written is found, and made; a file is none", () => {
  using dir = new TempDir();
  dir.write("file", "");
  expect(firstWritable([dir.join("file/x"), dir.join("a/b"), dir.join("c")])).toBe(dir.join("a/b"));
  expect(firstWritable([dir.join("file/x")])).toBeUndefined();
  expect(firstWritable([])).toBeUndefined();
});
