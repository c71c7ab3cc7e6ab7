/** Choosing the Python that an environment is made from. */

import { resolve } from "node:path";
import { throwIfAborted } from "../async.ts";
import { errorMessage } from "../errors.ts";
import type { KernelAssets } from "./assets.ts";
import { wheelsMisfit } from "./environment-build.ts";
import { NoPythonError, UnusablePythonError } from "./environment-errors.ts";
import {
  candidatePythons,
  findProgram,
  inspectInterpreter,
  type Inspection,
  type Interpreter,
} from "./interpreter.ts";
import { runProgram } from "./python-run.ts";

/** The Python that uv is asked for where there is none. */
const WANTED_VERSION = "3.13";
const DOWNLOAD_TIMEOUT_MS = 600_000;

/** What a choice depends on. */
export interface PythonChoiceOptions {
  readonly assets: KernelAssets;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** A Python that the user named (`--python`): this one or none. */
  readonly python?: string | undefined;
  /** Folders to look in besides PATH and those of version managers; default: the usual ones. */
  readonly systemFolders?: readonly string[];
  readonly signal?: AbortSignal | undefined;
  onProgress?(line: string): void;
}

/**
 * The Pythons that an environment can be made from, best first, at least one. The search ends at the
 * first that the carried wheels fit.
 *
 * @throws NoPythonError, UnusablePythonError for a named one, AbortedError.
 */
export async function choosePythons(options: PythonChoiceOptions): Promise<Interpreter[]> {
  if (options.python) return [await namedPython(options.python, options)];
  const usable: Interpreter[] = [];
  const seen: string[] = [];
  for (const path of candidatePythons(options.env, options.systemFolders)) {
    const inspection = await inspectBase(path, options);
    if ("problem" in inspection) {
      seen.push(`${path} ${inspection.problem}`);
    } else if (!wheelsMisfit(options.assets, inspection.interpreter)) {
      return [inspection.interpreter, ...usable];
    } else {
      usable.push(inspection.interpreter);
    }
  }
  if (usable.length > 0) return usable;
  const uv = findUv(options.env);
  if (uv) return [await pythonFromUv(uv, seen, options)];
  throw new NoPythonError(seen);
}

/** uv on PATH, or where its installer puts it. */
export function findUv(env: Readonly<Record<string, string | undefined>>): string | undefined {
  const home = env["HOME"];
  const usual = home ? `:${home}/.local/bin:${home}/.cargo/bin` : "";
  return findProgram("uv", { PATH: `${env["PATH"] ?? ""}${usual}` });
}

/** A path as the user meant it: relative to the current folder, or a program on PATH. */
export function pythonPath(
  named: string,
  env: Readonly<Record<string, string | undefined>>,
): string {
  return named.includes("/") ? resolve(named) : (findProgram(named, env) ?? named);
}

async function namedPython(named: string, options: PythonChoiceOptions): Promise<Interpreter> {
  const path = pythonPath(named, options.env);
  const inspection = await inspectBase(path, options);
  if ("interpreter" in inspection) return inspection.interpreter;
  throw new UnusablePythonError(
    "--python",
    path,
    [inspection.problem],
    "name a Python 3.10 or newer, or leave the option out to have one found",
  );
}

async function inspectBase(path: string, options: PythonChoiceOptions): Promise<Inspection> {
  const { assets, env, signal } = options;
  const inspection = await inspectInterpreter(path, { root: assets.root, env, signal });
  if ("problem" in inspection || inspection.interpreter.lacks.length === 0) return inspection;
  const { lacks } = inspection.interpreter;
  return { problem: `lacks ${lacks.join(" and ")} of the standard library` };
}

async function pythonFromUv(
  uv: string,
  seen: string[],
  options: PythonChoiceOptions,
): Promise<Interpreter> {
  options.onProgress?.(`No Python 3.10 or newer was found; asking uv for one…`);
  const run = { env: options.env, signal: options.signal, timeoutMs: DOWNLOAD_TIMEOUT_MS };
  try {
    await runProgram([uv, "python", "install", "--quiet", WANTED_VERSION], run);
    const path = (await runProgram([uv, "python", "find", WANTED_VERSION], run)).trim();
    const inspection = await inspectBase(path, options);
    if ("interpreter" in inspection) return inspection.interpreter;
    seen.push(`${path} (from uv) ${inspection.problem}`);
  } catch (error) {
    throwIfAborted(options.signal);
    seen.push(errorMessage(error));
  }
  throw new NoPythonError(seen);
}
