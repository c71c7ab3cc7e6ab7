/** Finding Pythons on this machine and learning what they are. */

import { existsSync, readdirSync, statSync } from "node:fs";
import { delimiter, join } from "node:path";
import { throwIfAborted } from "../async.ts";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";
import { runPython } from "./python-run.ts";

const INSPECT_TIMEOUT_MS = 30_000;
const OLDEST_MINOR = 10;
/** Newest first; a Python newer than all of these is still found as `python3`. */
const KNOWN_MINORS = [16, 15, 14, 13, 12, 11, 10];

/** Where systems keep their Python, for a PATH that does not say so. */
const SYSTEM_FOLDERS = ["/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/** What a Python says of one line of `kernel/requirements.txt`. */
export interface RequirementState {
  readonly name: string;
  readonly minimum: string;
  readonly optional: boolean;
  /** The installed version, if its package says. */
  readonly found: string | null;
  /** A phrase that follows the name, such as "is missing"; null when it is met. */
  readonly problem: string | null;
}

/** What `kernel/inspect_environment.py` tells of a Python 3.10 or newer. */
export interface Interpreter {
  /** The path that it was asked by; a virtual environment is known by it, so it is never resolved. */
  readonly path: string;
  /** The Python that virtual environments are to be made from. */
  readonly baseExecutable: string;
  readonly version: readonly [number, number, number];
  readonly implementation: string;
  /** In the names of compiled files: `cpython-311`. */
  readonly cacheTag: string;
  /** As in `CarriedWheels.platform`. */
  readonly platform: string;
  readonly freeThreaded: boolean;
  readonly sitePackages: string;
  /** Modules of the standard library that some systems split off and that we need. */
  readonly lacks: readonly string[];
  readonly requirements: readonly RequirementState[];
}

/** How to ask a Python about itself. */
export interface InspectOptions {
  /** The folder with `inspect_environment.py` and `requirements.txt`. */
  readonly root: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Import the required packages too; slower, but finds broken ones. */
  readonly imports?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A Python, or why it can't be used: a phrase that follows its path. */
export type Inspection = { readonly interpreter: Interpreter } | { readonly problem: string };

/** `3.11.2`. */
export function versionText(version: readonly number[]): string {
  return version.join(".");
}

/** The requirements that are not met, as phrases: "ipykernel is missing". */
export function unmetRequirements(interpreter: Interpreter): string[] {
  return interpreter.requirements
    .filter((state) => state.problem !== null && !state.optional)
    .map((state) => `${state.name} ${state.problem}`);
}

/** Asks a Python what it is. Only an abort throws. */
export async function inspectInterpreter(
  path: string,
  options: InspectOptions,
): Promise<Inspection> {
  throwIfAborted(options.signal);
  const misfit = notAProgram(path);
  if (misfit) return { problem: misfit };
  try {
    const answer = (await runPython(
      path,
      join(options.root, "inspect_environment.py"),
      {
        requirements: join(options.root, "requirements.txt"),
        imports: options.imports ?? false,
      },
      { env: options.env, signal: options.signal, timeoutMs: INSPECT_TIMEOUT_MS },
    )) as Answer;
    const [major, minor] = answer.version;
    if (major !== 3 || minor < OLDEST_MINOR) {
      return { problem: `is Python ${versionText(answer.version)}, and 3.10 or newer is needed` };
    }
    return { interpreter: interpreterOf(path, answer as Answer & NewAnswer) };
  } catch (error) {
    throwIfAborted(options.signal);
    return { problem: errorMessage(error) };
  }
}

/** What any Python answers. */
interface Answer {
  version: [number, number, number];
}

/** What a Python of a supported version answers besides. */
interface NewAnswer {
  base_executable: string;
  implementation: string;
  cache_tag: string;
  platform: string;
  free_threaded: boolean;
  site_packages: string;
  lacks: string[];
  requirements: RequirementState[];
}

function interpreterOf(path: string, answer: Answer & NewAnswer): Interpreter {
  return {
    path,
    baseExecutable: answer.base_executable,
    version: answer.version,
    implementation: answer.implementation,
    cacheTag: answer.cache_tag,
    platform: answer.platform,
    freeThreaded: answer.free_threaded,
    sitePackages: answer.site_packages,
    lacks: answer.lacks,
    requirements: answer.requirements,
  };
}

function notAProgram(path: string): string | undefined {
  try {
    if (!statSync(path).isDirectory()) return undefined;
  } catch (error) {
    return `can't be found (${errorMessage(error)})`;
  }
  const inside = ["bin/python", "bin/python3"].map((name) => join(path, name)).find(existsSync);
  return `is a folder, not a program${inside ? `; did you mean ${inside}?` : ""}`;
}

/**
 * Paths of Pythons worth asking, best first: `python3` of PATH, then numbered ones of PATH, newest
 * first, then those that version managers and systems keep elsewhere.
 */
export function candidatePythons(
  env: Readonly<Record<string, string | undefined>>,
  systemFolders: readonly string[] = SYSTEM_FOLDERS,
): string[] {
  const home = env["HOME"];
  const names = ["python3", ...KNOWN_MINORS.map((minor) => `python3.${minor}`), "python"];
  const managed = [
    env["PYENV_ROOT"] ? join(env["PYENV_ROOT"], "versions") : home && join(home, ".pyenv/versions"),
    env["UV_PYTHON_INSTALL_DIR"] || (home && join(home, ".local/share/uv/python")),
  ];
  const found = [
    ...names.map((name) => findProgram(name, env)),
    ...managed.flatMap((folder) => (folder ? versionsIn(folder) : [])),
    ...systemFolders.map((folder) => join(folder, "python3")),
  ];
  return [...new Set(found.filter((path) => path !== undefined))].filter(isCandidate);
}

/** The first file of this name on PATH, as a shell would find it. */
export function findProgram(
  name: string,
  env: Readonly<Record<string, string | undefined>>,
): string | undefined {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder.startsWith("/"));
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
}

function versionsIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter((name) => /3\.1\d/.test(name))
      .sort((a, b) => b.localeCompare(a, "en", { numeric: true }))
      .map((name) => join(folder, name, "bin/python3"));
  } catch (error) {
    debug("kernel", `no Pythons in ${folder}`, error);
    return [];
  }
}

/** On macOS without developer tools, running /usr/bin/python3 opens a window; it is too old anyway. */
function isCandidate(path: string): boolean {
  return existsSync(path) && !(process.platform === "darwin" && path === "/usr/bin/python3");
}
