/** The house rules, as far as a machine can read them: layers, sizes, catches, environment, console. */

import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, normalize, relative } from "node:path";

const ROOT = join(import.meta.dir, "../../..");
const MAX_LINES = 400;
const MAX_FUNCTION_LINES = 60;

/** Files that may import everything. */
const TOP = /^(app(-\w+)?|main)\.ts$/;
const LEAF_FOLDER = "leaves";

/** What each folder of `src` may import, beside itself; paths are prefixes below `src`. */
const ALLOWED: Record<string, string[]> = {
  leaves: [],
  wire: ["leaves"],
  jupyter: ["wire", "leaves"],
  kernel: ["jupyter", "leaves"],
  tool: ["kernel", "leaves"],
  providers: ["leaves"],
  agent: ["tool", "providers", "kernel/host-bridge", "leaves"],
  cli: ["app", "agent", "leaves"],
};

/** Every source file below `folder`, as paths from the repository's root. */
function sources(folder: string, ending: RegExp): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)))
    .filter((name) => ending.test(name) && !name.includes("__pycache__"));
}

const TS_FILES = sources("src", /\.ts$/);
const text = new Map(TS_FILES.map((file) => [file, readFileSync(join(ROOT, file), "utf8")]));

/** The folder of a file below `src`: its layer, or "leaves" or "app". */
function layerOf(file: string): string {
  const path = relative("src", file);
  if (!path.includes("/")) return TOP.test(path) ? "app" : LEAF_FOLDER;
  return path.split("/")[0] as string;
}

/** The files that a file imports, type-only and dynamic imports included. */
function importsOf(file: string): string[] {
  const found = (text.get(file) as string).matchAll(/(?:from|import)\s*\(?\s*"(\.[^"]+\.ts)"/g);
  return [...found].map(([, target]) => normalize(join(dirname(file), target as string)));
}

function isAllowed(file: string, target: string): boolean {
  const layer = layerOf(file);
  const targetLayer = layerOf(target);
  if (layer === "app" || layer === targetLayer) return true;
  const path = relative("src", target).replace(/\.ts$/, "");
  return (ALLOWED[layer] ?? []).some((prefix) => targetLayer === prefix || path === prefix);
}

describe("imports", () => {
  test("follow the layers", () => {
    const broken = TS_FILES.flatMap((file) =>
      importsOf(file)
        .filter((target) => !isAllowed(file, target))
        .map((target) => `${file} imports ${target}`),
    );
    expect(broken).toEqual([]);
  });

  test("make no cycles, type-only ones included", () => {
    const done = new Set<string>();
    const cycles: string[] = [];
    const visit = (file: string, path: string[]): void => {
      if (path.includes(file)) {
        cycles.push([...path.slice(path.indexOf(file)), file].join(" → "));
        return;
      }
      if (done.has(file)) return;
      for (const target of importsOf(file)) visit(target, [...path, file]);
      done.add(file);
    };
    for (const file of TS_FILES) visit(file, []);
    expect(cycles).toEqual([]);
  });
});

describe("files", () => {
  const all = [
    ...TS_FILES,
    ...sources("kernel", /\.py$/),
    ...sources("test", /\.(ts|py)$/),
    ...sources("scripts", /(^|\/)[^.]+$|\.(ts|py)$/),
  ];

  test(`have at most ${MAX_LINES} lines`, () => {
    const long = all
      .map((file) => ({
        file,
        lines: readFileSync(join(ROOT, file), "utf8").split("\n").length - 1,
      }))
      .filter(({ lines }) => lines > MAX_LINES);
    expect(long).toEqual([]);
  });

  test(`have functions of at most ${MAX_FUNCTION_LINES} lines`, () => {
    const long = TS_FILES.flatMap((file) => longFunctions(file, text.get(file) as string));
    expect(long).toEqual([]);
  });

  test("are named in kebab-case", () => {
    const odd = TS_FILES.filter(
      (file) => !/^src\/([a-z]+\/)?[a-z0-9]+(-[a-z0-9]+)*\.ts$/.test(file),
    );
    expect(odd).toEqual([]);
  });

  test("have no default export and are no barrels", () => {
    const odd = TS_FILES.filter(
      (file) => /^export default/m.test(text.get(file) as string) || file.endsWith("/index.ts"),
    );
    expect(odd).toEqual([]);
  });
});

/** Functions and methods that are too long, by the indentation that the formatter guarantees. */
function longFunctions(file: string, source: string): string[] {
  const long: string[] = [];
  const lines = source.split("\n");
  const opening =
    /^( *)(?:export )?(?:static |async |get |private )*(?:function\*? \w+|#?\w+(?:<.*>)?\(|\*?#?\w+\().*$/;
  for (const [index, line] of lines.entries()) {
    const indent = opening.exec(line)?.[1];
    // A signature without a body is no function.
    if (/[;,]$/.test(line)) continue;
    if (
      indent === undefined ||
      indent.length > 2 ||
      /^ *(if|for|while|switch|return|test|describe)\b/.test(line)
    )
      continue;
    const end = lines.findIndex((other, at) => at > index && other.startsWith(`${indent}}`));
    if (end - index + 1 > MAX_FUNCTION_LINES)
      long.push(`${file}:${index + 1} (${end - index + 1} lines)`);
  }
  return long;
}

describe("code", () => {
  test("reads process.env only in config.ts", () => {
    const readers = TS_FILES.filter((file) =>
      /\bprocess\.env\b|\bBun\.env\b/.test(withoutComments(file)),
    );
    expect(readers).toEqual(["src/config.ts"]);
  });

  test("writes to the console and the standard streams only in cli/ and main.ts", () => {
    const writers = TS_FILES.filter((file) =>
      /\bconsole\.|process\.std(out|err)/.test(withoutComments(file)),
    );
    expect(writers.filter((file) => layerOf(file) !== "cli" && file !== "src/main.ts")).toEqual([]);
  });

  test("has no catch that is silent", () => {
    const silent = TS_FILES.flatMap((file) =>
      [...withoutComments(file).matchAll(/catch\s*(?:\([^)]*\))?\s*\{\s*\}/g)].map(() => file),
    );
    expect(silent).toEqual([]);
  });

  test("has a doc comment on every exported function and class", () => {
    const bare = TS_FILES.flatMap((file) =>
      [
        ...(text.get(file) as string).matchAll(
          /(^|\n)(.*)\n+export (?:abstract )?(?:async )?(?:function\*?|class) (\w+)/g,
        ),
      ]
        .filter(([, , before]) => !/\*\/\s*$/.test(before as string))
        .map(([, , , name]) => `${file}: ${name}`),
    );
    expect(bare).toEqual([]);
  });

  test("holds no marker of unfinished work", () => {
    const marked = TS_FILES.filter((file) =>
      /\b(TODO|FIXME|XXX|HACK)\b/.test(text.get(file) as string),
    );
    expect(marked).toEqual([]);
  });
});

function withoutComments(file: string): string {
  return (text.get(file) as string)
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "$1");
}
