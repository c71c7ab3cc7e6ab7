import { describe, expect, test } from "bun:test";
import { join, resolve } from "node:path";
import helperTexts from "../../../src/agent/helpers.txt" with { type: "text" };
import { discoverSkills, listSkills } from "../../../src/agent/skills.ts";
import { TempDir } from "../../support/temp-dir.ts";

const BUILTIN = resolve(import.meta.dir, "../../../kernel/skills");

function find(options: { builtinDir?: string; paths?: string[]; discover?: boolean; cwd: string }) {
  return discoverSkills({
    home: join(options.cwd, "home/.prime/agent"),
    userHome: undefined,
    repositoryRoot: undefined,
    paths: [],
    builtinDir: BUILTIN,
    discover: true,
    trustProject: false,
    ...options,
  });
}

describe("the built-in skills", () => {
  test("are found without a warning, the Python ones with their import names", () => {
    using dir = new TempDir();
    const { skills, warnings } = find({ cwd: dir.path });
    expect(warnings).toEqual([]);
    expect(skills.map(({ name, source, python }) => [name, source, python?.importName])).toEqual([
      ["agent-message", "builtin", "agent_message"],
      ["attach-image", "builtin", "attach_image"],
      ["compact", "builtin", "compact"],
      ["edit", "builtin", "edit"],
      ["goal", "builtin", "goal"],
      ["skill-creator", "builtin", undefined],
    ]);
  });

  test("need no packages", () => {
    using dir = new TempDir();
    const { skills } = find({ cwd: dir.path });
    expect(skills.flatMap(({ python }) => python?.dependencies ?? [])).toEqual([]);
  });

  test("provide all helpers that the system prompt promises", () => {
    using dir = new TempDir();
    const { skills } = find({ cwd: dir.path });
    const imports = skills.flatMap(({ python }) => python?.importName ?? []);
    const promised = helperTexts
      .trim()
      .split("\n")
      .map((line) => line.slice(0, line.indexOf(":")));
    // These two are part of the runtime.
    expect(new Set([...imports, "rlm", "time_limit"])).toEqual(new Set(promised));
  });

  test("give way to a skill of the user with the same name", () => {
    using dir = new TempDir();
    const own = dir.write(
      "home/.prime/agent/skills/edit/SKILL.md",
      "---\nname: edit\ndescription: mine\n---\n",
    );
    const { skills } = find({ cwd: dir.path });
    expect(skills.filter(({ name }) => name === "edit").map(({ location }) => location)).toEqual([
      own,
    ]);
  });

  test("hold a guide whose template is a Python skill without fault", () => {
    using dir = new TempDir();
    const template = join(BUILTIN, "skill-creator/templates/line-count");
    const { skills, warnings } = find({ cwd: dir.path, paths: [template], discover: false });
    expect(warnings).toEqual([]);
    expect(skills.map(({ name, python }) => [name, python?.importName])).toEqual([
      ["line-count", "line_count"],
    ]);
    expect(listSkills(skills)).toContain("<type>python</type>");
  });
});
