/**
 * The system prompt: fixed text first, what depends on the machine and the project after it, the
 * facts of this session last, so that providers can cache the common beginning. It is built once
 * and stays the same, byte for byte, for the life of a session's process.
 */

import type { ContextFile } from "./context-files.ts";
import helperTexts from "./helpers.txt" with { type: "text" };
import type { Skill } from "./skill.ts";
import { listSkills } from "./skills.ts";
import subagentText from "./subagent.txt" with { type: "text" };
import systemText from "./system.txt" with { type: "text" };

/** What the prompt is built from. */
export interface SystemPromptInput {
  /** Replaces our own text (`--system-prompt`). */
  base?: string;
  /** Goes after the context files (`--append-system-prompt`). */
  append?: string;
  /** The kernel's Python, from the environment as it is; absent while unknown. */
  python?: { version: string; packages: readonly string[] };
  /** Whether this agent may start sub-agents. */
  maySpawn: boolean;
  /** Set for a sub-agent: its own name. */
  subagentName?: string;
  skills: readonly Skill[];
  contextFiles: readonly ContextFile[];
  facts: SessionFacts;
}

/** What holds for this session only. Collected once, at its start. */
export interface SessionFacts {
  cwd: string;
  /** `YYYY-MM-DD`. */
  date: string;
  /** Such as `linux x64`. */
  platform: string;
  /** Branch of the repository that `cwd` lies in; absent outside of one. */
  gitBranch?: string;
}

/** Builds the system prompt. The same input gives the same text. */
export function buildSystemPrompt(input: SystemPromptInput): string {
  const sections = [
    input.base?.trim() ?? systemText.replace("{helpers}", () => helperList(input)).trim(),
    subagentSection(input),
    pythonSection(input.python),
    skillSection(input.skills),
    contextSection(input.contextFiles),
    input.append?.trim() ?? "",
    factSection(input),
  ];
  return sections.filter((section) => section !== "").join("\n\n");
}

/** A helper is mentioned only when it is there: some belong to the runtime, most to built-in skills. */
function helperList(input: SystemPromptInput): string {
  const available = new Set(["time_limit", ...builtinImports(input.skills)]);
  if (input.maySpawn) available.add("rlm");
  return helperTexts
    .trim()
    .split("\n")
    .filter((line) => available.has(helperName(line)))
    .map((line) => `- ${line.slice(helperName(line).length + 1).trim()}`)
    .join("\n");
}

function helperName(line: string): string {
  return line.slice(0, line.indexOf(":"));
}

function builtinImports(skills: readonly Skill[]): string[] {
  return skills.flatMap((skill) =>
    skill.source === "builtin" && skill.python ? [skill.python.importName] : [],
  );
}

/** How a sub-agent reports; without the helper for it the program reports its last text. */
function subagentSection({ subagentName, skills }: SystemPromptInput): string {
  const canReport = builtinImports(skills).includes("agent_message");
  return subagentName !== undefined && canReport ? subagentText.trim() : "";
}

function pythonSection(python: SystemPromptInput["python"]): string {
  if (!python) return "";
  const packages = [...python.packages].sort().join(", ");
  return `# Kernel\nPython ${python.version}. Beside the standard library it has: ${packages || "nothing"}.`;
}

function skillSection(skills: readonly Skill[]): string {
  const described = new Set(helperTexts.trim().split("\n").map(helperName));
  const others = skills.filter((skill) => {
    return skill.source !== "builtin" || !skill.python || !described.has(skill.python.importName);
  });
  const list = listSkills(others);
  return list && `# Skills\n${SKILL_INTRODUCTION}\n${list}`;
}

const SKILL_INTRODUCTION =
  "When a task fits a description, first read the file at its location; paths in it are relative to its folder. A python skill is imported already and called by its import name.";

function contextSection(files: readonly ContextFile[]): string {
  if (files.length === 0) return "";
  const blocks = files.map(({ path, text }) => `## ${path}\n${text.trim()}`);
  return `# Instructions of the user and the project\nLater files take precedence.\n\n${blocks.join("\n\n")}`;
}

function factSection({ facts, subagentName }: SystemPromptInput): string {
  const lines = [
    `Working directory: ${facts.cwd}`,
    facts.gitBranch === undefined ? "Not a git repository" : `Git branch: ${facts.gitBranch}`,
    `Platform: ${facts.platform}`,
    `Date: ${facts.date}`,
  ];
  if (subagentName !== undefined) lines.unshift(`Your name: ${subagentName}`);
  return `# This session\n${lines.join("\n")}`;
}
