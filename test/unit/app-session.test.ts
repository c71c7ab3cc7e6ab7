import { describe, expect, test } from "bun:test";
import { Session } from "../../src/agent/session.ts";
import { openSession } from "../../src/app-session.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { readConfig } from "../../src/cli/read-config.ts";
import { readEnvironment } from "../../src/config.ts";
import { TempDir } from "../support/temp-dir.ts";
import { user } from "../support/transcript.ts";

/** The session that these flags open, in a home with one saved session. */
function opened(dir: TempDir, ...args: string[]): Session {
  using saved = Session.create({ home: dir.path, cwd: dir.path, id: "saved", name: "before" });
  saved.appendMessage(user("hello"));
  saved.close();
  const environment = readEnvironment({ HOME: dir.path, PRIME_AGENT_HOME: dir.path });
  return openSession(
    readConfig(parseArguments(["exec", "-C", dir.path, ...args]).options, environment),
  );
}

describe("openSession", () => {
  test.each([
    { args: ["-c", "-n", "after"], name: "after" },
    { args: ["-r", "saved", "-n", "after"], name: "after" },
    { args: ["-c"], name: "before" },
  ])("with $args goes on under the name $name", ({ args, name }) => {
    using dir = new TempDir();
    using session = opened(dir, ...args);
    expect([session.id, session.name]).toEqual(["saved", name]);
    session.close();
    using again = Session.open(session.path ?? "");
    expect(again.name).toBe(name);
  });

  test("the same name is not recorded again", () => {
    using dir = new TempDir();
    using session = opened(dir, "-c", "-n", "before");
    expect(session.entries.filter(({ type }) => type === "session_info")).toHaveLength(1);
  });
});
