/**
 * Building a virtual environment: beside its place, then one rename, so that a
 * failed or killed build leaves whatever was there as it was. The carried
 * wheels need no network; uv and pip are for Pythons that those do not fit.
 */

import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { basename, dirname, join } from "node:path";
import { throwIfAborted } from "../async.ts";
import { debug } from "../log.ts";
import { processStartTime } from "../process-identity.ts";
import type { KernelAssets } from "./assets.ts";
import { venvPython, writeStamp } from "./environment-stamp.ts";
import {
  inspectInterpreter,
  type Interpreter,
  unmetRequirements,
  versionText,
} from "./interpreter.ts";
import { runProgram, runPython } from "./python-run.ts";
import { includesPython, unpackWheels } from "./wheels.ts";

const COMPILE_TIMEOUT_MS = 120_000;
const INSTALL_TIMEOUT_MS = 600_000;
/** More processes than this only wait for the disk. */
const MAX_COMPILERS = 4;

/** What a build needs to know. */
export interface BuildOptions {
  readonly assets: KernelAssets;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal | undefined;
  /** The Python to make the environment from. */
  readonly base: Interpreter;
  /** Where the environment is to be. What is there is replaced at the end of a successful build. */
  readonly folder: string;
  /** Goes into the stamp. */
  readonly requirementsHash: string;
  readonly requestedPython?: string | undefined;
}

/** Fills a folder with an environment; the folder is not in its place yet. */
export type BuildMethod = (stage: string, options: BuildOptions) => Promise<void>;

/**
 * Builds with `method`, checks the result by importing what the kernel needs, and puts it in place.
 * The caller holds the lock of `folder`.
 *
 * @throws Error with a one-line reason; AbortedError. What was in `folder` is then still there.
 */
export async function buildEnvironment(method: BuildMethod, options: BuildOptions): Promise<void> {
  const stage = stageFolder(options.folder);
  removeLeftovers(options.folder);
  mkdirSync(dirname(stage), { recursive: true, mode: 0o700 });
  try {
    await method(stage, options);
    await compile(stage, options);
    const interpreter = await inspectStage(stage, options);
    replaceIn(stage, options.folder);
    writeStamp(stage, interpreter, {
      ours: true,
      meets: options.requirementsHash,
      finalFolder: options.folder,
      requestedPython: options.requestedPython,
    });
    throwIfAborted(options.signal);
    putInPlace(stage, options.folder);
  } finally {
    rmSync(stage, { recursive: true, force: true });
    // Once more: what a killed builder had started may have ended only after the first look.
    removeLeftovers(options.folder);
  }
}

/** Why the carried wheels are no good for this Python, or undefined when they fit. */
export function wheelsMisfit(assets: KernelAssets, base: Interpreter): string | undefined {
  const { wheels } = assets;
  const [, minor] = base.version;
  if (!wheels) return "none are carried";
  if (base.implementation !== "CPython") return `they are for CPython, not ${base.implementation}`;
  if (base.freeThreaded) return "they are not for a free-threaded Python";
  if (base.platform !== wheels.description.platform) {
    return `they are for ${wheels.description.platform}, and this Python is for ${base.platform}`;
  }
  const fits = wheels.description.groups.some((group) => includesPython(group, minor));
  return fits ? undefined : `they are not for Python ${versionText(base.version)}`;
}

/** Unpacks the carried wheels: no network, no pip, no uv. */
export const buildFromWheels: BuildMethod = async (stage, options) => {
  const { wheels } = options.assets;
  if (!wheels) throw new Error("no wheels are carried");
  const [sitePackages, archive] = await Promise.all([
    createEmpty(stage, options),
    wheels.readArchive(),
  ]);
  unpackWheels(archive, wheels.description, options.base.version[1], sitePackages);
};

/** Lets uv install from its package index. */
export function buildWithUv(uv: string): BuildMethod {
  return async (stage, options) => {
    const base = options.base.baseExecutable;
    await install([uv, "venv", "--quiet", "--no-project", "--python", base, stage], options);
    await install([...uvInstall(uv, stage), "pip", "-r", requirementsFile(options)], options);
  };
}

/** Lets the pip of the chosen Python install from its package index. */
export const buildWithPip: BuildMethod = async (stage, options) => {
  await createEmpty(stage, options);
  const python = venvPython(stage);
  let pip = [python, "-E", "-s", "-m", "pip"];
  try {
    await install([python, "-E", "-s", "-m", "ensurepip", "--default-pip"], options);
  } catch (error) {
    throwIfAborted(options.signal);
    debug("kernel", "no ensurepip (Debian splits it off); using pip from outside", error);
    pip = [options.base.baseExecutable, "-E", "-s", "-m", "pip", "--python", python];
  }
  await install([...pip, ...PIP_INSTALL, "-r", requirementsFile(options)], options);
};

/** Few retries: behind a proxy that refuses, the default would take most of a minute. */
const PIP_INSTALL = [
  ...["install", "--quiet", "--disable-pip-version-check", "--no-input"],
  ...["--retries", "1"],
];

/** Adds packages to a finished environment, with uv if it is there, else with pip. */
export async function installPackages(
  venv: string,
  packages: readonly string[],
  uv: string | undefined,
  options: Pick<BuildOptions, "env" | "signal">,
): Promise<void> {
  const pip = [venvPython(venv), "-E", "-s", "-m", "pip", ...PIP_INSTALL];
  await install([...(uv ? uvInstall(uv, venv) : pip), "--", ...packages], options);
}

function uvInstall(uv: string, venv: string): string[] {
  return [uv, "pip", "install", "--quiet", "--python", venvPython(venv)];
}

function requirementsFile(options: BuildOptions): string {
  return join(options.assets.root, "requirements.txt");
}

/** Settings that would send packages elsewhere than into the environment do not reach the installer. */
async function install(
  command: readonly string[],
  options: Pick<BuildOptions, "env" | "signal">,
): Promise<void> {
  const { PYTHONHOME, PYTHONPATH, PIP_TARGET, PIP_PREFIX, PIP_ROOT, VIRTUAL_ENV, ...env } =
    options.env;
  debug("kernel", `running ${command.join(" ")}`);
  await runProgram(command, {
    env: { ...env, PIP_USER: "0" },
    signal: options.signal,
    timeoutMs: INSTALL_TIMEOUT_MS,
  });
}

/** Makes an environment without packages and gives its site-packages folder. */
async function createEmpty(stage: string, options: BuildOptions): Promise<string> {
  const script = join(options.assets.root, "build_environment.py");
  const answer = await runPython(
    options.base.baseExecutable,
    script,
    { action: "create", folder: stage },
    { env: options.env, signal: options.signal, timeoutMs: COMPILE_TIMEOUT_MS },
  );
  return (answer as { site_packages: string }).site_packages;
}

/** Compiles what a kernel imports, since it may run where nothing can be written any more. */
async function compile(stage: string, options: BuildOptions): Promise<void> {
  const { assets, base, folder } = options;
  const runtime = assets.unpacked ? { [assets.root]: assets.root } : {};
  await compileFolders(venvPython(stage), { [stage]: folder, ...runtime }, options);
  if (assets.unpacked) writeFileSync(compiledMarker(assets, base.cacheTag), "");
}

/** Compiles an unpacked runtime for a Python that has not run it before. A failure costs only time. */
export async function compileRuntime(
  python: string,
  cacheTag: string,
  options: Pick<BuildOptions, "assets" | "env" | "signal">,
): Promise<void> {
  const { assets } = options;
  const marker = compiledMarker(assets, cacheTag);
  if (!assets.unpacked || existsSync(marker)) return;
  try {
    await compileFolders(python, { [assets.root]: assets.root }, options);
    writeFileSync(marker, "");
  } catch (error) {
    throwIfAborted(options.signal);
    debug("kernel", `cannot compile ${assets.root}`, error);
  }
}

function compiledMarker(assets: KernelAssets, cacheTag: string): string {
  return join(assets.root, `.compiled-${cacheTag}`);
}

/** Compiles all modules below the keys of `folders`, whose values are their final places. */
async function compileFolders(
  python: string,
  folders: Record<string, string>,
  options: Pick<BuildOptions, "assets" | "env" | "signal">,
): Promise<void> {
  const script = join(options.assets.root, "build_environment.py");
  const parts = Math.min(MAX_COMPILERS, availableParallelism());
  const run = { env: options.env, signal: options.signal, timeoutMs: COMPILE_TIMEOUT_MS };
  await Promise.all(
    Array.from({ length: parts }, (_, part) =>
      runPython(python, script, { action: "compile", folders, part, parts }, run),
    ),
  );
}

async function inspectStage(stage: string, options: BuildOptions): Promise<Interpreter> {
  const { env, signal, assets } = options;
  const inspection = await inspectInterpreter(venvPython(stage), {
    root: assets.root,
    imports: true,
    env,
    signal,
  });
  if ("problem" in inspection) throw new Error(`the new environment ${inspection.problem}`);
  const unmet = unmetRequirements(inspection.interpreter);
  if (unmet.length > 0) throw new Error(unmet.join("; "));
  return inspection.interpreter;
}

/** Beside the place; inside it where an empty folder was prepared, whose parent may be read-only. */
function stageFolder(folder: string): string {
  const inside = isEmptyFolder(folder);
  return inside ? join(folder, `.new-${process.pid}`) : `${folder}.new-${process.pid}`;
}

/** Whether there is a folder in which nothing of anybody's is. */
export function isEmptyFolder(folder: string): boolean {
  return existsSync(folder) && readdirSync(folder).every((name) => OWN_ENTRY.test(name));
}

const OWN_ENTRY = /^\.(new-\d+|lock.*)$/;

function removeLeftovers(folder: string): void {
  const parent = dirname(folder);
  const beside = existsSync(parent) ? readdirSync(parent).map((name) => join(parent, name)) : [];
  const inside = isEmptyFolder(folder) ? readdirSync(folder).map((name) => join(folder, name)) : [];
  for (const path of [...beside, ...inside]) {
    const [, name, pid] = /^(.*?)\.(?:new|old)-(\d+)$/.exec(basename(path)) ?? [];
    if (pid === undefined || (name !== "" && name !== basename(folder))) continue;
    const running = Number(pid) !== process.pid && processStartTime(Number(pid)) !== undefined;
    if (!running) rmSync(path, { recursive: true, force: true });
  }
}

/** Scripts and the configuration name their folder; what uv and pip wrote names the wrong one. */
function replaceIn(stage: string, folder: string): void {
  const scripts = readdirSync(join(stage, "bin")).map((name) => join(stage, "bin", name));
  for (const path of [join(stage, "pyvenv.cfg"), ...scripts]) {
    if (!lstatSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    if (!bytes.includes(basename(stage)) || bytes.includes(0)) continue;
    const text = bytes.toString("utf8").replaceAll(stage, folder);
    // The prompt that activation shows is the folder's name alone.
    writeFileSync(path, text.replaceAll(basename(stage), basename(folder)));
  }
}

function putInPlace(stage: string, folder: string): void {
  if (dirname(stage) === folder) {
    for (const name of readdirSync(stage)) renameSync(join(stage, name), join(folder, name));
    return;
  }
  const old = `${folder}.old-${process.pid}`;
  const replaces = existsSync(folder);
  if (replaces) renameSync(folder, old);
  try {
    renameSync(stage, folder);
  } catch (error) {
    if (replaces) renameSync(old, folder);
    throw error;
  }
  rmSync(old, { recursive: true, force: true });
}
