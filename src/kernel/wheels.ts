/** The wheels that the executable carries, so that the environment is built without a network. */

import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const BLOCK_BYTES = 512;

/** A set of Pythons, as inclusive minor versions of Python 3; an absent end is open. */
export interface PythonRange {
  readonly fromMinor?: number;
  readonly untilMinor?: number;
}

/** A top-level folder of the archive and the Pythons that its files are for. */
export interface WheelGroup extends PythonRange {
  readonly name: string;
}

/** What describes the archive; made by the build and embedded beside it. */
export interface CarriedWheels {
  /** `linux-x64`, `linux-arm64-musl`, `darwin-arm64`… */
  readonly platform: string;
  /** Of the compressed archive, lower-case hex. */
  readonly sha256: string;
  readonly groups: readonly WheelGroup[];
  readonly wheels: ReadonlyArray<{
    readonly name: string;
    readonly version: string;
    readonly file: string;
  }>;
}

/** The folder of the archive that files for these Pythons lie in: `py310-`, `py311-311`… */
export function groupName(range: PythonRange): string {
  const oldest = range.fromMinor ?? 10;
  return `py3${oldest}-${range.untilMinor === undefined ? "" : `3${range.untilMinor}`}`;
}

/** Whether Python 3.`minor` is in the range. */
export function includesPython(range: PythonRange, minor: number): boolean {
  return minor >= (range.fromMinor ?? 0) && minor <= (range.untilMinor ?? Infinity);
}

/**
 * Writes the packages for Python 3.`minor` from the archive (a tar compressed with zstd) into
 * `folder`, which becomes a site-packages folder.
 *
 * @throws Error when the archive is damaged or the folder can't be written to.
 */
export function unpackWheels(
  archive: Uint8Array<ArrayBuffer>,
  wheels: CarriedWheels,
  minor: number,
  folder: string,
): void {
  const groups = wheels.groups.filter((group) => includesPython(group, minor));
  const names = new Set(groups.map((group) => group.name));
  const made = new Set<string>();
  for (const { path, data } of readTar(Bun.zstdDecompressSync(archive))) {
    const slash = path.indexOf("/");
    if (!names.has(path.slice(0, slash))) continue;
    const file = join(folder, path.slice(slash + 1));
    const parent = dirname(file);
    if (!made.has(parent)) mkdirSync(parent, { recursive: true });
    made.add(parent);
    writeFileSync(file, data);
  }
}

/** The regular files of a POSIX ustar archive, as the build writes them: no links, no extensions. */
function* readTar(tar: Buffer): Generator<{ path: string; data: Uint8Array }> {
  for (let at = 0; at + BLOCK_BYTES <= tar.length && tar[at] !== 0;) {
    const prefix = text(tar, at + 345, 155);
    const name = text(tar, at, 100);
    const size = Number.parseInt(text(tar, at + 124, 12), 8);
    const start = at + BLOCK_BYTES;
    if (!(start + size <= tar.length)) throw new Error("the carried wheels are damaged");
    yield { path: prefix ? `${prefix}/${name}` : name, data: tar.subarray(start, start + size) };
    at = start + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
}

function text(tar: Buffer, at: number, length: number): string {
  const field = tar.subarray(at, at + length);
  const end = field.indexOf(0);
  return field.toString("utf8", 0, end < 0 ? length : end);
}
