/** Packs the locked wheels of a platform into the one archive that its executable carries. */

import { join } from "node:path";
import { type CarriedWheels, groupName } from "../../src/kernel/wheels.ts";
import { type TarEntry, writeTar } from "./tar.ts";
import {
  type LockedWheel,
  type Platform,
  readLock,
  sha256,
  WHEEL_CACHE,
  wheelsFor,
} from "./wheel-lock.ts";
import { readZip } from "./zip.ts";

/** The level with the longest window: two copies of a file in different groups cost one. */
const ZSTD_LEVEL = 22;

/** What running cells never needs: tests, headers, type stubs, Windows launchers, bills of materials. */
const LEFT_OUT = [
  /(^|\/)tests?\//,
  /\.(pyi|pyx|pxd|pxi|c|h|exe)$/,
  /\.dist-info\/sboms\//,
  /^IPython\/sphinxext\//,
  /^tornado\/locale\//,
  /\.data\/(data|scripts|headers)\//,
];

/** Dependencies that are not carried; their mention would make every `pip install` complain. */
const LEFT_OUT_DEPENDENCIES = /^Requires-Dist: (debugpy|jedi)\b.*\n/gm;

/**
 * Packs from the wheel cache, which scripts/fetch-wheels fills, and gives the folder with the
 * archive `wheels.tar.zst` (a tar with a folder for each group of Pythons) and `wheels.json`, which
 * describes it. The same lock gives the same bytes, so what is packed already is kept.
 */
export async function packWheels(platform: Platform): Promise<string> {
  const wheels = wheelsFor(platform, await readLock());
  const folder = join(WHEEL_CACHE, platform);
  const recipe = sha256(
    Buffer.from(
      JSON.stringify([wheels, String(LEFT_OUT), String(LEFT_OUT_DEPENDENCIES), ZSTD_LEVEL]),
    ),
  );
  const packed = (await readJson(join(folder, "wheels.json"))) as PackedWheels | undefined;
  if (packed?.recipe === recipe) return folder;
  const entries: TarEntry[] = [];
  for (const wheel of wheels) entries.push(...(await wheelEntries(wheel)));
  entries.sort((a, b) => (withoutGroup(a.path) < withoutGroup(b.path) ? -1 : 1));
  const archive = Bun.zstdCompressSync(writeTar(entries), { level: ZSTD_LEVEL });
  const groups = new Map(wheels.map((wheel) => [groupName(wheel), groupOf(wheel)]));
  const description: PackedWheels = {
    platform,
    recipe,
    sha256: sha256(archive),
    groups: [...groups.values()].sort((a, b) => (a.name < b.name ? -1 : 1)),
    wheels: wheels.map(({ name, version, file }) => ({ name, version, file })),
  };
  await Bun.write(join(folder, "wheels.tar.zst"), archive);
  await Bun.write(join(folder, "wheels.json"), `${JSON.stringify(description, null, 2)}\n`);
  return folder;
}

/** With what the archive was made from, to know whether it is still good. */
interface PackedWheels extends CarriedWheels {
  readonly recipe: string;
}

async function readJson(path: string): Promise<unknown> {
  const file = Bun.file(path);
  return (await file.exists()) ? await file.json() : undefined;
}

async function wheelEntries(wheel: LockedWheel): Promise<TarEntry[]> {
  const bytes = await Bun.file(join(WHEEL_CACHE, wheel.file)).bytes();
  if (sha256(bytes) !== wheel.sha256) throw new Error(`${wheel.file} is not the locked one`);
  const group = groupName(wheel);
  return readZip(bytes)
    .map(({ path, data }) => ({
      path: path.replace(/^[^/]+\.data\/(purelib|platlib)\//, ""),
      data,
    }))
    .filter(({ path }) => !LEFT_OUT.some((pattern) => pattern.test(path)))
    .map(({ path, data }) => ({
      path: `${group}/${path}`,
      data: path.endsWith(".dist-info/METADATA") ? withoutLeftOut(data) : data,
    }));
}

function withoutLeftOut(metadata: Uint8Array): Uint8Array {
  return Buffer.from(Buffer.from(metadata).toString("utf8").replace(LEFT_OUT_DEPENDENCIES, ""));
}

function groupOf(wheel: LockedWheel) {
  const { fromMinor, untilMinor } = wheel;
  return {
    name: groupName(wheel),
    ...(fromMinor === undefined ? {} : { fromMinor }),
    ...(untilMinor === undefined ? {} : { untilMinor }),
  };
}

function withoutGroup(path: string): string {
  return path.slice(path.indexOf("/") + 1);
}
