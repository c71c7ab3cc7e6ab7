import { expect, test } from "bun:test";
import { deflateRawSync } from "node:zlib";
import {
  PYTHON_MINORS,
  PLATFORM_TAGS,
  readLock,
  wheelsFor,
} from "../../../scripts/lib/wheel-lock.ts";
import type { Platform } from "../../../scripts/lib/wheel-lock.ts";
import { readZip } from "../../../scripts/lib/zip.ts";
import { includesPython } from "../../../src/kernel/wheels.ts";

const STORED = 0;
const DEFLATED = 8;

/** A ZIP archive, laid out by hand after APPNOTE.TXT 4.3.6. */
function zipOf(files: ReadonlyArray<{ path: string; data: string; method: number }>): Uint8Array {
  const locals: Buffer[] = [];
  const directory: Buffer[] = [];
  for (const { path, data, method } of files) {
    const packed = method === DEFLATED ? deflateRawSync(data) : Buffer.from(data);
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(path.length, 26);
    // The local header's extra field may differ from the directory's.
    local.writeUInt16LE(4, 28);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(method, 10);
    entry.writeUInt32LE(packed.length, 20);
    entry.writeUInt16LE(path.length, 28);
    entry.writeUInt32LE(Buffer.concat(locals).length, 42);
    directory.push(entry, Buffer.from(path));
    locals.push(local, Buffer.from(path), Buffer.alloc(4), packed);
  }
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(files.length, 10);
  end.writeUInt32LE(Buffer.concat(locals).length, 16);
  return Buffer.concat([...locals, ...directory, end]);
}

test("stored and deflated files of a wheel are read, folders are not files", () => {
  const files = [
    { path: "a/", data: "", method: STORED },
    { path: "a/stored.txt", data: "as it is", method: STORED },
    { path: "a/deflated.txt", data: "x".repeat(1000), method: DEFLATED },
  ];
  const read = readZip(zipOf(files)).map(({ path, data }) => [path, Buffer.from(data).toString()]);
  expect(read).toEqual([
    ["a/stored.txt", "as it is"],
    ["a/deflated.txt", "x".repeat(1000)],
  ]);
});

test("something that is no ZIP archive is refused", () => {
  expect(() => readZip(Buffer.from("<html>not found</html>"))).toThrow("not a ZIP");
});

test("the lock file names no package index", async () => {
  expect(JSON.stringify(await readLock())).not.toMatch(/:\/\//);
});

const combinations = Object.keys(PLATFORM_TAGS).flatMap((platform) =>
  PYTHON_MINORS.map((minor) => [platform as Platform, minor] as const),
);

test.each(combinations)(
  "%s with Python 3.%i gets each package exactly once",
  async (platform, minor) => {
    const wheels = wheelsFor(platform, await readLock()).filter((wheel) =>
      includesPython(wheel, minor),
    );
    const names = wheels.map((wheel) => wheel.name).sort();
    expect(names).toEqual([...new Set(names)]);
    expect(names).toContain("ipykernel");
    expect(names).toContain("ipython");
    expect(names).toContain("pyzmq");
    expect(names).toContain("pip");
  },
);
