/** A home of its own for tests that find or build Python environments. */

import { describe } from "bun:test";
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, symlinkSync } from "node:fs";
import { join, resolve } from "node:path";
import { writeTar } from "../../scripts/lib/tar.ts";
import type { CarriedArchive, KernelAssets } from "../../src/kernel/assets.ts";
import {
  ensurePythonEnvironment,
  type EnvironmentOptions,
  type PythonEnvironment,
} from "../../src/kernel/environment.ts";
import { pythonFor } from "./python.ts";
import { TempDir } from "./temp-dir.ts";

const KERNEL_FOLDER = resolve(import.meta.dir, "../../kernel");
const HOST = `${process.platform}-${process.arch}`;
const CARRIED = resolve(import.meta.dir, `../../.cache/wheels/${HOST}/wheels.json`);
const FETCH_WHEELS = resolve(import.meta.dir, "../../scripts/fetch-wheels");

/**
 * `describe` for tests that need the real wheels, which are fetched if they are not there yet. Without
 * them or the test Python they are skipped with a printed reason, and under `CI=true` they fail.
 */
export function describeWithWheels(title: string, body: () => void): void {
  if (!existsSync(CARRIED)) Bun.spawnSync([FETCH_WHEELS, HOST], { stderr: "inherit" });
  const missing = [CARRIED, pythonFor("newest")].filter((path) => !existsSync(path));
  if (missing.length === 0) return describe(title, body);
  const reason = `${title}: ${missing.join(" and ")} missing; run scripts/fetch-wheels and scripts/test-env`;
  if (process.env.CI === "true") throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  describe.skip(title, body);
}

/**
 * An empty home, a PATH with nothing but `python3` (which has none of our packages), a package index
 * that refuses, and every line of progress.
 */
export class Sandbox implements Disposable {
  readonly folder = new TempDir();
  readonly home = this.folder.join("home/.prime/agent");
  readonly lines: string[] = [];
  readonly env: Record<string, string> = {
    HOME: this.folder.join("home"),
    PATH: this.folder.join("bin"),
    TMPDIR: this.folder.join("tmp"),
    HTTPS_PROXY: "http://127.0.0.1:9",
    PIP_INDEX_URL: "http://127.0.0.1:9/simple",
    PIP_CONFIG_FILE: "/dev/null",
  };

  constructor() {
    mkdirSync(this.folder.join("bin"));
    symlinkSync(basePython(), this.folder.join("bin/python3"));
  }

  /** Where the environment goes unless something is in the way. */
  get venv(): string {
    return join(this.home, "kernel-venv");
  }

  /** Calls {@link ensurePythonEnvironment} in this sandbox. */
  async ensure(options: Partial<EnvironmentOptions> = {}): Promise<PythonEnvironment> {
    return await ensurePythonEnvironment({
      home: this.home,
      env: this.env,
      assets: this.assets(),
      onProgress: (line) => this.lines.push(line),
      ...options,
    });
  }

  /**
   * Our Python side with other `requirements`, so that they can be met or not, and with wheels of
   * stand-ins for the real packages, which take no time to unpack and import; or without wheels.
   */
  assets(options: { requirements?: string; wheels?: boolean } = {}): KernelAssets {
    const { requirements = "ipykernel>=6.17\ndill>=0.3.6\n", wheels = true } = options;
    const folder = `kernel-${Bun.hash(requirements)}`;
    const root = this.folder.join(folder);
    for (const name of ["inspect_environment.py", "build_environment.py"]) {
      cpSync(join(KERNEL_FOLDER, name), join(root, name));
    }
    this.folder.write(`${folder}/requirements.txt`, requirements);
    return { root, hash: "test", unpacked: false, wheels: wheels ? standInWheels() : undefined };
  }

  /** Puts a shell script on PATH. */
  script(name: string, body: string): string {
    // Writing to a link would write to what it leads to: the real Python.
    rmSync(this.folder.join("bin", name), { force: true });
    const path = this.folder.write(`bin/${name}`, `#!/bin/sh\n${body}\n`);
    chmodSync(path, 0o755);
    return path;
  }

  [Symbol.dispose](): void {
    this.folder[Symbol.dispose]();
  }
}

/** Wheels of `ipykernel` 7 and `dill` 0.4 that can be imported and do nothing. */
function standInWheels(): CarriedArchive {
  const files: Record<string, string> = {
    "ipykernel/__init__.py": "",
    "ipykernel/kernelapp.py": "",
    "ipykernel-7.3.0.dist-info/METADATA": metadata("ipykernel", "7.3.0"),
    "dill/__init__.py": "def loads(data): return data\n",
    "dill-0.4.1.dist-info/METADATA": metadata("dill", "0.4.1"),
  };
  const entries = Object.entries(files).map(([path, text]) => ({
    path: `py310-/${path}`,
    data: new TextEncoder().encode(text),
  }));
  const archive = new Uint8Array(Bun.zstdCompressSync(writeTar(entries)));
  return {
    description: { platform: hostPlatform(), sha256: "", groups: [{ name: "py310-" }], wheels: [] },
    readArchive: async () => archive,
  };
}

/** What makes a folder on `sys.path` an installed package. */
export function metadata(name: string, version: string): string {
  return `Metadata-Version: 2.1\nName: ${name}\nVersion: ${version}\n`;
}

function hostPlatform(): string {
  const musl = process.platform === "linux" && existsSync(`/lib/ld-musl-${process.arch}.so.1`);
  return `${HOST}${musl ? "-musl" : ""}`;
}

/** The Python that the newest test environment was made from; it has no packages of its own. */
export function basePython(): string {
  const code = "import sys; print(sys._base_executable)";
  return Bun.spawnSync([pythonFor("newest"), "-c", code])
    .stdout.toString()
    .trim();
}

/** What a Python prints for a one-line program. */
export function evaluate(python: string, code: string): string {
  const { stdout, stderr } = Bun.spawnSync([python, "-E", "-s", "-c", code], { cwd: "/" });
  return `${stdout}${stderr}`.trim();
}
