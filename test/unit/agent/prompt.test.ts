import { describe, expect, test } from "bun:test";
import { buildSystemPrompt, type SystemPromptInput } from "../../../src/agent/prompt.ts";
import type { Skill, SkillSource } from "../../../src/agent/skill.ts";
import { IPYTHON_TOOL } from "../../../src/tool/ipython.ts";

function pythonSkill(name: string, source: SkillSource = "builtin"): Skill {
  const python = { importName: name, sourceDir: "/s", projectFile: "/p", dependencies: [] };
  return {
    name,
    description: `about ${name}`,
    location: `/skills/${name}/SKILL.md`,
    source,
    hidden: false,
    python,
  };
}

const creator: Skill = {
  name: "skill-creator",
  description: "How to write a skill.",
  location: "/skills/skill-creator/SKILL.md",
  source: "builtin",
  hidden: false,
};
const builtin = [
  ...["edit", "attach_image", "agent_message", "goal", "compact"].map((name) => pythonSkill(name)),
  creator,
];

const input: SystemPromptInput = {
  python: { version: "3.13.1", packages: ["numpy", "dill"] },
  maySpawn: true,
  skills: builtin,
  contextFiles: [],
  facts: { cwd: "/home/ada/engine", date: "2026-01-05", platform: "linux x64", gitBranch: "main" },
};

describe("buildSystemPrompt", () => {
  test("with the tool's schema stays under 2,500 tokens", () => {
    const tool = JSON.stringify(IPYTHON_TOOL);
    expect((buildSystemPrompt(input).length + tool.length) / 4).toBeLessThan(2_000);
  });

  test("is the same text for the same input", () => {
    expect(buildSystemPrompt(structuredClone(input))).toBe(buildSystemPrompt(input));
  });

  test("ends with what holds for this session only", () => {
    const prompt = buildSystemPrompt({
      ...input,
      contextFiles: [{ path: "/a", text: "A" }],
      append: "appended",
    });
    const other = buildSystemPrompt({
      ...input,
      contextFiles: [{ path: "/a", text: "A" }],
      append: "appended",
      facts: { cwd: "/x", date: "2027-01-01", platform: "darwin arm64" },
    });
    const shared = [...prompt].findIndex((character, index) => character !== other[index]);
    expect(prompt.slice(0, shared)).toEndWith("# This session\nWorking directory: /");
    expect(other).toEndWith(
      "Working directory: /x\nNot a git repository\nPlatform: darwin arm64\nDate: 2027-01-01",
    );
  });

  test("has its sections in a fixed order", () => {
    const prompt = buildSystemPrompt({
      ...input,
      contextFiles: [{ path: "/a", text: "A" }],
      append: "appended",
      subagentName: "scout",
      skills: [...builtin, pythonSkill("mine", "user")],
    });
    const marks = [
      "# Cells",
      "# Helpers",
      "# Working",
      "# You are a sub-agent",
      "# Kernel",
      "# Skills",
      "<skills>",
      "# Instructions",
      "## /a",
      "appended",
      "# This session",
      "Your name: scout",
    ];
    const positions = marks.map((mark) => prompt.indexOf(mark));
    expect(positions).toEqual([...positions].sort((a, b) => a - b));
    expect(positions[0]).toBeGreaterThan(0);
  });

  test("mentions a helper only when it is there", () => {
    const bare = buildSystemPrompt({
      ...input,
      maySpawn: false,
      skills: [],
      subagentName: "scout",
    });
    for (const name of ["rlm", "edit(", "attach_image", "agent_message", "goal", "compact"]) {
      expect(bare).not.toContain(name);
    }
    expect(bare).toContain("time_limit(60)");
    expect(buildSystemPrompt({ ...input, maySpawn: false })).not.toContain("rlm");
  });

  test("a built-in helper is described once, and a person's skill in its place is listed instead", () => {
    expect(buildSystemPrompt(input)).not.toContain("about edit");
    const prompt = buildSystemPrompt({ ...input, skills: [pythonSkill("edit", "user"), creator] });
    expect(prompt).toContain("about edit");
    expect(prompt).not.toContain("await edit(");
  });

  test("promises only the packages that it is told of, in a stable order", () => {
    expect(buildSystemPrompt(input)).toContain(
      "Python 3.13.1. Beside the standard library it has: dill, numpy.",
    );
    expect(buildSystemPrompt({ ...input, python: undefined })).not.toContain("# Kernel");
  });

  test("a text of the user's own takes the place of ours, not of the rest", () => {
    const prompt = buildSystemPrompt({
      ...input,
      base: "  Be brief. $& {helpers}\n",
      contextFiles: [{ path: "/a", text: "$& A" }],
    });
    expect(prompt).toStartWith("Be brief. $& {helpers}\n\n# Kernel");
    expect(prompt).toContain("## /a\n$& A");
    expect(prompt).toContain("Working directory: /home/ada/engine");
  });
});
