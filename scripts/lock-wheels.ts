/**
 * Makes kernel/wheels.lock.json from kernel/wheels.txt: asks the package index
 * for the wheel of each line, platform and Python, and writes down its hash.
 */

import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { includesPython, type PythonRange } from "../src/kernel/wheels.ts";
import {
  type LockedWheel,
  PLATFORM_TAGS,
  type Platform,
  PYTHON_MINORS,
  pipDownload,
  REPOSITORY,
  sha256,
  WHEEL_CACHE,
  writeLock,
} from "./lib/wheel-lock.ts";

/** A line of wheels.txt: the pinned requirement and the Pythons that its marker names. */
interface Pin extends PythonRange {
  readonly requirement: string;
}

const platforms = Object.keys(PLATFORM_TAGS) as Platform[];
const pins = parsePins(await Bun.file(join(REPOSITORY, "kernel/wheels.txt")).text());
const wheels = new Map<string, LockedWheel>();

await mkdir(WHEEL_CACHE, { recursive: true });
for (const platform of platforms) {
  for (const minor of PYTHON_MINORS) await lock(platform, minor);
}
await writeLock([...wheels.values()]);
console.error(`lock-wheels: ${wheels.size} wheels for ${platforms.length} platforms`);

/** Adds what one platform and Python need; wheels that fit every platform are asked for once. */
async function lock(platform: Platform, minor: number): Promise<void> {
  const wanted = pins.filter(
    (pin) => includesPython(pin, minor) && !(isPure(pin) && platform !== platforms[0]),
  );
  console.error(`lock-wheels: ${platform}, Python 3.${minor}: ${wanted.length} packages`);
  const folder = await mkdtemp(join(WHEEL_CACHE, "lock-"));
  try {
    const requirements = join(folder, "requirements.txt");
    await Bun.write(requirements, wanted.map((pin) => `${pin.requirement}\n`).join(""));
    await pipDownload({ requirements, platform, minor, into: folder, hashed: false });
    for (const file of await readdir(folder)) {
      if (!file.endsWith(".whl")) continue;
      const bytes = await Bun.file(join(folder, file)).bytes();
      await Bun.write(join(WHEEL_CACHE, file), bytes);
      record(file, bytes, platform);
    }
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

function record(file: string, bytes: Uint8Array, platform: Platform): void {
  const [name = "", version = "", pythonTag = "", abiTag = ""] = file.split("-");
  const pin = pins.find((candidate) => candidate.requirement === `${name}==${version}`);
  if (!pin) throw new Error(`pip brought ${file}, which wheels.txt does not name`);
  const known = wheels.get(file);
  const pure = file.endsWith("-any.whl");
  wheels.set(file, {
    name,
    version,
    file,
    size: bytes.length,
    sha256: sha256(bytes),
    ...pythonRange(pin, pythonTag, abiTag),
    ...(pure ? {} : { platforms: [...new Set([...(known?.platforms ?? []), platform])] }),
  });
}

/** A stable-ABI wheel fits its Python and all later ones; another compiled one fits exactly one. */
function pythonRange(pin: Pin, pythonTag: string, abiTag: string) {
  const minor = Number(/^cp3(\d+)$/.exec(pythonTag)?.[1]);
  const oldest = PYTHON_MINORS[0];
  const fromMinor = Math.max(pin.fromMinor ?? oldest, Number.isNaN(minor) ? oldest : minor);
  const untilMinor = Number.isNaN(minor) || abiTag === "abi3" ? pin.untilMinor : minor;
  return {
    ...(fromMinor > oldest ? { fromMinor } : {}),
    ...(untilMinor === undefined ? {} : { untilMinor }),
  };
}

function isPure(pin: Pin): boolean {
  const [name, version] = pin.requirement.split("==");
  return [...wheels.values()].some(
    (wheel) => wheel.name === name && wheel.version === version && wheel.platforms === undefined,
  );
}

function parsePins(text: string): Pin[] {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return lines.map((line) => {
    const [requirement = "", marker] = line.split(";").map((part) => part.trim());
    if (marker === undefined) return { requirement };
    const [, operator, minor] = /^python_version (<|>=) "3\.(\d+)"$/.exec(marker) ?? [];
    if (minor === undefined) throw new Error(`wheels.txt: unknown marker: ${marker}`);
    if (operator === "<") return { requirement, untilMinor: Number(minor) - 1 };
    return { requirement, fromMinor: Number(minor) };
  });
}
