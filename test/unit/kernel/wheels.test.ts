import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { writeTar } from "../../../scripts/lib/tar.ts";
import {
  type CarriedWheels,
  groupName,
  includesPython,
  type PythonRange,
  unpackWheels,
} from "../../../src/kernel/wheels.ts";
import { TempDir } from "../../support/temp-dir.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const ANY: PythonRange = {};
const ONLY_310: PythonRange = { untilMinor: 10 };
const SINCE_312: PythonRange = { fromMinor: 12 };

function describeGroups(...ranges: PythonRange[]): CarriedWheels {
  const groups = ranges.map((range) => ({ ...range, name: groupName(range) }));
  return { platform: "linux-x64", sha256: "", groups, wheels: [] };
}

function archiveOf(files: Record<string, string>): Uint8Array<ArrayBuffer> {
  const entries = Object.entries(files).map(([path, text]) => ({ path, data: bytes(text) }));
  return new Uint8Array(Bun.zstdCompressSync(writeTar(entries)));
}

test.each([
  [ANY, 10, true],
  [ANY, 99, true],
  [ONLY_310, 10, true],
  [ONLY_310, 11, false],
  [SINCE_312, 11, false],
  [SINCE_312, 12, true],
  [SINCE_312, 15, true],
])("the range %j includes Python 3.%i: %p", (range, minor, included) => {
  expect(includesPython(range, minor)).toBe(included);
});

test("a Python gets the files of its groups and no others", () => {
  using folder = new TempDir();
  const archive = archiveOf({
    "py310-/zmq/__init__.py": "all",
    "py310-310/zmq/native.so": "for 3.10",
    "py312-/zmq/native.so": "for 3.12 and later",
  });
  unpackWheels(archive, describeGroups(ANY, ONLY_310, SINCE_312), 13, folder.path);
  expect(readdirSync(folder.join("zmq")).sort()).toEqual(["__init__.py", "native.so"]);
  expect(readFileSync(folder.join("zmq/native.so"), "utf8")).toBe("for 3.12 and later");
});

test("a path longer than a tar name keeps all its folders", () => {
  using folder = new TempDir();
  const path = `${"a".repeat(60)}/${"b".repeat(60)}/${"c".repeat(60)}.py`;
  unpackWheels(archiveOf({ [`py310-/${path}`]: "x" }), describeGroups(ANY), 12, folder.path);
  expect(readFileSync(folder.join(path), "utf8")).toBe("x");
});

test("an archive that is cut short is refused", () => {
  using folder = new TempDir();
  const tar = writeTar([{ path: "py310-/a.py", data: bytes("x".repeat(2000)) }]);
  const cut = new Uint8Array(Bun.zstdCompressSync(tar.subarray(0, 1024)));
  expect(() => unpackWheels(cut, describeGroups(ANY), 12, folder.path)).toThrow("damaged");
});
