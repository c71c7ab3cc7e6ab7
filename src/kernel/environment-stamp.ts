/**
 * The stamp in a virtual environment: who made it, and when it was last found
 * to be good. With it, a warm start needs no Python to know that the
 * environment still is what it was: a few file times are compared.
 */

import { readFileSync, realpathSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { debug } from "../log.ts";
import { type Interpreter, versionText } from "./interpreter.ts";

const FILE_NAME = ".prime-agent.json";
const SCHEMA = 1;

/** What the stamp holds. */
export interface EnvironmentStamp {
  readonly schema: typeof SCHEMA;
  /** Whether this program made the environment, and so may replace it. */
  readonly ours: boolean;
  /** Hashes of the requirements that it was found to meet; versions of this program differ in them. */
  readonly meets: readonly string[];
  readonly version: string;
  readonly cacheTag: string;
  readonly sitePackages: string;
  /** The Python that it was made from, and the one that was asked for, links resolved. */
  readonly basePython: string;
  readonly requestedPython?: string | undefined;
  /** Packages that the user added through us. */
  readonly extraPackages: readonly string[];
  /** Changes when the program or the installed packages do. */
  readonly fingerprint: string;
}

/** The interpreter of a virtual environment. */
export function venvPython(venv: string): string {
  return join(venv, "bin/python");
}

/** The stamp, or undefined when there is none that can be read. */
export function readStamp(venv: string): EnvironmentStamp | undefined {
  try {
    const stamp = JSON.parse(readFileSync(join(venv, FILE_NAME), "utf8")) as EnvironmentStamp;
    return stamp.schema === SCHEMA ? stamp : undefined;
  } catch (error) {
    debug("kernel", `no stamp in ${venv}`, error);
    return undefined;
  }
}

/** Whether the environment is the one that the stamp was written for, unchanged. */
export function isUnchanged(venv: string, stamp: EnvironmentStamp): boolean {
  return fingerprint(venv, stamp.sitePackages) === stamp.fingerprint;
}

/** What a check or a build has just found out. */
export interface StampNews {
  /** Hash of the requirements that are met. */
  readonly meets: string;
  readonly ours?: boolean;
  /** Where the environment will be renamed to, if it is not in its place yet. */
  readonly finalFolder?: string;
  readonly requestedPython?: string | undefined;
  readonly extraPackages?: readonly string[];
}

/** Writes the stamp of an environment that was just checked; keeps what an earlier stamp knew. */
export function writeStamp(
  venv: string,
  interpreter: Interpreter,
  news: StampNews,
): EnvironmentStamp {
  const before = readStamp(venv);
  const stamp: EnvironmentStamp = {
    schema: SCHEMA,
    ours: news.ours ?? before?.ours ?? false,
    meets: [...new Set([...(before?.meets ?? []), news.meets])],
    version: versionText(interpreter.version),
    cacheTag: interpreter.cacheTag,
    sitePackages: interpreter.sitePackages.replace(venv, news.finalFolder ?? venv),
    basePython: resolved(interpreter.baseExecutable),
    requestedPython: news.requestedPython ?? before?.requestedPython,
    extraPackages: [...new Set([...(before?.extraPackages ?? []), ...(news.extraPackages ?? [])])],
    fingerprint: fingerprint(venv, interpreter.sitePackages) ?? "",
  };
  const temporary = join(venv, `${FILE_NAME}.${process.pid}`);
  writeFileSync(temporary, `${JSON.stringify(stamp, null, 2)}\n`);
  renameSync(temporary, join(venv, FILE_NAME));
  return stamp;
}

/** A path with its links resolved, or as it is when it leads nowhere. */
export function resolved(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    debug("kernel", `${path} leads nowhere`, error);
    return path;
  }
}

/** Undefined when the interpreter is gone: a removed Python leaves a link that leads nowhere. */
function fingerprint(venv: string, sitePackages: string): string | undefined {
  try {
    const program = realpathSync(venvPython(venv));
    const status = statSync(program);
    const packages = statSync(sitePackages);
    return [program, status.size, status.mtimeMs, packages.mtimeMs].join(" ");
  } catch (error) {
    debug("kernel", `${venv} has lost its Python`, error);
    return undefined;
  }
}
