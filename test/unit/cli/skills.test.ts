import { expect, test } from "bun:test";
import type { Skill } from "../../../src/agent/skill.ts";
import { runSkills } from "../../../src/cli/skills.ts";
import { UsageError } from "../../../src/errors.ts";

const pdf: Skill = {
  name: "pdf",
  description: "Reads PDF files.\nAll of them.",
  location: "/s/pdf/SKILL.md",
  source: "user",
  hidden: false,
};
const web: Skill = {
  name: "web-search",
  description: "\u001b[31mSearches.",
  location: "/s/web/SKILL.md",
  source: "builtin",
  hidden: true,
  python: {
    importName: "web_search",
    sourceDir: "/s/web/src",
    projectFile: "/s/web/pyproject.toml",
    dependencies: [],
  },
};
const set = { skills: [pdf, web], warnings: [] };

test("skills list shows kind, source, description and file of each", () => {
  const list = `pdf         markdown, user
            Reads PDF files.
            /s/pdf/SKILL.md
web-search  python, builtin, hidden from the model
            \\x1b[31mSearches.
            /s/web/SKILL.md
`;
  expect(runSkills(["list"], set, false)).toBe(list);
  expect(runSkills([], set, false)).toBe(list);
});

test("skills list as JSON is what a program needs", () => {
  expect(JSON.parse(runSkills(["list"], set, true))).toMatchObject([
    { name: "pdf", type: "markdown", source: "user", import_name: null },
    { name: "web-search", type: "python", hidden: true, import_name: "web_search" },
  ]);
});

test("skills list says so when there are none", () => {
  expect(runSkills(["list"], { skills: [], warnings: [] }, false)).toBe(
    "There are no skills here.\n",
  );
});

test.each([[["show"]], [["list", "pdf"]]])("skills %p is refused", (words) => {
  expect(() => runSkills(words, set, false)).toThrow(UsageError);
});
