/**
 * The Python side of this program and the carried wheels. In the executable
 * they are embedded, where Python can't run them, so they are unpacked once
 * into a folder named by their content: an upgraded program never runs old
 * files, and two versions do not fight. Run from source, `kernel/` is used as
 * it is.
 */

import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { debug } from "../log.ts";
import { type DataFolderOptions, dataFolders, writableDataFolder } from "./data-folder.ts";
import type { CarriedWheels } from "./wheels.ts";

const DESCRIPTION = "carried/assets.json";
const WHEELS_DESCRIPTION = "carried/wheels.json";
const WHEELS_ARCHIVE = "carried/wheels.tar.zst";
const KERNEL_PREFIX = "kernel/";

/** What `kernel/` is at run time. */
export interface KernelAssets {
  /** The folder with `launcher.py`. */
  readonly root: string;
  /** Hash of all files below `root`; `source` when run from source. */
  readonly hash: string;
  /** Whether `root` is a copy of ours, into which compiled files may be written. */
  readonly unpacked: boolean;
  /** Undefined when run from source and `scripts/build` has not packed them yet. */
  readonly wheels: CarriedArchive | undefined;
}

/** The carried wheels, read only when an environment is built. */
export interface CarriedArchive {
  readonly description: CarriedWheels;
  readArchive(): Promise<Uint8Array<ArrayBuffer>>;
}

/** One embedded file; its path is as embedded: `kernel/launcher.py`, `carried/wheels.tar.zst`. */
export interface AssetFile {
  readonly path: string;
  readonly size: number;
  readonly sha256: string;
  readonly executable?: boolean;
}

/** The list of the embedded files, made by the build; `carried/assets.json`. */
export interface AssetsDescription {
  /** Over the paths and contents of the files below `kernel/`. */
  readonly hash: string;
  readonly files: readonly AssetFile[];
}

/** Options of {@link loadAssets}. */
export interface LoadAssetsOptions extends DataFolderOptions {
  onProgress?(line: string): void;
}

/**
 * Makes the Python side available as files.
 *
 * @throws NoWritableFolderError; Error when the executable is damaged.
 */
export async function loadAssets(options: LoadAssetsOptions): Promise<KernelAssets> {
  const embedded = embeddedFiles();
  const description = embedded.get(DESCRIPTION);
  if (!description) return await assetsFromSource();
  return await unpackAssets(embedded, (await description.json()) as AssetsDescription, options);
}

/** Unpacks `embedded` unless it is already there; separate so that tests can bring files of their own. */
export async function unpackAssets(
  embedded: ReadonlyMap<string, Blob>,
  description: AssetsDescription,
  options: LoadAssetsOptions,
): Promise<KernelAssets> {
  const name = join("runtime", description.hash);
  const known = dataFolders(options).map((folder) => join(folder, name));
  const root =
    known.find((folder) => isComplete(folder, description)) ??
    (await unpack(embedded, description, name, options));
  return {
    root,
    hash: description.hash,
    unpacked: true,
    wheels: await carriedArchive(embedded.get(WHEELS_DESCRIPTION), embedded.get(WHEELS_ARCHIVE)),
  };
}

/**
 * Compares the embedded files with the list that they were built from, for `doctor`; one line for
 * each difference. Run from source there is nothing to compare.
 */
export async function checkAssets(
  embedded: ReadonlyMap<string, Blob> = embeddedFiles(),
): Promise<string[]> {
  const list = embedded.get(DESCRIPTION);
  if (!list) return embedded.size === 0 ? [] : [`${DESCRIPTION} is missing`];
  const { files } = (await list.json()) as AssetsDescription;
  const problems: string[] = [];
  for (const { path, sha256 } of files) {
    const blob = embedded.get(path);
    if (!blob) problems.push(`${path} is missing`);
    else if (digest(await blob.bytes()) !== sha256) problems.push(`${path} is damaged`);
  }
  const listed = new Set([DESCRIPTION, ...files.map((file) => file.path)]);
  const extra = [...embedded.keys()].filter((path) => isAsset(path) && !listed.has(path));
  return [...problems, ...extra.map((path) => `${path} is not on the list`)];
}

/** The files that this executable carries, by path; none when run from source. */
export function embeddedFiles(): Map<string, Blob> {
  return new Map(Bun.embeddedFiles.map((file) => [(file as Blob & { name: string }).name, file]));
}

function isAsset(path: string): boolean {
  return path.startsWith(KERNEL_PREFIX) || path.startsWith("carried/");
}

/** Files may vanish one by one from a folder for temporary files; sizes are cheap to compare. */
function isComplete(root: string, description: AssetsDescription): boolean {
  return kernelFiles(description).every(({ path, size }) => {
    try {
      return statSync(join(root, unpackedPath(path))).size === size;
    } catch (error) {
      debug("kernel", `${path} is not in ${root}`, error);
      return false;
    }
  });
}

function kernelFiles(description: AssetsDescription): AssetFile[] {
  return description.files.filter((file) => file.path.startsWith(KERNEL_PREFIX));
}

function unpackedPath(path: string): string {
  return path.slice(KERNEL_PREFIX.length);
}

/** Several may unpack at once: each into a folder of its own, and the first rename wins. */
async function unpack(
  embedded: ReadonlyMap<string, Blob>,
  description: AssetsDescription,
  name: string,
  options: LoadAssetsOptions,
): Promise<string> {
  const data = writableDataFolder("the runtime", options);
  if (data !== options.home) {
    options.onProgress?.(`${options.home} can't be written to; using ${data} instead.`);
  }
  const root = join(data, name);
  mkdirSync(dirname(root), { recursive: true, mode: 0o700 });
  const stage = mkdtempSync(`${root}.new-`);
  try {
    chmodSync(stage, 0o700);
    for (const { path, executable } of kernelFiles(description)) {
      const blob = embedded.get(path);
      if (!blob) throw new Error(`this executable is damaged: it has no ${path}`);
      const file = join(stage, unpackedPath(path));
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
      writeFileSync(file, await blob.bytes(), { mode: executable ? 0o700 : 0o600 });
    }
    putInPlace(stage, root, description);
  } finally {
    rmSync(stage, { recursive: true, force: true });
  }
  return root;
}

function putInPlace(stage: string, root: string, description: AssetsDescription): void {
  if (existsSync(root)) {
    if (isComplete(root, description)) return;
    const damaged = mkdtempSync(`${root}.old-`);
    renameSync(root, join(damaged, "root"));
    rmSync(damaged, { recursive: true, force: true });
  }
  try {
    renameSync(stage, root);
  } catch (error) {
    if (!isComplete(root, description)) throw error;
    debug("kernel", "another process unpacked the same files first", error);
  }
}

async function assetsFromSource(): Promise<KernelAssets> {
  const repository = join(import.meta.dir, "../..");
  const packed = join(repository, ".cache/wheels", `${process.platform}-${process.arch}`);
  return {
    root: join(repository, "kernel"),
    hash: "source",
    unpacked: false,
    wheels: await carriedArchive(
      Bun.file(join(packed, "wheels.json")),
      Bun.file(join(packed, "wheels.tar.zst")),
    ),
  };
}

async function carriedArchive(
  description: Blob | undefined,
  archive: Blob | undefined,
): Promise<CarriedArchive | undefined> {
  if (!description || !archive) return undefined;
  try {
    return {
      description: (await description.json()) as CarriedWheels,
      readArchive: () => archive.bytes(),
    };
  } catch (error) {
    debug("kernel", "no wheels are carried", error);
    return undefined;
  }
}

function digest(bytes: Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}
