import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import { skillPrompt } from "../../../src/agent/skill.ts";
import { discoverSkills, listSkills, type SkillOptions } from "../../../src/agent/skills.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** A repository with a person's home beside it; `find` looks from `repo/sub`. */
class World extends TempDir {
  skill(folder: string, fields = `description: about ${folder}`): string {
    return this.write(`${folder}/SKILL.md`, `---\n${fields}\n---\nbody\n`);
  }

  pythonSkill(folder: string, importName: string, fields?: string): string {
    this.write(
      `${folder}/pyproject.toml`,
      '[project]\nname = "x"\ndependencies = ["requests>=2"]\n',
    );
    this.write(`${folder}/src/${importName}/__init__.py`, "");
    return this.skill(folder, fields);
  }

  find(options: Partial<SkillOptions> = {}) {
    mkdirSync(this.join("repo/sub"), { recursive: true });
    return discoverSkills({
      cwd: this.join("repo/sub"),
      home: this.join("home/.prime/agent"),
      userHome: this.join("home"),
      repositoryRoot: this.join("repo"),
      paths: [],
      builtinDir: undefined,
      discover: true,
      trustProject: false,
      ...options,
    });
  }
}

const USER = "home/.prime/agent/skills";
const names = (set: { skills: Array<{ name: string }> }) => set.skills.map((skill) => skill.name);

describe("discoverSkills", () => {
  test("finds the skills of every place, in the order of precedence", () => {
    using world = new World();
    world.skill("repo/sub/.prime/agent/skills/a");
    world.skill("repo/sub/.agents/skills/b");
    world.skill("repo/.prime/agent/skills/c");
    world.skill("repo/.agents/skills/d");
    world.skill(`${USER}/e`);
    world.skill("home/.agents/skills/f");
    world.skill("named/g");
    world.skill("builtin/h");
    world.skill("above/.agents/skills/not-in-the-repository");
    const set = world.find({ paths: [world.join("named/g")], builtinDir: world.join("builtin") });
    expect(set.skills.map((skill) => `${skill.name} ${skill.source}`)).toEqual([
      "a project",
      "b project",
      "c project",
      "d project",
      "e user",
      "f user",
      "g path",
      "h builtin",
    ]);
    expect(set.warnings).toEqual([]);
  });

  test("outside of a repository only the working folder counts as the project", () => {
    using world = new World();
    world.skill("repo/sub/.agents/skills/a");
    world.skill("repo/.agents/skills/b");
    expect(names(world.find({ repositoryRoot: undefined }))).toEqual(["a"]);
  });

  test("the person's own skills stay theirs when the home folder is the repository", () => {
    using world = new World();
    world.pythonSkill("home/.agents/skills/mine", "mine");
    const set = world.find({ cwd: world.join("home"), repositoryRoot: world.join("home") });
    expect(set.skills).toMatchObject([
      { name: "mine", source: "user", python: { importName: "mine" } },
    ]);
    expect(set.warnings).toEqual([]);
  });

  test("the first of a name wins, with a warning that names both", () => {
    using world = new World();
    const first = world.skill("repo/.agents/skills/same");
    const second = world.skill(`${USER}/same`);
    const set = world.find();
    expect(set.skills.map((skill) => skill.location)).toEqual([first]);
    expect(set.warnings).toEqual([`skill "same" in ${second} is hidden by ${first}`]);
  });

  test("a link to the same skill is not a collision, and a loop of links ends", () => {
    using world = new World();
    world.skill(`${USER}/real`);
    mkdirSync(world.join("home/.agents"), { recursive: true });
    symlinkSync(world.join(USER), world.join("home/.agents/skills"));
    symlinkSync(world.join(USER), world.join(`${USER}/loop`));
    expect(world.find()).toMatchObject({ skills: [{ name: "real" }], warnings: [] });
  });

  test("folders are searched below each other, but not below a skill, in .git or in node_modules", () => {
    using world = new World();
    world.skill(`${USER}/group/deep/inner`);
    world.skill(`${USER}/outer`);
    world.skill(`${USER}/outer/nested`);
    world.skill(`${USER}/node_modules/x`);
    world.skill(`${USER}/.git/y`);
    expect(names(world.find())).toEqual(["inner", "outer"]);
  });

  test("--skill takes a skill, its file, a folder of skills and a tilde, also when nothing else is read", () => {
    using world = new World();
    world.skill(`${USER}/unread`);
    world.skill("one/a");
    const file = world.skill("two/b");
    world.skill("many/c");
    world.skill("many/d");
    world.skill("home/mine/e");
    const set = world.find({
      discover: false,
      paths: ["../../one/a", file, world.join("many"), "~/mine"],
    });
    expect(names(set)).toEqual(["a", "b", "c", "d", "e"]);
  });

  test("--skill with nothing there is a warning", () => {
    using world = new World();
    expect(world.find({ paths: ["/none"] }).warnings).toEqual(["--skill /none: there is no skill"]);
  });

  test("missing built-in skills are a warning, and none when they are turned off", () => {
    using world = new World();
    expect(world.find({ builtinDir: world.join("none") }).warnings).toHaveLength(1);
    expect(world.find({ builtinDir: world.join("none"), discover: false }).warnings).toEqual([]);
  });
});

describe("a skill's fields", () => {
  const cases: Array<
    [
      name: string,
      folder: string,
      fields: string,
      found: object | undefined,
      warning: string | undefined,
    ]
  > = [
    [
      "the folder names a skill without a name",
      "pdf",
      "description: x",
      { name: "pdf", hidden: false },
      undefined,
    ],
    [
      "a hidden skill is found",
      "pdf",
      "description: x\ndisable-model-invocation: true",
      { hidden: true },
      undefined,
    ],
    [
      "unknown fields are ignored",
      "pdf",
      "description: x\nlicense: MIT\nmetadata: {a: [1]}",
      { name: "pdf" },
      undefined,
    ],
    [
      "a multi-line description is kept",
      "pdf",
      "description: |\n  one\n  two",
      { description: "one\ntwo" },
      undefined,
    ],
    [
      "another name than the folder's is a warning",
      "pdf",
      "name: other\ndescription: x",
      { name: "other" },
      "differs from its folder",
    ],
    [
      "capitals are a warning",
      "PDF",
      "description: x",
      { name: "PDF" },
      "other characters than a-z",
    ],
    [
      "two hyphens in a row are a warning",
      "a--b",
      "description: x",
      { name: "a--b" },
      "two hyphens",
    ],
    [
      "a hyphen at the end is a warning",
      "a-",
      "description: x",
      { name: "a-" },
      "begins or ends with a hyphen",
    ],
    ["a long name is a warning", "a".repeat(65), "description: x", {}, "longer than 64"],
    [
      "a long description is a warning",
      "pdf",
      `description: ${"x".repeat(1025)}`,
      {},
      "longer than 1024",
    ],
    ["no description leaves the skill out", "pdf", "name: pdf", undefined, "no description"],
    [
      "an empty description leaves the skill out",
      "pdf",
      'description: " "',
      undefined,
      "no description",
    ],
    [
      "invalid YAML leaves the skill out, naming the line",
      "pdf",
      "name: pdf\ndescription: a: b",
      undefined,
      "not valid YAML at line 3",
    ],
  ];
  test.each(cases)("%s", (_name, folder, fields, found, warning) => {
    using world = new World();
    world.skill(`${USER}/${folder}`, fields);
    const set = world.find();
    if (found) expect(set.skills).toMatchObject([found]);
    else expect(set.skills).toEqual([]);
    expect(set.warnings).toEqual(warning === undefined ? [] : [expect.stringContaining(warning)]);
  });

  test("a file without front matter, and a SKILL.md that is a folder, are left out with a warning", () => {
    using world = new World();
    world.write(`${USER}/plain/SKILL.md`, "# Just text\n");
    mkdirSync(world.join(USER, "folder", "SKILL.md"), { recursive: true });
    const set = world.find();
    expect(set.skills).toEqual([]);
    expect(set.warnings).toEqual([
      expect.stringContaining("not a file"),
      expect.stringContaining("no front matter"),
    ]);
  });
});

describe("Python skills", () => {
  test("have an import name, a source folder and their requirements", () => {
    using world = new World();
    world.pythonSkill(`${USER}/web-search`, "web_search");
    expect(world.find().skills[0]?.python).toEqual({
      importName: "web_search",
      sourceDir: world.join(USER, "web-search/src"),
      projectFile: world.join(USER, "web-search/pyproject.toml"),
      dependencies: ["requests>=2"],
    });
  });

  const broken: Array<
    [name: string, toml: string, importName: string, folder: string, warning: string]
  > = [
    ["without the package", "[project]\n", "other", "web", "src/web/__init__.py is missing"],
    ["with a broken pyproject.toml", "[project\n", "web", "web", "pyproject.toml: "],
    ["with a name that Python can't import", "[project]\n", "2d", "2d", "can't be a Python name"],
  ];
  test.each(broken)(
    "%s become written skills, with a warning",
    (_name, toml, importName, folder, warning) => {
      using world = new World();
      world.skill(`${USER}/${folder}`);
      world.write(`${USER}/${folder}/pyproject.toml`, toml);
      world.write(`${USER}/${folder}/src/${importName}/__init__.py`, "");
      const set = world.find();
      expect(set.skills).toMatchObject([{ name: folder }]);
      expect(set.skills[0]?.python).toBeUndefined();
      expect(set.warnings).toEqual([expect.stringContaining(warning)]);
    },
  );

  test("of one import name both load, with a warning that names both", () => {
    using world = new World();
    world.pythonSkill(`${USER}/a-b`, "a_b");
    world.pythonSkill(`${USER}/a_b`, "a_b");
    const set = world.find();
    expect(names(set)).toEqual(["a-b", "a_b"]);
    expect(set.warnings.at(-1)).toBe('skills "a-b" and "a_b" are both imported as a_b');
  });

  test("of the project run code only when it is trusted", () => {
    using world = new World();
    world.pythonSkill("repo/.agents/skills/tool", "tool");
    expect(world.find({ trustProject: true }).skills).toMatchObject([
      { python: { importName: "tool" } },
    ]);
    const untrusted = world.find();
    expect(untrusted.skills).toMatchObject([{ name: "tool" }]);
    expect(untrusted.skills[0]?.python).toBeUndefined();
    expect(untrusted.warnings).toEqual([expect.stringContaining("--trust-project")]);
  });

  test("of an untrusted project can't take the place of a built-in one", () => {
    using world = new World();
    world.pythonSkill("repo/.agents/skills/edit", "edit");
    world.pythonSkill("builtin/edit", "edit");
    const set = world.find({ builtinDir: world.join("builtin") });
    expect(set.skills).toMatchObject([{ name: "edit", source: "builtin" }]);
    expect(set.warnings).toEqual([expect.stringContaining("the project is not trusted")]);
  });
});

test("skillPrompt is the skill's text, where its files lie, and what the person said", () => {
  using world = new World();
  world.skill(`${USER}/pdf`);
  const [skill] = world.find().skills;
  const folder = world.join(USER, "pdf");
  const text = `Use the skill "pdf". Its paths are relative to ${folder}.\n\n<skill>\nbody\n</skill>`;
  expect(skill && skillPrompt(skill, " ")).toBe(text);
  expect(skill && skillPrompt(skill, " fill it in ")).toBe(`${text}\n\nfill it in`);
});

describe("listSkills", () => {
  test("shows name, type, description, location and import name, escaped", () => {
    using world = new World();
    const a = world.skill(`${USER}/a`, 'description: if x < y & "z"');
    const b = world.pythonSkill(`${USER}/b-c`, "b_c", "description: multi\n  line");
    world.skill(`${USER}/hidden`, "description: x\ndisable-model-invocation: true");
    expect(listSkills(world.find().skills)).toBe(
      `<skills>
<skill><name>a</name><type>markdown</type><description>if x &lt; y &amp; &quot;z&quot;</description><location>${a}</location></skill>
<skill><name>b-c</name><type>python</type><description>multi line</description><location>${b}</location><import>b_c</import></skill>
</skills>`,
    );
  });

  test("is empty without skills, and when all are hidden", () => {
    using world = new World();
    expect(listSkills([])).toBe("");
    world.skill(`${USER}/hidden`, "description: x\ndisable-model-invocation: true");
    expect(listSkills(world.find().skills)).toBe("");
  });
});
