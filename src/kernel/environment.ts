/**
 * The Python environment that kernels run in: found, or built on first use.
 *
 * A warm start reads a stamp and compares a few file times. Otherwise, in this
 * order: an environment that is there and good (whoever made it), one built
 * from the carried wheels, a Python that has what is needed, one built by uv,
 * one built by pip. Nothing that works is ever replaced, and of what somebody
 * else made nothing is ever removed.
 */

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { throwIfAborted } from "../async.ts";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";
import type { KernelAssets } from "./assets.ts";
import { choosePythons, findUv, pythonPath } from "./base-python.ts";
import {
  type DataFolderOptions,
  dataFolders,
  prepareDataFolder,
  writableDataFolder,
} from "./data-folder.ts";
import {
  buildEnvironment,
  buildFromWheels,
  type BuildMethod,
  buildWithPip,
  buildWithUv,
  compileRuntime,
  installPackages,
  isEmptyFolder,
  wheelsMisfit,
} from "./environment-build.ts";
import {
  EnvironmentBuildError,
  PackageInstallError,
  UnusablePythonError,
} from "./environment-errors.ts";
import {
  type EnvironmentStamp,
  isUnchanged,
  readStamp,
  resolved,
  venvPython,
  writeStamp,
} from "./environment-stamp.ts";
import {
  inspectInterpreter,
  type Interpreter,
  unmetRequirements,
  versionText,
} from "./interpreter.ts";
import { acquireVenvLock } from "./venv-lock.ts";

const LOCK_WAIT_MS = 600_000;

/** Options of {@link ensurePythonEnvironment}; `home` is the program's own, `~/.prime/agent`. */
export interface EnvironmentOptions extends DataFolderOptions {
  readonly assets: KernelAssets;
  /** Where the managed environment is (`PRIME_AGENT_KERNEL_VENV`); default `<home>/kernel-venv`. */
  readonly venvDir?: string | undefined;
  /** The Python to make it from (`--python`): a path, or a name on PATH. */
  readonly python?: string | undefined;
  /** A Python to use as it is (`PRIME_AGENT_KERNEL_PYTHON`); then nothing is built or installed. */
  readonly pythonOverride?: string | undefined;
  /** Packages to add to the managed environment (`setup --packages`); needs a package index. */
  readonly extraPackages?: readonly string[];
  /** The longest wait for another process that builds the same environment. */
  readonly lockWaitMs?: number;
  /** Told in one line what takes time or is not as usual. */
  onProgress?(line: string): void;
  readonly signal?: AbortSignal | undefined;
}

/** A Python that has what the kernel needs. */
export interface PythonEnvironment {
  /** Absolute path of the interpreter. */
  readonly python: string;
  readonly version: string;
  /** In the names of its compiled files: `cpython-311`. */
  readonly cacheTag: string;
  /** `managed`: made by this program; `foreign`: made by another and good. */
  readonly source: "override" | "managed" | "foreign";
  /** Absent when the interpreter is not that of a virtual environment of ours to use. */
  readonly venvDir?: string;
  /** Whether this call built it. */
  readonly built: boolean;
}

/** The options, with what is derived from them once. */
interface Request extends EnvironmentOptions {
  readonly requirementsHash: string;
  /** `python` as an absolute path, links resolved. */
  readonly requestedPython: string | undefined;
  /** Distinguishes the environments of versions and Pythons that can't share one. */
  readonly key: string;
}

/**
 * Finds or builds the environment. Safe to call from several processes at once: one builds, the
 * others wait and use the result.
 *
 * @throws NoPythonError, UnusablePythonError, EnvironmentBuildError, EnvironmentLockedError,
 * NoWritableFolderError, PackageInstallError, AbortedError; whatever worked before still does.
 */
export async function ensurePythonEnvironment(
  options: EnvironmentOptions,
): Promise<PythonEnvironment> {
  const environment = options.pythonOverride
    ? await useOverride(options.pythonOverride, options)
    : await useManaged(makeRequest(options));
  await compileRuntime(environment.python, environment.cacheTag, options);
  return environment;
}

async function useOverride(named: string, options: EnvironmentOptions): Promise<PythonEnvironment> {
  const python = pythonPath(named, options.env);
  const inspection = await inspect(python, false, options);
  const problems =
    "problem" in inspection ? [inspection.problem] : unmetRequirements(inspection.interpreter);
  if ("problem" in inspection || problems.length > 0) {
    const unmet = "problem" in inspection ? [] : unmetPins(inspection.interpreter);
    const hint =
      unmet.length > 0
        ? `run ${python} -m pip install ${unmet.join(" ")}`
        : "name a Python 3.10 or newer, or unset the variable to have an environment made";
    throw new UnusablePythonError("PRIME_AGENT_KERNEL_PYTHON", python, problems, hint);
  }
  if (options.extraPackages?.length) {
    const reason = `PRIME_AGENT_KERNEL_PYTHON (${python}) is used as it is`;
    throw new PackageInstallError(options.extraPackages, reason);
  }
  const { cacheTag, version } = inspection.interpreter;
  return { python, version: versionText(version), cacheTag, source: "override", built: false };
}

function unmetPins(interpreter: Interpreter): string[] {
  return interpreter.requirements
    .filter((state) => state.problem !== null)
    .map((state) => `'${state.name}>=${state.minimum}'`);
}

function makeRequest(options: EnvironmentOptions): Request {
  const requirements = readFileSync(join(options.assets.root, "requirements.txt"));
  const requirementsHash = shortHash(requirements);
  const requestedPython = options.python && resolved(pythonPath(options.python, options.env));
  return {
    ...options,
    requirementsHash,
    requestedPython: requestedPython || undefined,
    key: shortHash(`${requirementsHash} ${requestedPython ?? ""}`),
  };
}

async function useManaged(request: Request): Promise<PythonEnvironment> {
  const environment = await findOrBuild(request);
  if (request.extraPackages?.length) await addPackages(environment, request.extraPackages, request);
  return environment;
}

/** The first folder that has an environment or can get one. */
async function findOrBuild(request: Request): Promise<PythonEnvironment> {
  const passedOver: string[] = [];
  for (const folder of venvFolders(request)) {
    const found = findReady(folder, request) ?? (await adopt(folder, request));
    if (found) return found;
    if (canBuildIn(folder, request)) {
      for (const path of passedOver) request.onProgress?.(`${path} can't be written to.`);
      return await build(folder, request);
    }
    passedOver.push(folder);
  }
  const pythons = await choosePythons(request);
  const asItIs = pythons.find((python) => unmetRequirements(python).length === 0);
  if (asItIs) return useAsItIs(asItIs, request);
  writableDataFolder("the Python environment", request);
  throw new EnvironmentBuildError(venvFolders(request).join(", "), ["no folder can be written to"]);
}

function venvFolders(request: Request): string[] {
  const managed = dataFolders(request).map((folder) => join(folder, "kernel-venv"));
  return request.venvDir ? [request.venvDir, ...managed] : managed;
}

/** Where to build when the folder holds something that must stay. */
function beside(folder: string, request: Request): string {
  return `${folder}-${request.key}`;
}

/** A stamped environment that is unchanged: the warm start. */
function findReady(folder: string, request: Request): PythonEnvironment | undefined {
  for (const venvDir of [folder, beside(folder, request)]) {
    const stamp = readStamp(venvDir);
    if (!stamp?.meets.includes(request.requirementsHash)) continue;
    if (isRequested(stamp, request) && isUnchanged(venvDir, stamp)) {
      return fromStamp(venvDir, stamp, false);
    }
  }
  return undefined;
}

/** An environment that is there without a current stamp, if it has what is needed. */
async function adopt(folder: string, request: Request): Promise<PythonEnvironment | undefined> {
  for (const venvDir of [folder, beside(folder, request)]) {
    if (!existsSync(venvDir) || isEmptyFolder(venvDir)) continue;
    const inspection = await inspect(venvPython(venvDir), true, request);
    if ("problem" in inspection) {
      request.onProgress?.(`${venvDir} is not used: its Python ${inspection.problem}.`);
      continue;
    }
    const { interpreter } = inspection;
    const unmet = unmetRequirements(interpreter);
    if (unmet.length > 0) {
      request.onProgress?.(`${venvDir} is not used: ${unmet.join(", ")}.`);
    } else if (isMadeFromRequested(interpreter, request)) {
      return remember(venvDir, interpreter, request);
    }
  }
  return undefined;
}

function remember(venvDir: string, interpreter: Interpreter, request: Request): PythonEnvironment {
  try {
    const stamp = writeStamp(venvDir, interpreter, { meets: request.requirementsHash });
    return fromStamp(venvDir, stamp, false);
  } catch (error) {
    debug("kernel", `cannot stamp ${venvDir}, so it is checked at each start`, error);
    const source = readStamp(venvDir)?.ours ? "managed" : "foreign";
    return { ...useAsItIs(interpreter, request), source, venvDir };
  }
}

async function build(folder: string, request: Request): Promise<PythonEnvironment> {
  const target = mayReplace(folder, request) ? folder : beside(folder, request);
  const lockFile = isEmptyFolder(target) ? join(target, ".lock") : `${target}.lock`;
  using _lock = await acquireVenvLock(lockFile, {
    ...request,
    waitMs: request.lockWaitMs ?? LOCK_WAIT_MS,
  });
  const builtMeanwhile = findReady(folder, request);
  if (builtMeanwhile) return builtMeanwhile;
  const [base, ...others] = await choosePythons(request);
  if (!base) throw new Error("unreachable: choosePythons gives at least one");
  const lost = readStamp(target)?.extraPackages ?? [];
  const environment = await tryMethods(target, [base, ...others], request);
  if (lost.length > 0) {
    const names = lost.join(",");
    request.onProgress?.(`Packages added earlier are to be added again: setup --packages ${names}`);
  }
  return environment;
}

/** Tries one way after the other; each is announced in one line, and so is its failure. */
async function tryMethods(
  target: string,
  pythons: readonly [Interpreter, ...Interpreter[]],
  request: Request,
): Promise<PythonEnvironment> {
  const [base] = pythons;
  const started = performance.now();
  const failures: string[] = [];
  const attempt = async (name: string, method: BuildMethod) => {
    const version = versionText(base.version);
    request.onProgress?.(`Building the Python environment ${target} (Python ${version}, ${name})…`);
    try {
      await buildEnvironment(method, { ...request, base, folder: target });
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      request.onProgress?.(`The Python environment is ready after ${seconds} s.`);
      const stamp = readStamp(target);
      if (!stamp) throw new Error(`${target} was removed`);
      return fromStamp(target, stamp, true);
    } catch (error) {
      throwIfAborted(request.signal);
      failures.push(`${name}: ${errorMessage(error)}`);
      request.onProgress?.(`That failed: ${errorMessage(error).split("\n")[0]}`);
      return undefined;
    }
  };

  const misfit = wheelsMisfit(request.assets, base);
  if (misfit) failures.push(`carried packages: ${misfit}`);
  const carried = misfit ? undefined : await attempt("carried packages", buildFromWheels);
  if (carried) return carried;
  const complete = pythons.find((python) => unmetRequirements(python).length === 0);
  if (complete) return useAsItIs(complete, request);
  const uv = findUv(request.env);
  if (!uv) failures.push("uv: not found");
  const fetched = uv ? await attempt("packages from uv", buildWithUv(uv)) : undefined;
  const environment = fetched ?? (await attempt("packages from pip", buildWithPip));
  if (environment) return environment;
  throw new EnvironmentBuildError(target, failures);
}

function useAsItIs(interpreter: Interpreter, request: Request): PythonEnvironment {
  request.onProgress?.(`Using ${interpreter.path}, which has what the kernel needs, as it is.`);
  return {
    python: interpreter.path,
    version: versionText(interpreter.version),
    cacheTag: interpreter.cacheTag,
    source: "foreign",
    built: false,
  };
}

/** Ours alone, and only what no version of this program can use. */
function mayReplace(folder: string, request: Request): boolean {
  if (!existsSync(folder) || isEmptyFolder(folder)) return true;
  const stamp = readStamp(folder);
  if (!stamp?.ours) return false;
  const broken = !existsSync(venvPython(folder));
  return broken || (stamp.meets.includes(request.requirementsHash) && isRequested(stamp, request));
}

function canBuildIn(folder: string, request: Request): boolean {
  const target = mayReplace(folder, request) ? folder : beside(folder, request);
  try {
    prepareDataFolder(isEmptyFolder(target) ? target : dirname(target));
    return true;
  } catch (error) {
    debug("kernel", `cannot build ${target}`, error);
    return false;
  }
}

async function addPackages(
  environment: PythonEnvironment,
  packages: readonly string[],
  request: Request,
): Promise<void> {
  const { venvDir } = environment;
  if (!venvDir) throw new PackageInstallError(packages, `${environment.python} is used as it is`);
  const missing = packages.filter((name) => !readStamp(venvDir)?.extraPackages.includes(name));
  if (missing.length === 0) return;
  request.onProgress?.(`Installing ${missing.join(", ")}…`);
  try {
    await installPackages(venvDir, missing, findUv(request.env), request);
  } catch (error) {
    throwIfAborted(request.signal);
    throw new PackageInstallError(missing, errorMessage(error));
  }
  const inspection = await inspect(environment.python, true, request);
  if ("problem" in inspection) throw new PackageInstallError(missing, inspection.problem);
  const unmet = unmetRequirements(inspection.interpreter);
  if (unmet.length > 0) throw new PackageInstallError(missing, `afterwards ${unmet.join(", ")}`);
  writeStamp(venvDir, inspection.interpreter, {
    meets: request.requirementsHash,
    extraPackages: missing,
  });
}

function inspect(path: string, imports: boolean, options: EnvironmentOptions) {
  const { assets, env, signal } = options;
  return inspectInterpreter(path, { root: assets.root, env, imports, signal });
}

function isRequested(stamp: EnvironmentStamp, request: Request): boolean {
  const wanted = request.requestedPython;
  return wanted === undefined || [stamp.basePython, stamp.requestedPython].includes(wanted);
}

function isMadeFromRequested(interpreter: Interpreter, request: Request): boolean {
  const wanted = request.requestedPython;
  return wanted === undefined || resolved(interpreter.baseExecutable) === wanted;
}

function fromStamp(venvDir: string, stamp: EnvironmentStamp, built: boolean): PythonEnvironment {
  const { version, cacheTag } = stamp;
  const source = stamp.ours ? "managed" : "foreign";
  return { python: venvPython(venvDir), version, cacheTag, source, venvDir, built };
}

function shortHash(text: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 8);
}
