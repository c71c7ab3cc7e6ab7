/** One skill: a folder with `SKILL.md`, in the Agent Skills format, and perhaps a Python package. */

import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { errorMessage } from "../errors.ts";
import { parseFrontMatter } from "./front-matter.ts";

/** Where a skill was found. */
export type SkillSource = "project" | "user" | "path" | "builtin";

/** The Python package of a skill, which cells import by name. */
export interface SkillPackage {
  importName: string;
  /** The folder to put on the module path: the skill's `src`. */
  sourceDir: string;
  /** Its `pyproject.toml`. */
  projectFile: string;
  /** Requirements of the package, as in `project.dependencies`. */
  dependencies: string[];
}

/** A skill that can be offered to the model. */
export interface Skill {
  name: string;
  description: string;
  /** The `SKILL.md` file, absolute. */
  location: string;
  source: SkillSource;
  /** Not offered to the model; a person can still call it. */
  hidden: boolean;
  /** Present for a Python skill whose code may run. */
  python?: SkillPackage;
}

/** Reads the skill in the file `location`; problems go to `warn`. `undefined` when it can't be offered. */
export function readSkill(
  location: string,
  source: SkillSource,
  warn: (warning: string) => void,
): Skill | undefined {
  const complain = (problem: string) => warn(`skill ${location}: ${problem}`);
  const text = readHead(location, complain);
  if (text === undefined) return undefined;
  const parsed = parseFrontMatter(text);
  if ("problem" in parsed) {
    complain(`${parsed.problem}; it is left out`);
    return undefined;
  }
  const { fields } = parsed;
  const folder = dirname(location);
  const name = fields.name === undefined ? basename(folder) : String(fields.name).trim();
  const { description } = fields;
  if (typeof description !== "string" || description.trim() === "") {
    complain("it has no description; it is left out");
    return undefined;
  }
  for (const problem of nameProblems(name, folder)) complain(problem);
  if (description.length > MAX_DESCRIPTION_CHARS) {
    complain(`its description is longer than ${MAX_DESCRIPTION_CHARS} characters`);
  }
  const python = readPackage(name, folder, complain);
  return {
    name,
    description: description.trim(),
    location,
    source,
    hidden: fields["disable-model-invocation"] === true,
    ...(python && { python }),
  };
}

/**
 * The prompt that `/skill:NAME words` stands for: the skill's text, where its files lie, and what
 * the person said. Throws the system's error when the file is gone.
 */
export function skillPrompt(skill: Skill, words: string): string {
  const parsed = parseFrontMatter(readFileSync(skill.location, "utf8"));
  const body = "body" in parsed ? parsed.body.trim() : "";
  const folder = dirname(skill.location);
  const text = `Use the skill "${skill.name}". Its paths are relative to ${folder}.\n\n<skill>\n${body}\n</skill>`;
  return words.trim() === "" ? text : `${text}\n\n${words.trim()}`;
}

const MAX_NAME_CHARS = 64;

/** The format's limit; a longer description is listed shortened. */
export const MAX_DESCRIPTION_CHARS = 1024;

/** Front matter beyond this is no front matter. */
const MAX_HEAD_BYTES = 64 * 1024;

function readHead(location: string, complain: (problem: string) => void): string | undefined {
  try {
    if (!statSync(location).isFile()) throw new Error("it is not a file");
    const fd = openSync(location, "r");
    try {
      const bytes = Buffer.alloc(MAX_HEAD_BYTES);
      return bytes.toString("utf8", 0, readSync(fd, bytes, 0, bytes.length, 0));
    } finally {
      closeSync(fd);
    }
  } catch (error) {
    complain(`it can't be read (${errorMessage(error)})`);
    return undefined;
  }
}

function nameProblems(name: string, folder: string): string[] {
  const problems: string[] = [];
  if (name !== basename(folder)) {
    problems.push(`its name "${name}" differs from its folder's "${basename(folder)}"`);
  }
  if (name.length > MAX_NAME_CHARS) {
    problems.push(`its name is longer than ${MAX_NAME_CHARS} characters`);
  }
  if (!/^[a-z0-9-]*$/.test(name)) {
    problems.push("its name has other characters than a-z, 0-9 and hyphens");
  }
  if (/^-|-$/.test(name)) problems.push("its name begins or ends with a hyphen");
  if (name.includes("--")) problems.push("its name has two hyphens in a row");
  return problems;
}

function readPackage(
  name: string,
  folder: string,
  complain: (problem: string) => void,
): SkillPackage | undefined {
  const projectFile = join(folder, "pyproject.toml");
  if (!isFile(projectFile)) return undefined;
  const importName = name.replaceAll("-", "_");
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(importName)) {
    complain(`"${importName}" can't be a Python name; it is used as a written skill`);
    return undefined;
  }
  const sourceDir = join(folder, "src");
  if (!isFile(join(sourceDir, importName, "__init__.py"))) {
    complain(`src/${importName}/__init__.py is missing; it is used as a written skill`);
    return undefined;
  }
  try {
    const project = Bun.TOML.parse(readFileSync(projectFile, "utf8")) as {
      project?: { dependencies?: unknown };
    };
    const declared = project.project?.dependencies;
    const dependencies = Array.isArray(declared) ? declared.map(String) : [];
    return { importName, sourceDir, projectFile, dependencies };
  } catch (error) {
    complain(`pyproject.toml: ${errorMessage(error)}; it is used as a written skill`);
    return undefined;
  }
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
}
