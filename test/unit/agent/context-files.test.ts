import { describe, expect, test } from "bun:test";
import { mkdirSync, symlinkSync } from "node:fs";
import {
  currentBranch,
  findRepositoryRoot,
  MAX_CONTEXT_FILE_BYTES,
  readContextFiles,
} from "../../../src/agent/context-files.ts";
import { TempDir } from "../../support/temp-dir.ts";

function read(dir: TempDir, repositoryRoot: string | undefined = dir.join("repo")) {
  mkdirSync(dir.join("repo/sub"), { recursive: true });
  return readContextFiles({ cwd: dir.join("repo/sub"), home: dir.join("home"), repositoryRoot });
}

describe("readContextFiles", () => {
  test("reads the person's file, then the project's from the root down", () => {
    using dir = new TempDir();
    dir.write("AGENTS.md", "above the repository");
    const paths = ["home/AGENTS.md", "repo/AGENTS.md", "repo/sub/AGENTS.md"].map((name) =>
      dir.write(name, name),
    );
    expect(read(dir)).toEqual({
      files: [
        { path: paths[0] as string, text: "home/AGENTS.md" },
        { path: paths[1] as string, text: "repo/AGENTS.md" },
        { path: paths[2] as string, text: "repo/sub/AGENTS.md" },
      ],
      warnings: [],
    });
  });

  test("takes CLAUDE.md where there is no AGENTS.md", () => {
    using dir = new TempDir();
    dir.write("repo/CLAUDE.md", "claude");
    dir.write("repo/sub/AGENTS.md", "agents");
    dir.write("repo/sub/CLAUDE.md", "not read");
    expect(read(dir).files.map((file) => file.text)).toEqual(["claude", "agents"]);
  });

  test("outside of a repository only the working folder counts", () => {
    using dir = new TempDir();
    dir.write("repo/AGENTS.md", "root");
    dir.write("repo/sub/AGENTS.md", "sub");
    const { files } = readContextFiles({
      cwd: dir.join("repo/sub"),
      home: dir.join("home"),
      repositoryRoot: undefined,
    });
    expect(files.map((file) => file.text)).toEqual(["sub"]);
  });

  test("nothing there is nothing wrong", () => {
    using dir = new TempDir();
    dir.write("repo/AGENTS.md", "\n  \n");
    expect(read(dir)).toEqual({ files: [], warnings: [] });
  });

  test("a long file is cut at whole lines, and both the text and a warning say so", () => {
    using dir = new TempDir();
    const path = dir.write("repo/AGENTS.md", "Zoë says hello\n".repeat(5000));
    const { files, warnings } = read(dir);
    const text = files[0]?.text as string;
    expect(Buffer.byteLength(text)).toBeLessThan(MAX_CONTEXT_FILE_BYTES + 500);
    expect(text).toEndWith(
      `[... cut here, after ${MAX_CONTEXT_FILE_BYTES} of 80000 bytes; the rest is in ${path}]`,
    );
    expect(text).not.toContain("\uFFFD");
    expect(warnings).toEqual([
      `${path} is long: the model is given ${MAX_CONTEXT_FILE_BYTES} of 80000 bytes`,
    ]);
  });

  test("a link inside the project is followed, and one text is not given twice", () => {
    using dir = new TempDir();
    dir.write("repo/docs/agents.txt", "linked");
    mkdirSync(dir.join("repo/sub"), { recursive: true });
    symlinkSync("docs/agents.txt", dir.join("repo/AGENTS.md"));
    symlinkSync("../docs/agents.txt", dir.join("repo/sub/CLAUDE.md"));
    expect(read(dir)).toMatchObject({ files: [{ text: "linked" }], warnings: [] });
  });

  const unusable: Array<[name: string, make: (dir: TempDir) => unknown, warning: string]> = [
    [
      "a link out of the project",
      (dir) => symlinkSync(dir.write("secret", "key"), dir.join("repo/AGENTS.md")),
      "a link out of the project",
    ],
    ["a binary file", (dir) => dir.write("repo/AGENTS.md", Buffer.from([1, 0, 2])), "it is binary"],
    ["a folder", (dir) => mkdirSync(dir.join("repo/AGENTS.md")), "not a file"],
  ];
  test.each(unusable)("%s is left out with a warning", (_name, make, warning) => {
    using dir = new TempDir();
    mkdirSync(dir.join("repo"));
    make(dir);
    expect(read(dir)).toEqual({ files: [], warnings: [expect.stringContaining(warning)] });
  });

  test("a link that leads nowhere is as good as none", () => {
    using dir = new TempDir();
    dir.write("repo/CLAUDE.md", "claude");
    symlinkSync("nowhere", dir.join("repo/AGENTS.md"));
    expect(read(dir)).toMatchObject({ files: [{ text: "claude" }], warnings: [] });
  });
});

describe("the repository", () => {
  test("begins at the nearest folder with .git", () => {
    using dir = new TempDir();
    dir.write("repo/.git/HEAD", "ref: refs/heads/feature/x\n");
    mkdirSync(dir.join("repo/a/b"), { recursive: true });
    expect(findRepositoryRoot(dir.join("repo/a/b"))).toBe(dir.join("repo"));
    expect(currentBranch(dir.join("repo"))).toBe("feature/x");
  });

  test("of a worktree, a detached head and a broken .git are told or not, but never an error", () => {
    using dir = new TempDir();
    dir.write("main/.git/worktrees/w/HEAD", "0123456789abcdef0123\n");
    dir.write("w/.git", `gitdir: ${dir.join("main/.git/worktrees/w")}\n`);
    dir.write("broken/.git", "what");
    expect(currentBranch(dir.join("w"))).toBe("0123456789ab");
    expect(currentBranch(dir.join("broken"))).toBeUndefined();
  });
});
