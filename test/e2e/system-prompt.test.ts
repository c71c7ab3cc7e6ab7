/** What the model is told before the first word of the user: by us, by the user's files, by flags; and that all of it is true. */

import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";
import {
  ProviderServer,
  type RecordedRequest,
  type ServedReply,
} from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

/** No tokenizer makes more than one token of three characters of English text and code, on average. */
const CHARS_PER_TOKEN = 3;
const MAX_TOKENS = 2_500;

function write(user: UserHome, files: Record<string, string>): void {
  for (const [name, text] of Object.entries(files)) {
    const path = join(user.home, "..", name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** Runs once with these files (below `home/` and `work/`) and returns what the model was told. */
async function told(files: Record<string, string>, ...args: string[]) {
  await using server = await ProviderServer.start([{ text: "ok" }]);
  using user = new UserHome();
  write(user, files);
  const run = await user.run(["-p", ...args, "hi"], { env: useServer(user, server) });
  expectCode(run, 0);
  const [request] = server.requests;
  return { ...sentRequest(request), body: request?.body, run, cwd: user.cwd };
}

describe("the prompt", () => {
  test(`with the tool's schema has at most ${MAX_TOKENS} tokens`, async () => {
    const { system, body } = await told({});
    const chars = system.length + JSON.stringify(body.tools).length;
    expect(chars / CHARS_PER_TOKEN).toBeLessThan(MAX_TOKENS);
  });

  test("ends with what holds for this session only, and is the same in the next one up to there", async () => {
    const [first, second] = [await told({}), await told({})];
    const [head, facts] = first.system.split("# This session");
    expect(facts).toContain(`Working directory: ${first.cwd}`);
    expect(facts).toContain("Not a git repository");
    // The folder of the runtime, which skills are read from, lies in each home.
    const neutral = (text = "") => text.replaceAll(/\/tmp\/prime-agent-test-\w+/g, "HOME");
    expect(neutral(head)).toBe(neutral(second.system.split("# This session")[0]));
  });

  test("can be replaced and added to, by text and by file", async () => {
    const files = { "work/base.txt": "You are terse.\n", "work/more.txt": "Never shout.\n" };
    const replaced = await told(files, "--system-prompt", "You are terse.");
    expect(replaced.system).toStartWith("You are terse.");
    expect(replaced.system).not.toContain("# Helpers");
    const fromFiles = await told(
      files,
      ...["--system-prompt-file", "base.txt", "--append-system-prompt-file", "more.txt"],
    );
    expect(fromFiles.system).toMatch(/^You are terse\.\n[^]*\nNever shout\.\n/);
    const added = await told(files, "--append-system-prompt", "Never shout.");
    expect(added.system).toMatch(/^You are a coding agent[^]*\nNever shout\.\n\n# This session/);
  });
});

describe("context files", () => {
  const FILES = {
    "home/.prime/agent/AGENTS.md": "of the user",
    "work/.git/HEAD": "ref: refs/heads/topic\n",
    "work/AGENTS.md": "of the root",
    "work/CLAUDE.md": "not read beside AGENTS.md",
    "work/sub/CLAUDE.md": "of the folder",
    "work/sub/deeper/AGENTS.md": "too deep",
    "AGENTS.md": "above the repository",
  };

  test("come from the user and from the repository's root down to the folder, the nearest last", async () => {
    const { system, run } = await told(FILES, "-C", "sub", "--json");
    const order = ["of the user", "of the root", "of the folder"].map((text) =>
      system.indexOf(text),
    );
    expect(order.every((place) => place > 0)).toBe(true);
    expect(order).toEqual([...order].sort((a, b) => a - b));
    for (const text of ["not read", "too deep", "above"]) expect(system).not.toContain(text);
    expect(system).toContain("Git branch: topic");
    expect(run.events[0]?.["context_files"]).toHaveLength(3);
  });

  test.each([["--no-context-files"], ["--bare"]])("are left out with %s", async (flag) => {
    const { system } = await told(FILES, flag);
    for (const text of Object.values(FILES)) expect(system).not.toContain(text.trim() || "-");
  });

  test("that are long are cut, and model and user are told", async () => {
    const { system, run } = await told({ "work/AGENTS.md": "line of text\n".repeat(10_000) });
    expect(system.length).toBeLessThan(60_000);
    expect(system).toMatch(
      /\[\.\.\. cut here, after \d+ of 130000 bytes; the rest is in .*AGENTS\.md\]/,
    );
    expect(run.stderr).toMatch(/warning: .*AGENTS\.md is long/);
  });
});

describe("skills", () => {
  const markdown = (name: string, text = "Does things.") =>
    `---\nname: ${name}\ndescription: ${text}\n---\nHow to.\n`;
  const FILES = {
    "home/.prime/agent/skills/mine/SKILL.md": markdown("mine"),
    "home/.agents/skills/shared/SKILL.md": markdown("shared"),
    "work/.agents/skills/project/SKILL.md": markdown("project"),
    "work/.prime/agent/skills/mine/SKILL.md": markdown("mine", "Of the project."),
    "elsewhere/named/SKILL.md": markdown("named"),
    "work/.prime/agent/skills/coded/SKILL.md": markdown("coded"),
    "work/.prime/agent/skills/coded/pyproject.toml": "[project]\nname='coded'\nversion='1'\n",
    "work/.prime/agent/skills/coded/src/coded/__init__.py":
      "open('RAN', 'w')\ndef run(): return 1\n",
  };
  const names = (system: string) =>
    [...system.matchAll(/<skill><name>([^<]+)/g)].map(([, name]) => name).sort();

  test("of project, user and flags are listed; the nearest of a name wins, with a warning", async () => {
    const { system, run } = await told(FILES, "--skill", "../elsewhere/named");
    expect(names(system)).toEqual(["coded", "mine", "named", "project", "shared", "skill-creator"]);
    expect(system).toContain("Of the project.");
    expect(run.stderr).toContain('"mine"');
  });

  test("of the project run no code unless it is trusted", async () => {
    const untrusted = await told(FILES);
    expect(untrusted.system).toMatch(/<name>coded<\/name><type>markdown/);
    expect(untrusted.run.stderr).toContain("--trust-project lets its code run");
    const trusted = await told(FILES, "--trust-project");
    expect(trusted.system).toMatch(/<name>coded<\/name><type>python/);
  });

  test.each([["--no-skills"], ["--bare"]])("are only the named ones with %s", async (flag) => {
    const { system } = await told(FILES, flag, "--skill", "../elsewhere/named");
    expect(names(system)).toEqual(["named"]);
    expect(system).not.toContain("await edit(");
  });

  test("are listed for people too, as text and as JSON", async () => {
    using user = new UserHome();
    write(user, FILES);
    const text = await user.run(["skills", "list"]);
    expect(text.stdout).toMatch(/^coded +markdown, project/m);
    const json = JSON.parse((await user.run(["skills", "list", "--json"])).stdout) as any[];
    expect(json.find(({ name }) => name === "edit")).toMatchObject({
      type: "python",
      source: "builtin",
      import_name: "edit",
    });
  });
});

describe("what it promises", () => {
  /** Each helper that the prompt names, and a call of it. */
  const CALLS: Record<string, string> = {
    edit: 'await edit("a.txt", "old", "new")',
    "Path.write_text": 'from pathlib import Path; Path("b.txt").write_text("x")',
    attach_image: 'await attach_image("pixel.png")',
    time_limit: "with time_limit(60): pass",
    rlm: 'child = await rlm("task", name="helper")',
    "rlm.list_subagents": "assert len(await rlm.list_subagents()) == 1",
    "rlm.find_models": 'assert await rlm.find_models("test")',
    "agent_message.send":
      'await agent_message.send("text", receiver_role="child", receiver_name="helper")',
    send: 'from agent_message import send; await send("all", "text")',
    "agent_message.list_agents": "await agent_message.list_agents()",
    "rlm.delete_subagent": "await rlm.delete_subagent(child)",
    "goal.create": 'await goal.create("objective")',
    "goal.get": "assert await goal.get()",
    "goal.complete": "await goal.complete()",
    "compact.status": "assert await compact.status()",
    "compact.run": 'await compact.run("what to keep")',
    help: "help(edit)",
  };
  const PNG =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

  function cellOf(calls: string[], packages: string[]): string {
    const lines = ["failures = []"];
    for (const call of calls) {
      lines.push("try:", `    ${call}`, "except BaseException as error:");
      lines.push(`    failures.append(${JSON.stringify(call)} + ": " + repr(error))`);
    }
    lines.push("from importlib.metadata import version");
    lines.push(`versions = [version(name) for name in ${JSON.stringify(packages)}]`);
    return [...lines, "print('FAILURES', failures)"].join("\n");
  }

  test("is there: every helper can be called and every package is installed", async () => {
    let cell = "";
    const promised: string[] = [];
    const answer = (request: RecordedRequest): ServedReply => {
      const { system, results } = sentRequest(request);
      if (results.length > 0 || !system.includes("# Helpers")) return { text: "done" };
      if (cell !== "") return { text: "I am the sub-agent" };
      const helpers = /# Helpers\n([^]*?)\n\n#/.exec(system)?.[1] ?? "";
      promised.push(
        ...[...helpers.matchAll(/([\w.]+)\(|`([A-Z]\w+\.\w+)`/g)].map(
          (match) => match[1] ?? (match[2] as string),
        ),
      );
      const packages = /it has: (.*)\.\n/.exec(system)?.[1]?.split(", ") ?? [];
      expect(packages).toContain("dill");
      cell = cellOf(Object.values(CALLS), packages);
      return { toolCalls: [{ name: "ipython", arguments: { code: cell } }] };
    };
    await using server = await ProviderServer.start(Array.from({ length: 12 }, () => answer));
    using user = new UserHome();
    writeFileSync(join(user.cwd, "a.txt"), "old");
    writeFileSync(join(user.cwd, "pixel.png"), Buffer.from(PNG, "base64"));
    // The kernel has told its packages once: only then the prompt can name them.
    const env = useServer(user, server);
    expectCode(await user.run(["cell", "1"], { env }), 0);
    const run = await user.run(["-p", "--json", "hi"], { env });
    expectCode(run, 0);
    expect([...new Set(promised)].sort()).toEqual(Object.keys(CALLS).sort());
    const output = run.events.find(({ tool_use_result }) => tool_use_result)?.["tool_use_result"];
    expect(output.stdout).toContain("FAILURES []");
  });
});
