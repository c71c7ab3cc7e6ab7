/**
 * The instructions that people keep in files for agents: `AGENTS.md`, or `CLAUDE.md` where there
 * is none, of the person and of the project from the repository's root down to the working folder.
 */

import { existsSync, readFileSync, realpathSync, statSync } from "node:fs";
import { dirname, join, relative, resolve, sep } from "node:path";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";

/** One file of instructions. */
export interface ContextFile {
  /** Absolute, as it was found. */
  path: string;
  /** Its text, cut at the cap; a cut is told at its end. */
  text: string;
}

/** The files in the order in which they go into the prompt, the most specific last. */
export interface ContextFileSet {
  files: ContextFile[];
  warnings: string[];
}

/** Where to look. */
export interface ContextFileOptions {
  cwd: string;
  /** The program's folder; its file holds for every project. */
  home: string;
  /** The root of the repository that `cwd` lies in; without one only `cwd` itself is looked at. */
  repositoryRoot: string | undefined;
}

/** More than this of one file is left out: it would crowd out the work. */
export const MAX_CONTEXT_FILE_BYTES = 32 * 1024;

/** Reads all context files. What can't be used is a warning, never an error. */
export function readContextFiles(options: ContextFileOptions): ContextFileSet {
  const files: ContextFile[] = [];
  const warnings: string[] = [];
  const seen = new Set<string>();
  const top = options.repositoryRoot ?? options.cwd;
  for (const folder of [options.home, ...foldersDown(top, options.cwd)]) {
    const path = NAMES.map((name) => join(folder, name)).find((candidate) => existsSync(candidate));
    if (path === undefined) continue;
    try {
      const real = realpathSync(path);
      if (seen.has(real)) continue;
      seen.add(real);
      if (folder !== options.home) requireInside(realpathSync(top), real);
      const text = readText(real, path, warnings);
      if (text.trim() !== "") files.push({ path, text });
    } catch (error) {
      warnings.push(`${path} is not used: ${errorMessage(error)}`);
    }
  }
  return { files, warnings };
}

/** The nearest folder at or above `cwd` that holds `.git`, if any. */
export function findRepositoryRoot(cwd: string): string | undefined {
  let folder = resolve(cwd);
  for (;;) {
    if (existsSync(join(folder, ".git"))) return folder;
    const parent = dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
}

/** The checked-out branch, or the commit when none is; `undefined` when it can't be told. */
export function currentBranch(repositoryRoot: string): string | undefined {
  try {
    const head = readFileSync(join(gitFolder(repositoryRoot), "HEAD"), "utf8").trim();
    return head.startsWith("ref: ")
      ? head.replace(/^ref: (?:refs\/heads\/)?/, "")
      : head.slice(0, 12);
  } catch (error) {
    debug("context-files", `no branch in ${repositoryRoot}`, error);
    return undefined;
  }
}

const NAMES = ["AGENTS.md", "CLAUDE.md"];

function foldersDown(top: string, cwd: string): string[] {
  const folders = [top];
  for (const name of relative(top, cwd).split(sep)) {
    if (name !== "") folders.push(join(folders.at(-1) as string, name));
  }
  return folders;
}

/** A project must not be able to have a file from elsewhere, such as a key, sent to the model. */
function requireInside(top: string, real: string): void {
  if (real !== top && !real.startsWith(top.endsWith(sep) ? top : top + sep)) {
    throw new Error(`it is a link out of the project, to ${real}`);
  }
}

function readText(real: string, path: string, warnings: string[]): string {
  if (!statSync(real).isFile()) throw new Error("it is not a file");
  const bytes = readFileSync(real);
  if (bytes.includes(0)) throw new Error("it is binary");
  if (bytes.length <= MAX_CONTEXT_FILE_BYTES) return bytes.toString("utf8");
  const cut = `${MAX_CONTEXT_FILE_BYTES} of ${bytes.length} bytes`;
  warnings.push(`${path} is long: the model is given ${cut}`);
  // A cut inside a character leaves a replacement character, which goes with the partial line.
  const head = bytes.toString("utf8", 0, MAX_CONTEXT_FILE_BYTES).replace(/[^\n]*\uFFFD$/, "");
  return `${head}\n[... cut here, after ${cut}; the rest is in ${path}]`;
}

/** `.git` is a folder, or in a worktree or submodule a file that names one. */
function gitFolder(repositoryRoot: string): string {
  const git = join(repositoryRoot, ".git");
  if (statSync(git).isDirectory()) return git;
  const target = /^gitdir: (.+)$/m.exec(readFileSync(git, "utf8"))?.[1] ?? "";
  return resolve(repositoryRoot, target.trim());
}
