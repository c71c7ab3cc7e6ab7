/** The commands that only look at what is saved or found: `sessions` and `skills`. */

import { findSkills } from "../app-project.ts";
import type { CommandContext } from "./context.ts";
import { readConfig } from "./read-config.ts";
import { runSessions } from "./sessions.ts";
import { runSkills } from "./skills.ts";

/** Runs `prime-agent sessions …`. */
export async function runSessionsCommand({ args, terminal }: CommandContext): Promise<number> {
  const { cwd, environment } = readConfig(args.options);
  const text = runSessions(args.words, {
    home: environment.home,
    cwd,
    all: args.options.has("all"),
    format: args.options.get("format"),
    json: args.options.has("json"),
  });
  terminal.stdout.write(text);
  return 0;
}

/** Runs `prime-agent skills list`. */
export async function runSkillsCommand({ args, terminal }: CommandContext): Promise<number> {
  const found = await findSkills(readConfig(args.options));
  for (const warning of found.warnings) terminal.stderr.write(`warning: ${warning}\n`);
  terminal.stdout.write(runSkills(args.words, found, args.options.has("json")));
  return 0;
}
