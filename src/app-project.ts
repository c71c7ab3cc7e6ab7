/** What the project and the person's folders say: skills, context files, and the system prompt made of them. */

import { join } from "node:path";
import { currentBranch, findRepositoryRoot, readContextFiles } from "./agent/context-files.ts";
import { buildSystemPrompt, type SystemPromptInput } from "./agent/prompt.ts";
import type { Skill } from "./agent/skill.ts";
import { discoverSkills, type SkillSet } from "./agent/skills.ts";
import type { KernelHost, KernelPartsOptions } from "./app-kernel.ts";
import { knownPython } from "./app-packages.ts";
import type { Config } from "./config.ts";
import { loadAssets } from "./kernel/assets.ts";

/** What was read, once, at the start of a run. */
export interface ProjectReading {
  skills: Skill[];
  contextFiles: string[];
  /** The system prompt of the root or, with its name, of a sub-agent. */
  promptFor(agent: Pick<SystemPromptInput, "maySpawn" | "subagentName">): string;
  warnings: string[];
}

/** Reads all of it. What can't be used is a warning, never an error. */
export async function readProject(config: Config, host: KernelHost): Promise<ProjectReading> {
  const { prompt, cwd, environment } = config;
  const repositoryRoot = findRepositoryRoot(cwd);
  const context = prompt.contextFiles
    ? readContextFiles({ cwd, home: environment.home, repositoryRoot })
    : { files: [], warnings: [] };
  const found = skillsBelow(config, (await host.assets()).root);
  const branch = repositoryRoot && currentBranch(repositoryRoot);
  const python = knownPython(config);
  const input = {
    ...(prompt.systemPrompt !== undefined && { base: prompt.systemPrompt }),
    ...(prompt.appendSystemPrompt !== undefined && { append: prompt.appendSystemPrompt }),
    ...(python && { python }),
    skills: found.skills,
    contextFiles: context.files,
    facts: {
      cwd,
      date: new Date().toISOString().slice(0, 10),
      platform: `${process.platform} ${process.arch}`,
      ...(branch && { gitBranch: branch }),
    },
  };
  return {
    skills: found.skills,
    contextFiles: context.files.map((file) => file.path),
    promptFor: (agent) => buildSystemPrompt({ ...input, ...agent }),
    warnings: [...context.warnings, ...found.warnings],
  };
}

/** The skills that a run in this folder would have. */
export async function findSkills(config: Config): Promise<SkillSet> {
  const { home, variables } = config.environment;
  const assets = await loadAssets({ home, env: variables });
  return skillsBelow(config, assets.root);
}

function skillsBelow({ prompt, cwd, environment, bare }: Config, assetsRoot: string): SkillSet {
  return discoverSkills({
    cwd,
    home: environment.home,
    userHome: environment.userHome,
    repositoryRoot: findRepositoryRoot(cwd),
    paths: prompt.skillPaths,
    builtinDir: bare ? undefined : join(assetsRoot, "skills"),
    discover: prompt.skills,
    trustProject: prompt.trustProject,
  });
}

/** The skills that cells can import, as the kernel's bootstrap wants them. */
export function pythonSkills(skills: readonly Skill[]): KernelPartsOptions["skills"] {
  return skills.flatMap(({ name, python }) =>
    python ? [{ name, import_name: python.importName, path: python.sourceDir }] : [],
  );
}
