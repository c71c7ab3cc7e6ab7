/** argv, taken apart: commands, words, options, and the refusals. */

import { describe, expect, test } from "bun:test";
import { helpText, parseArguments } from "../../../src/cli/arguments.ts";
import { COMMANDS, IGNORED_OPTIONS, OPTIONS } from "../../../src/cli/option-table.ts";
import { UsageError } from "../../../src/errors.ts";

/** `command | words | option=values` for a line of arguments; double quotes group words. */
function parsed(line: string): string {
  const argv = [...line.matchAll(/"([^"]*)"|(\S+)/g)].map(
    (match) => match[1] ?? (match[2] as string),
  );
  const { command, words, options } = parseArguments(argv);
  const names = [...OPTIONS.map(({ flags }) => flags), "-h, --help", ...IGNORED_OPTIONS].flatMap(
    (flags) => /--([\w-]+)/.exec(flags)?.[1] ?? [],
  );
  const given = names.filter((name) => options.has(name));
  const values = given.map((name) => `${name}=${options.all(name).join(",")}`);
  return [command, words.join(" "), values.join(" ")].join(" | ");
}

describe("parseArguments", () => {
  test.each([
    ["", " |  | "],
    ["fix it", " | fix it | "],
    ["exec fix it", "exec | fix it | "],
    ["run fix it", "exec | fix it | "],
    ["-p fix it", " | fix it | print="],
    ["fix it -p", " | fix it | print="],
    ["-p sessions are slow", " | sessions are slow | print="],
    ["sessions list", "sessions | list | "],
    ["-q sessions list", "sessions | list | quiet="],
    ["-- sessions list", " | sessions list | "],
    ["fix -- --weird -x", " | fix --weird -x | "],
    ["exec -", "exec | - | "],
    ["help", "help | help | "],
    ["help me", " | help me | "],
    ["-qv fix", " | fix | quiet= verbose="],
    ["-mlocal/x fix", " | fix | model=local/x"],
    ["-m local/x fix", " | fix | model=local/x"],
    ["--model=local/x=y fix", " | fix | model=local/x=y"],
    ["-m a -m b fix", " | fix | model=a,b"],
    ["--session-id 007 true 1", " | true 1 | session-id=007"],
    ["--check a --check b fix", " | fix | check=a,b"],
    ["-r", " |  | resume="],
    ["-r abc go on", " | go on | resume=abc"],
    ["-r --json go", " | go | json= resume="],
    ["--resume -q go", " | go | quiet= resume="],
    ["--resume= go", " | go | resume="],
    ["fix -- -r -q", " | fix -r -q | "],
    ["--append-system-prompt --be-nice x", " | x | append-system-prompt=--be-nice"],
    ["--yolo --full-auto fix", " | fix | yolo= full-auto="],
  ])("%s is %s", (line, expected) => {
    expect(parsed(line)).toBe(expected);
  });

  test.each([
    ["--modle x", "unknown option --modle", "did you mean --model?"],
    ["-z", "unknown option -z", ""],
    ["--wholly-unlike-anything", "unknown option", "see prime-agent --help"],
    ["-m", "-m needs a value", ""],
    ["--model --json", "--model needs a value", ""],
    ["-m -p x", "-m needs a value", ""],
    ["--quiet=yes", "--quiet takes no value", ""],
    [
      "modles",
      'there is no command "modles"',
      "Did you mean models? For a prompt: prime-agent -- modles",
    ],
    ["session list", 'there is no command "session"', "Did you mean sessions?"],
    ["docter", 'there is no command "docter"', "Did you mean doctor?"],
  ])("%s is refused: %s", (line, message, hint) => {
    const attempt = () => parsed(line);
    expect(attempt).toThrow(UsageError);
    try {
      attempt();
    } catch (error) {
      expect((error as UsageError).message).toContain(message);
      expect((error as UsageError).hint).toContain(hint);
    }
  });

  test.each(["explain", "fix", "why", "hello", "review", "continue", "session trouble today"])(
    "%s is a prompt, since it is like no command",
    (line) => {
      expect(parseArguments(line.split(" ")).command).toBe("");
    },
  );
});

describe("OptionValues", () => {
  test("gives the last value, all values, and a copy with one more", () => {
    const { options } = parseArguments(["-m", "a", "-m", "b", "-q"]);
    expect([options.get("model"), options.all("model"), options.get("quiet")]).toEqual([
      "b",
      ["a", "b"],
      "",
    ]);
    const more = options.with("resume", "x");
    expect([more.get("resume"), options.has("resume")]).toEqual(["x", false]);
  });
});

describe("the help text", () => {
  const text = helpText("1.2.3");

  test("names every command and option, and no default that reads as its opposite", () => {
    for (const { usage } of COMMANDS) expect(text).toContain(usage.split(" ")[0] as string);
    for (const { flags } of OPTIONS) expect(text).toContain(flags);
    expect(text).toContain("prime-agent 1.2.3");
    expect(text).not.toContain("default: true");
    expect(text).not.toMatch(/[ \t]$/m);
  });

  test("fits a terminal of 130 columns", () => {
    const widest = Math.max(...text.split("\n").map((line) => line.length));
    expect(widest).toBeLessThanOrEqual(130);
  });
});
