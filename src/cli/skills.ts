/** The `skills` command: which skills a run in this folder would have. */

import type { Skill } from "../agent/skill.ts";
import type { SkillSet } from "../agent/skills.ts";
import { UsageError } from "../errors.ts";
import { firstLine, printable } from "../printable.ts";

/**
 * Runs `skills ACTION` over what was found and returns what goes to stdout; the set's warnings go
 * to stderr and are the caller's. No action means `list`. Throws {@link UsageError}.
 */
export function runSkills(words: readonly string[], set: SkillSet, json: boolean): string {
  const [action = "list", ...rest] = words;
  if (action !== "list" || rest.length > 0) {
    throw new UsageError(`there is no "skills ${printable(words.join(" "))}"`, {
      hint: "`prime-agent skills list` shows the skills of this folder.",
    });
  }
  if (json) return `${JSON.stringify(set.skills.map(jsonSkill), null, 2)}\n`;
  if (set.skills.length === 0) return "There are no skills here.\n";
  const width = Math.max(...set.skills.map((skill) => printable(skill.name).length));
  return set.skills.map((skill) => listEntry(skill, width)).join("");
}

const DESCRIPTION_WIDTH = 90;

function jsonSkill({ name, description, location, source, hidden, python }: Skill): object {
  return {
    name,
    type: python ? "python" : "markdown",
    description,
    location,
    source,
    hidden,
    import_name: python?.importName ?? null,
    dependencies: python?.dependencies ?? [],
  };
}

function listEntry(skill: Skill, width: number): string {
  const kind = [skill.python ? "python" : "markdown", skill.source];
  if (skill.hidden) kind.push("hidden from the model");
  const indent = " ".repeat(width + 2);
  return [
    `${printable(skill.name).padEnd(width)}  ${kind.join(", ")}`,
    `${indent}${firstLine(skill.description, DESCRIPTION_WIDTH)}`,
    `${indent}${printable(skill.location)}`,
    "",
  ].join("\n");
}
