/** The machines that executables are built for. */

import type { Platform } from "./wheel-lock.ts";

/** What differs from one target to the next. */
export interface Target {
  /** The npm package that holds Bun for it, without the scope. */
  readonly bunPackage: string;
  /** Whose wheels it carries. */
  readonly platform: Platform;
}

/** All targets by name. `-baseline` runs on x64 processors without AVX2. */
export const TARGETS: Readonly<Record<string, Target>> = {
  "linux-x64": { bunPackage: "bun-linux-x64", platform: "linux-x64" },
  "linux-x64-baseline": { bunPackage: "bun-linux-x64-baseline", platform: "linux-x64" },
  "linux-x64-musl": { bunPackage: "bun-linux-x64-musl", platform: "linux-x64-musl" },
  "linux-x64-musl-baseline": {
    bunPackage: "bun-linux-x64-musl-baseline",
    platform: "linux-x64-musl",
  },
  "linux-arm64": { bunPackage: "bun-linux-aarch64", platform: "linux-arm64" },
  "linux-arm64-musl": { bunPackage: "bun-linux-aarch64-musl", platform: "linux-arm64-musl" },
  "darwin-x64": { bunPackage: "bun-darwin-x64", platform: "darwin-x64" },
  "darwin-arm64": { bunPackage: "bun-darwin-aarch64", platform: "darwin-arm64" },
};

/** The target that is named, or a refusal that lists the known ones. */
export function targetNamed(name: string): Target {
  const target = TARGETS[name];
  if (target) return target;
  throw new Error(`unknown target ${name}; known: ${Object.keys(TARGETS).join(", ")}`);
}

/** The target of this machine: its processor decides between x64 and its baseline when it runs. */
export function hostTarget(): string {
  const musl = process.platform === "linux" && Bun.spawnSync(["ldd", "--version"]).exitCode !== 0;
  return `${process.platform}-${process.arch}${musl ? "-musl" : ""}`;
}
