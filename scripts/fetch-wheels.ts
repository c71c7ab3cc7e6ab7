/** Downloads the locked wheels of the named platforms (default: all) into the wheel cache and packs them. */

import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { includesPython } from "../src/kernel/wheels.ts";
import { packWheels } from "./lib/carried-wheels.ts";
import {
  type LockedWheel,
  PLATFORM_TAGS,
  type Platform,
  PYTHON_MINORS,
  pipDownload,
  platformNamed,
  readLock,
  sha256,
  WHEEL_CACHE,
  wheelsFor,
} from "./lib/wheel-lock.ts";

const named = process.argv.slice(2).map(platformNamed);
const lock = await readLock();
await mkdir(WHEEL_CACHE, { recursive: true });
for (const platform of named.length > 0 ? named : (Object.keys(PLATFORM_TAGS) as Platform[])) {
  await fetchPlatform(platform);
  await packWheels(platform);
}

/** pip takes one Python at a time and refuses a requirement that does not fit it, so: one call for each. */
async function fetchPlatform(platform: Platform): Promise<void> {
  let missing = await withoutCached(wheelsFor(platform, lock));
  for (const minor of PYTHON_MINORS) {
    const wanted = missing.filter((wheel) => includesPython(wheel, minor));
    if (wanted.length === 0) continue;
    console.error(`fetch-wheels: ${platform}, Python 3.${minor}: ${wanted.length} wheels`);
    const requirements = join(WHEEL_CACHE, `requirements-${process.pid}.txt`);
    const lines = wanted.map(
      (wheel) => `${wheel.name}==${wheel.version} --hash=sha256:${wheel.sha256}\n`,
    );
    await Bun.write(requirements, lines.join(""));
    try {
      await pipDownload({ requirements, platform, minor, into: WHEEL_CACHE, hashed: true });
    } finally {
      await rm(requirements, { force: true });
    }
    missing = await withoutCached(missing);
  }
  const absent = missing.map((wheel) => wheel.file).join(", ");
  if (absent) throw new Error(`the package index gave other wheels than those locked: ${absent}`);
}

async function withoutCached(wheels: readonly LockedWheel[]): Promise<LockedWheel[]> {
  const missing: LockedWheel[] = [];
  for (const wheel of wheels) {
    const cached = Bun.file(join(WHEEL_CACHE, wheel.file));
    if (!(await cached.exists()) || sha256(await cached.bytes()) !== wheel.sha256)
      missing.push(wheel);
  }
  return missing;
}
