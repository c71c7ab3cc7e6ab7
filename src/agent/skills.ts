/** Finds the skills that a run can use, decides which one wins a name, and lists them for the model. */

import { existsSync, readdirSync, realpathSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";
import { MAX_DESCRIPTION_CHARS, readSkill, type Skill, type SkillSource } from "./skill.ts";

/** Where to look. */
export interface SkillOptions {
  cwd: string;
  /** The program's folder; its `skills` are the person's own. */
  home: string;
  /** The person's home folder, for `~/.agents/skills` and a leading tilde. */
  userHome: string | undefined;
  /** The root of the repository that `cwd` lies in; without one only `cwd` itself is looked at. */
  repositoryRoot: string | undefined;
  /** `--skill`: a skill's folder, its `SKILL.md`, or a folder of skills. */
  paths: readonly string[];
  /** The folder of the skills that come with the program; `undefined` turns them off. */
  builtinDir: string | undefined;
  /** False with `--no-skills`: only `paths` are read. */
  discover: boolean;
  /** Whether Python skills of the project may run code. */
  trustProject: boolean;
}

/** The skills of a run, highest precedence first, and what the person should know about them. */
export interface SkillSet {
  skills: Skill[];
  warnings: string[];
}

/**
 * Finds all skills. The order of places is the order of precedence: project (nearest folder
 * first), user, `--skill`, built-in. The first of a name wins, with a warning. A Python skill of a
 * project that is not trusted keeps its text, loses its code, and never takes another one's name.
 */
export function discoverSkills(options: SkillOptions): SkillSet {
  const warnings: string[] = [];
  const warn = (warning: string) => warnings.push(warning);
  const found = searchPlaces(options, warn).flatMap((place) =>
    place.files.flatMap((file) => readSkill(file, place.source, warn) ?? []),
  );
  const trusted: Skill[] = [];
  const untrusted: Skill[] = [];
  for (const skill of found) {
    if (options.trustProject || skill.source !== "project" || !skill.python) trusted.push(skill);
    else untrusted.push(skill);
  }
  const skills = uniqueByName(trusted, warn);
  const taken = new Set(skills.map((skill) => skill.name));
  skills.unshift(...textsOf(untrusted, taken, warn));
  warnImportClashes(skills, warn);
  return { skills, warnings };
}

/** What remains of untrusted Python skills: their text, unless another skill has the name. */
function textsOf(
  untrusted: readonly Skill[],
  taken: ReadonlySet<string>,
  warn: (warning: string) => void,
): Skill[] {
  const free = uniqueByName(untrusted, warn).filter((skill) => {
    if (!taken.has(skill.name)) return true;
    warn(
      `skill "${skill.name}" of the project is left out: another has its name, and the project is not trusted`,
    );
    return false;
  });
  return free.map(({ python: _code, ...text }) => {
    warn(`skill "${text.name}" of the project is text only; --trust-project lets its code run`);
    return text;
  });
}

interface SkillPlace {
  source: SkillSource;
  files: string[];
}

function searchPlaces(options: SkillOptions, warn: (warning: string) => void): SkillPlace[] {
  const userDirs = [join(options.home, "skills")];
  if (options.userHome) userDirs.push(join(options.userHome, ".agents", "skills"));
  const places: SkillPlace[] = [];
  if (options.discover) {
    const own = new Set(userDirs.map(realPath));
    for (const dir of projectDirs(options)) {
      // A repository may begin at the home folder; the person's own skills stay theirs.
      if (!own.has(realPath(dir))) places.push({ source: "project", files: skillFiles(dir) });
    }
    for (const dir of userDirs) places.push({ source: "user", files: skillFiles(dir) });
  }
  for (const path of options.paths) {
    const absolute = resolve(options.cwd, expandTilde(path, options.userHome));
    const files = explicitFiles(absolute);
    if (files.length === 0) warn(`--skill ${path}: there is no skill`);
    places.push({ source: "path", files });
  }
  if (options.discover && options.builtinDir !== undefined) {
    const files = skillFiles(options.builtinDir);
    if (files.length === 0) warn(`the built-in skills are missing in ${options.builtinDir}`);
    places.push({ source: "builtin", files });
  }
  return places;
}

/** From `cwd` up to the repository's root, nearest first. */
function projectDirs(options: SkillOptions): string[] {
  const dirs: string[] = [];
  let folder = resolve(options.cwd);
  for (;;) {
    dirs.push(join(folder, ".prime", "agent", "skills"), join(folder, ".agents", "skills"));
    const parent = dirname(folder);
    const isTop = options.repositoryRoot === undefined || folder === options.repositoryRoot;
    if (isTop || parent === folder) return dirs;
    folder = parent;
  }
}

function explicitFiles(path: string): string[] {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat?.isFile()) return [path];
  return stat?.isDirectory() ? skillFiles(path) : [];
}

const MAX_DEPTH = 6;

/** Folders that hold no skills of their own but thousands of entries. */
const SKIPPED = new Set(["node_modules", "__pycache__", "venv"]);

/** Every `SKILL.md` in and below `dir`, sorted; below a skill's folder nothing more is looked for. */
function skillFiles(dir: string, depth = 0, seen = new Set<string>()): string[] {
  const real = realPath(dir);
  if (depth > MAX_DEPTH || seen.has(real) || !existsSync(dir)) return [];
  seen.add(real);
  const own = join(dir, "SKILL.md");
  if (existsSync(own)) return [own];
  return folderNames(dir).flatMap((name) => skillFiles(join(dir, name), depth + 1, seen));
}

function folderNames(dir: string): string[] {
  try {
    return readdirSync(dir)
      .filter((name) => !name.startsWith(".") && !SKIPPED.has(name))
      .filter((name) => statSync(join(dir, name), { throwIfNoEntry: false })?.isDirectory())
      .sort();
  } catch (error) {
    debug("skills", `cannot read ${dir}: ${errorMessage(error)}`);
    return [];
  }
}

function uniqueByName(skills: readonly Skill[], warn: (warning: string) => void): Skill[] {
  const byName = new Map<string, Skill>();
  for (const skill of skills) {
    const first = byName.get(skill.name);
    if (!first) byName.set(skill.name, skill);
    else if (realPath(first.location) !== realPath(skill.location)) {
      warn(`skill "${skill.name}" in ${skill.location} is hidden by ${first.location}`);
    }
  }
  return [...byName.values()];
}

function warnImportClashes(skills: readonly Skill[], warn: (warning: string) => void): void {
  const byImport = new Map<string, Skill>();
  for (const skill of skills) {
    if (!skill.python) continue;
    const { importName } = skill.python;
    const first = byImport.get(importName);
    if (first)
      warn(`skills "${first.name}" and "${skill.name}" are both imported as ${importName}`);
    else byImport.set(importName, skill);
  }
}

function expandTilde(path: string, userHome: string | undefined): string {
  if (userHome === undefined || (path !== "~" && !path.startsWith("~/"))) return path;
  return join(userHome, path.slice(1));
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    debug("skills", `no ${path}: ${errorMessage(error)}`);
    return path;
  }
}

/**
 * The skills as the system prompt lists them: name, type, description and location of each that
 * is not hidden. Empty when there are none. The model reads the rest itself.
 */
export function listSkills(skills: readonly Skill[]): string {
  const visible = skills.filter((skill) => !skill.hidden);
  if (visible.length === 0) return "";
  return `<skills>\n${visible.map(skillElement).join("\n")}\n</skills>`;
}

function skillElement(skill: Skill): string {
  const fields: Array<[tag: string, value: string]> = [
    ["name", skill.name],
    ["type", skill.python ? "python" : "markdown"],
    ["description", shortened(skill.description)],
    ["location", skill.location],
  ];
  if (skill.python) fields.push(["import", skill.python.importName]);
  const elements = fields.map(([tag, value]) => `<${tag}>${escapeXml(value)}</${tag}>`);
  return `<skill>${elements.join("")}</skill>`;
}

function shortened(description: string): string {
  return description.length > MAX_DESCRIPTION_CHARS
    ? `${description.slice(0, MAX_DESCRIPTION_CHARS).toWellFormed()}…`
    : description;
}

function escapeXml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => XML_ENTITIES[character] as string);
}

const XML_ENTITIES: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&apos;",
};
