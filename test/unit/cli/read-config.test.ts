/** Flags, environment and settings as one value: what comes from where, and what is refused. */

import { describe, expect, test } from "bun:test";
import { parseArguments } from "../../../src/cli/arguments.ts";
import { readConfig } from "../../../src/cli/read-config.ts";
import { readEnvironment, type Config } from "../../../src/config.ts";
import { UsageError } from "../../../src/errors.ts";
import { TempDir } from "../../support/temp-dir.ts";

/** A folder with a home in `home` and a project in `work`. */
class Place extends TempDir {
  constructor(files: Record<string, string> = {}) {
    super();
    this.write("home/.keep", "");
    this.write("work/.keep", "");
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  read(args: readonly string[], env: Record<string, string> = {}): Config {
    const environment = readEnvironment({
      HOME: this.join("home"),
      PRIME_AGENT_HOME: this.join("home"),
      ...env,
    });
    const { options } = parseArguments(["exec", "-C", this.join("work"), ...args]);
    return readConfig(options, environment);
  }
}

describe("readConfig", () => {
  test("has sensible values for everything that nobody says", () => {
    using place = new Place();
    const config = place.read([]);
    expect(config).toMatchObject({
      cwd: place.join("work"),
      bare: false,
      offline: false,
      stdin: "auto",
      maxDepth: 1,
      checks: [],
      settings: {},
      model: {},
      output: {
        format: "text",
        quiet: false,
        verbose: false,
        color: "auto",
        includePartialMessages: false,
      },
      limits: { maxRetries: 3 },
      session: { continueLatest: false, fork: false, save: true },
      prompt: { contextFiles: true, skills: true, skillPaths: [], trustProject: false, images: [] },
      kernel: { onBusy: "cancel", envPass: [], transport: "ipc" },
    });
    expect(Object.isFrozen(config)).toBe(true);
  });

  test.each<[string, object]>([
    ["--json", { output: { format: "stream-json" } }],
    ["-o json", { output: { format: "json" } }],
    ["--json -o text", { output: { format: "text" } }],
    ["--no-color --color always", { output: { color: "never" } }],
    ["--timeout 90", { limits: { timeoutMs: 90_000 } }],
    [
      "--timeout 1.5m --cell-timeout 500ms",
      { limits: { timeoutMs: 90_000 }, kernel: { cellTimeoutMs: 500 } },
    ],
    [
      "--max-turns 3 --max-tokens 10 --max-budget-usd 0.5 --max-retries 0",
      { limits: { maxTurns: 3, maxTokens: 10, maxBudgetUsd: 0.5, maxRetries: 0 } },
    ],
    [
      "-m a/b --effort high --base-url http://x --api y --api-key-env Z",
      { model: { selector: "a/b", effort: "high", baseUrl: "http://x", api: "y", apiKeyEnv: "Z" } },
    ],
    ["--thinking low", { model: { effort: "low" } }],
    ["-c -n name --no-session", { session: { continueLatest: true, name: "name", save: false } }],
    ["-r abc --fork", { session: { resume: "abc", fork: true } }],
    ["-r", { session: { resume: "" } }],
    [
      "--no-context-files --no-skills --trust-project",
      { prompt: { contextFiles: false, skills: false, trustProject: true } },
    ],
    ["--bare", { bare: true, prompt: { contextFiles: false, skills: false } }],
    [
      "--on-busy restart --env-pass A --env-pass B",
      { kernel: { onBusy: "restart", envPass: ["A", "B"] } },
    ],
    ["--check a --check b", { checks: ["a", "b"] }],
    ["--python python3.12", { kernel: { python: "python3.12" } }],
  ])("%s", (line, expected) => {
    using place = new Place();
    expect(place.read(line.split(" "))).toMatchObject(expected);
  });

  test("takes paths from the folder of -C", () => {
    using place = new Place({ "work/p.txt": "be nice", "work/q.txt": "be brief" });
    const line = "-i a.png --skill s --existing k.json --python ./py --output-last-message o.txt";
    const config = place.read([
      ...line.split(" "),
      "--system-prompt-file",
      "p.txt",
      "--append-system-prompt-file",
      "q.txt",
    ]);
    const inWork = (name: string) => place.join("work", name);
    expect(config.prompt).toMatchObject({ images: [inWork("a.png")], skillPaths: [inWork("s")] });
    expect(config.prompt).toMatchObject({
      systemPrompt: "be nice",
      appendSystemPrompt: "be brief",
    });
    expect(config.kernel).toMatchObject({ existing: inWork("k.json"), python: inWork("py") });
    expect(config.output.lastMessageFile).toBe(inWork("o.txt"));
  });

  test("takes a text before a file of the same kind", () => {
    using place = new Place({ "work/p.txt": "from the file" });
    const args = ["--system-prompt", "from the flag", "--system-prompt-file", "p.txt"];
    expect(place.read(args).prompt.systemPrompt).toBe("from the flag");
  });
});

describe("precedence", () => {
  const FILES = {
    "home/settings.json":
      '{"commandPrefix": "user", "shellPath": "/user", "maxRetries": 7, "unknown": 1}',
    "work/.prime/agent/settings.json": '{"commandPrefix": "project"}',
  };

  test("the environment's model stands behind the flag's; settings are kept apart", () => {
    using place = new Place({ "home/settings.json": '{"model": "of/settings"}' });
    const env = { PRIME_AGENT_MODEL: "of/env" };
    expect(place.read(["-m", "of/flag"], env).model.selector).toBe("of/flag");
    expect(place.read([], env).model.selector).toBe("of/env");
    const plain = place.read([], { PRIME_AGENT_MODEL: "" });
    expect([plain.model.selector, plain.settings.model]).toEqual([undefined, "of/settings"]);
  });

  test("a flag beats the project, which must be trusted and beats the user", () => {
    using place = new Place(FILES);
    expect(place.read([]).kernel.commandPrefix).toBe("user");
    expect(place.read(["--trust-project"]).kernel).toMatchObject({
      commandPrefix: "project",
      shellPath: "/user",
    });
    expect(place.read(["--trust-project", "--command-prefix", "flag"]).kernel.commandPrefix).toBe(
      "flag",
    );
    expect(place.read([]).limits.maxRetries).toBe(7);
    expect(place.read(["--max-retries", "1"]).limits.maxRetries).toBe(1);
  });

  test("--bare knows no settings at all", () => {
    using place = new Place(FILES);
    const config = place.read(["--bare", "--trust-project"]);
    expect([config.settings, config.kernel.commandPrefix, config.limits.maxRetries]).toEqual([
      {},
      undefined,
      3,
    ]);
  });
});

describe("refused", () => {
  test.each([
    ["-C nowhere", "does not exist"],
    ["-o xml", "--output-format takes text, json, stream-json"],
    ["--color red", "--color takes auto, always, never"],
    ["--stdin maybe", "--stdin takes auto, wait, ignore"],
    ["--on-busy ask", "--on-busy takes cancel, restart"],
    ["--timeout soon", "--timeout takes a duration such as 90s, 5m or 1h"],
    ["--max-turns 0", "--max-turns takes a whole number of at least 1"],
    ["--max-tokens 1e3", "--max-tokens takes a whole number"],
    ["--max-budget-usd free", "--max-budget-usd takes a number of at least 0"],
    ["--max-retries -1", "--max-retries takes a whole number of at least 0"],
    ["--fork", "--fork needs -c or -r"],
    ["--system-prompt-file nowhere", "--system-prompt-file: "],
  ])("%s: %s", (line, says) => {
    using place = new Place();
    const attempt = () => place.read(line.split(" "));
    expect(attempt).toThrow(UsageError);
    expect(attempt).toThrow(says);
  });

  test.each([
    ["{", "is not valid JSON"],
    ["[]", "must hold a JSON object"],
    ['{"effort": 3}', '"effort" must be a string'],
    ['{"skills": [1]}', '"skills" must be a list of paths'],
    ['{"maxRetries": 0.5}', '"maxRetries" must be a whole number from 0'],
  ])("the settings %s: they %s, and the file is named", (text, says) => {
    using place = new Place({ "home/settings.json": text });
    expect(() => place.read([])).toThrow(says);
    expect(() => place.read([])).toThrow(place.join("home/settings.json"));
    expect(() => place.read(["--bare"])).not.toThrow();
  });
});
