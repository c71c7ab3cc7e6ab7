/** The lock file of the carried wheels, and the platforms that they are locked for. */

import { join } from "node:path";
import type { PythonRange } from "../../src/kernel/wheels.ts";

/** The repository, whatever the current directory is. */
export const REPOSITORY = join(import.meta.dir, "../..");

/** Downloaded wheels, kept between builds and never committed. */
export const WHEEL_CACHE = join(REPOSITORY, ".cache/wheels");

const LOCK_FILE = join(REPOSITORY, "kernel/wheels.lock.json");

/** The Pythons that wheels are locked for, as minor versions of Python 3. */
export const PYTHON_MINORS = [10, 11, 12, 13, 14] as const;

/** A platform with wheels of its own; the processor's baseline makes no difference to them. */
export type Platform = keyof typeof PLATFORM_TAGS;

/** The wheel tags that each platform accepts, oldest system last. */
export const PLATFORM_TAGS = {
  "linux-x64": ["manylinux_2_28_x86_64", "manylinux2014_x86_64", "manylinux2010_x86_64"],
  "linux-x64-musl": ["musllinux_1_2_x86_64"],
  "linux-arm64": ["manylinux_2_28_aarch64", "manylinux2014_aarch64"],
  "linux-arm64-musl": ["musllinux_1_2_aarch64"],
  "darwin-x64": ["macosx_10_15_x86_64", "macosx_10_15_universal2", "macosx_10_9_universal2"],
  "darwin-arm64": ["macosx_11_0_arm64", "macosx_10_15_universal2", "macosx_10_9_universal2"],
} as const;

/** The platform that is named, or a refusal that lists the known ones. */
export function platformNamed(name: string): Platform {
  if (name in PLATFORM_TAGS) return name as Platform;
  throw new Error(`unknown platform ${name}; known: ${Object.keys(PLATFORM_TAGS).join(", ")}`);
}

/** One wheel: the Pythons and platforms that it fits, and what it must be. */
export interface LockedWheel extends PythonRange {
  readonly name: string;
  readonly version: string;
  readonly file: string;
  readonly size: number;
  readonly sha256: string;
  /** Absent: any platform. */
  readonly platforms?: readonly Platform[];
}

/** All wheels for all platforms, sorted by file name. */
export async function readLock(): Promise<LockedWheel[]> {
  return ((await Bun.file(LOCK_FILE).json()) as { wheels: LockedWheel[] }).wheels;
}

/** Replaces the lock file; the same wheels give the same bytes. */
export async function writeLock(wheels: readonly LockedWheel[]): Promise<void> {
  const sorted = [...wheels].sort((a, b) => (a.file < b.file ? -1 : 1));
  const lines = sorted.map((wheel) => `    ${JSON.stringify(wheel)}`).join(",\n");
  await Bun.write(LOCK_FILE, `{\n  "wheels": [\n${lines}\n  ]\n}\n`);
}

/** The wheels that one platform's executable carries. */
export function wheelsFor(platform: Platform, lock: readonly LockedWheel[]): LockedWheel[] {
  return lock.filter(
    (wheel) => wheel.platforms === undefined || wheel.platforms.includes(platform),
  );
}

/** Lower-case hex SHA-256. */
export function sha256(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

/** Runs `pip download` for one platform and Python 3.`minor`; its output is shown when it fails. */
export async function pipDownload(options: {
  readonly requirements: string;
  readonly platform: Platform;
  readonly minor: number;
  readonly into: string;
  readonly hashed: boolean;
}): Promise<void> {
  const command = [
    process.env["PYTHON"] ?? "python3",
    ...["-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"],
    ...["--only-binary", ":all:", "--implementation", "cp"],
    ...["--python-version", `3.${options.minor}`],
    ...PLATFORM_TAGS[options.platform].flatMap((tag) => ["--platform", tag]),
    ...(options.hashed ? ["--require-hashes"] : []),
    ...["--dest", options.into, "--requirement", options.requirements],
  ];
  const pip = Bun.spawn(command, { stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const [out, err, code] = await Promise.all([pip.stdout.text(), pip.stderr.text(), pip.exited]);
  if (code !== 0) throw new Error(`pip download exited with ${code}:\n${out}${err}`);
}
