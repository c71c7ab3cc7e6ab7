import { describe, expect, test } from "bun:test";
import { existsSync, utimesSync } from "node:fs";
import { Session } from "../../../src/agent/session.ts";
import { runSessions, type SessionsOptions } from "../../../src/cli/sessions.ts";
import { UsageError } from "../../../src/errors.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { assistant, user } from "../../support/transcript.ts";

/** A home with sessions; `run` is the command in the folder `work`. */
class Home extends TempDir {
  save(id: string, prompt: string, fields: { cwd?: string; name?: string } = {}): string {
    using session = Session.create({ home: this.path, cwd: this.path, id, ...fields });
    session.appendMessage(user(prompt));
    session.appendMessage(assistant("the answer"));
    session.close();
    utimesSync(session.path as string, 1_700_000_000, 1_700_000_000);
    return session.path as string;
  }

  run(words: string[], options: Partial<SessionsOptions> = {}): string {
    return runSessions(words, {
      home: this.path,
      cwd: this.path,
      all: false,
      format: undefined,
      json: false,
      ...options,
    });
  }
}

describe("sessions list", () => {
  test("shows this folder's sessions, one a line, with nothing that moves the cursor", () => {
    using home = new Home();
    home.save("aaaaaaaa-1", "first\u001b[2J\nsecond");
    home.save("bbbbbbbb-1", "x", { cwd: "/" });
    expect(home.run([])).toMatch(
      /^aaaaaaaa {2}20\d\d-\d\d-\d\d \d\d:\d\d {5}2 messages {2}first\\x1b\[2J\n$/,
    );
  });

  test("--all shows every folder's, with as much of the ids as tells them apart, names before prompts", () => {
    using home = new Home();
    home.save("aaaaaaaa-1", "x", { name: "named" });
    home.save("aaaaaaaa-2", "y", { cwd: "/other" });
    const lines = home.run(["list"], { all: true }).trim().split("\n").sort();
    expect(lines).toEqual([
      expect.stringMatching(/^aaaaaaaa-1 .* named {2}\(/),
      expect.stringMatching(/^aaaaaaaa-2 .* y {2}\(\/other\)$/),
    ]);
  });

  test("as JSON is what a program needs", () => {
    using home = new Home();
    const path = home.save("abc", "hello");
    expect(JSON.parse(home.run(["list"], { json: true }))).toMatchObject([
      { id: "abc", path, name: null, first_prompt: "hello", message_count: 2 },
    ]);
    expect(JSON.parse(home.run(["list"], { json: true, cwd: "/" }))).toEqual([]);
  });

  test("says so when there is nothing", () => {
    using home = new Home();
    expect(home.run(["list"])).toContain("--all");
    expect(home.run(["list"], { all: true })).toBe("No sessions are saved.\n");
  });
});

describe("sessions show, export and path", () => {
  test("find a session by the beginning of its id", () => {
    using home = new Home();
    const path = home.save("abc", "hello");
    expect(home.run(["path", "a"])).toBe(`${path}\n`);
    expect(home.run(["show", "a"])).toContain("## User\n\nhello\n\n## Assistant");
    expect(home.run(["export", "a"])).toBe(home.run(["show", "a"]));
    expect(home.run(["export", "a"], { format: "html" })).toStartWith("<!doctype html>");
  });

  test("work on a session that is in use", () => {
    using home = new Home();
    using session = Session.open(home.save("abc", "hello"));
    expect(home.run(["show", "abc"])).toContain("hello");
    expect(session.path).toBeString();
  });
});

describe("sessions rm", () => {
  test("removes all that are named", () => {
    using home = new Home();
    const paths = [home.save("abc", "x"), home.save("def", "y")];
    expect(home.run(["rm", "abc", "def"])).toBe(paths.map((path) => `removed ${path}\n`).join(""));
    expect(paths.some(existsSync)).toBe(false);
  });

  test("removes none when one of them is mistyped", () => {
    using home = new Home();
    const path = home.save("abc", "x");
    expect(() => home.run(["rm", "abc", "abd"])).toThrow(UsageError);
    expect(existsSync(path)).toBe(true);
  });
});

test.each([
  [["lst"], {}, 'no "sessions lst"'],
  [["show"], {}, "needs a session"],
  [["rm"], {}, "needs a session"],
  [["path", "a", "b"], {}, "takes one session"],
  [["show", "none"], {}, 'no session "none"'],
  [["export", "abc"], { format: "pdf" }, "can't be exported as pdf"],
])("sessions %p is refused", (words, options, message) => {
  using home = new Home();
  home.save("abc", "x");
  expect(() => home.run(words, options)).toThrow(UsageError);
  expect(() => home.run(words, options)).toThrow(message);
});
