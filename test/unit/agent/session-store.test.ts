import { describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { SessionLockedError } from "../../../src/agent/errors.ts";
import {
  deleteSession,
  findSession,
  forkSession,
  latestSession,
  listSessions,
} from "../../../src/agent/session-store.ts";
import { Session } from "../../../src/agent/session.ts";
import { UsageError } from "../../../src/errors.ts";
import { messageText } from "../../../src/message.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { assistant, user } from "../../support/transcript.ts";

/** Saves a session of one turn; `age` orders sessions from the latest (0) on. */
function save(
  dir: TempDir,
  id: string,
  age = 0,
  fields: { cwd?: string; name?: string } = {},
): string {
  using session = Session.create({ home: dir.path, cwd: dir.path, id, ...fields });
  session.appendMessage(user(`prompt of ${id}`));
  session.appendMessage(assistant("done"));
  session.close();
  const time = 1_700_000_000 - age;
  utimesSync(session.path as string, time, time);
  return session.path as string;
}

describe("listSessions", () => {
  test("shows the latest first, with what was said first and the latest name", () => {
    using dir = new TempDir();
    save(dir, "old", 100);
    const path = save(dir, "new", 0, { name: "first" });
    using session = Session.open(path);
    session.append({ type: "session_info", name: "second" });
    session.close();
    const [latest, older] = listSessions(dir.path);
    expect(latest).toMatchObject({
      id: "new",
      path,
      cwd: dir.path,
      name: "second",
      firstPrompt: "prompt of new",
      messageCount: 2,
    });
    expect(older).toMatchObject({ id: "old", name: undefined });
  });

  test("leaves out files that are none, and sessions in which nothing was said", () => {
    using dir = new TempDir();
    save(dir, "real");
    dir.write("sessions/garbage.jsonl", "hello\n");
    dir.write("sessions/empty.jsonl", "");
    dir.write("sessions/notes.txt", "x");
    mkdirSync(dir.join("sessions", "folder.jsonl"));
    using silent = Session.create({ home: dir.path, cwd: "/", id: "silent" });
    expect(listSessions(dir.path).map((summary) => summary.id)).toEqual(["real"]);
    expect(silent.path).toBeString();
  });

  test("a damaged file is listed with what is intact", () => {
    using dir = new TempDir();
    const path = save(dir, "x");
    writeFileSync(path, `\0\0\n${readFileSync(path, "utf8").slice(0, -10)}`);
    expect(listSessions(dir.path)).toMatchObject([{ id: "x", firstPrompt: "prompt of x" }]);
  });

  test("a home without sessions is an empty list", () => {
    using dir = new TempDir();
    expect(listSessions(dir.join("none"))).toEqual([]);
  });
});

test("latestSession looks at one folder only", () => {
  using dir = new TempDir();
  save(dir, "here", 50);
  save(dir, "elsewhere", 0, { cwd: "/" });
  expect(latestSession(dir.path, dir.path)?.id).toBe("here");
  expect(latestSession(dir.path, "/nowhere")).toBeUndefined();
});

describe("findSession", () => {
  const ids = ["0190aaaa-1111", "0190aaab-2222", "beef0000-3333"];

  test.each([
    ["beef0000-3333", "beef0000-3333"],
    ["beef", "beef0000-3333"],
    ["0190aaab", "0190aaab-2222"],
    ["my name", "0190aaaa-1111"],
  ])("%p means the session %p", (query, id) => {
    using dir = new TempDir();
    ids.forEach((each, index) => save(dir, each, 0, index === 0 ? { name: "my name" } : {}));
    expect(findSession(dir.path, query, "/")).toBe(dir.join("sessions", `${id}.jsonl`));
  });

  test("takes a path, absolute or from the working directory", () => {
    using dir = new TempDir();
    const path = save(dir, "x");
    expect(findSession("/none", path, "/")).toBe(path);
    expect(findSession("/none", "sessions/x.jsonl", dir.path)).toBe(path);
  });

  test.each([
    ["0190", '2 sessions match "0190": '],
    ["beff", 'there is no session "beff"; the nearest: beef0000-3333'],
    ["0190aaac", 'there is no session "0190aaac"; the nearest: 0190aaa'],
    ["count the files please", 'there is no session "count the files please"'],
    ["", 'there is no session ""'],
    ["./none.jsonl", "there is no session file /w/none.jsonl"],
  ])("refuses %p with a message that helps", (query, message) => {
    using dir = new TempDir();
    for (const id of ids) save(dir, id);
    expect(() => findSession(dir.path, query, "/w")).toThrow(UsageError);
    expect(() => findSession(dir.path, query, "/w")).toThrow(message);
  });
});

describe("forkSession", () => {
  test("copies history, ids, unknown entries and snapshot, and leaves the source alone while it is in use", () => {
    using dir = new TempDir();
    mkdirSync(dir.join("sessions"));
    const source = dir.join("sessions", "s.jsonl");
    writeFileSync(
      source,
      readFileSync(join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl")),
    );
    dir.write("session-artifacts/s/kernel-state.dill", "snapshot");
    dir.write("session-artifacts/s/sessions/child.jsonl", "child");
    const before = readFileSync(source, "utf8");
    using live = Session.open(source);
    using fork = forkSession(source, { home: dir.path, cwd: "/other", name: "copy" });
    const [header, ...rest] = readFileSync(fork.path as string, "utf8").split("\n");
    expect(JSON.parse(header as string)).toMatchObject({
      id: fork.id,
      cwd: "/other",
      parentSession: source,
    });
    expect(rest.join("\n")).toStartWith(before.slice(before.indexOf("\n") + 1));
    expect(fork.messages().map(messageText)).toEqual(live.messages().map(messageText));
    expect(fork.name).toBe("copy");
    expect(readFileSync(join(fork.artifactsDir as string, "kernel-state.dill"), "utf8")).toBe(
      "snapshot",
    );
    expect(existsSync(join(fork.artifactsDir as string, "sessions"))).toBe(false);
    expect(readFileSync(source, "utf8")).toBe(before);
  });

  test("goes on in memory where nothing can be written", () => {
    using dir = new TempDir();
    const source = save(dir, "s");
    using fork = forkSession(source, { home: dir.write("file", ""), cwd: "/" });
    expect(fork.messages().map(messageText)).toEqual(["prompt of s", "done"]);
    expect(fork.warnings).toHaveLength(1);
  });
});

describe("deleteSession", () => {
  test("removes the file, its lock and its artifacts", () => {
    using dir = new TempDir();
    const path = save(dir, "s");
    const artifact = dir.write("session-artifacts/s/out.txt", "x");
    const lock = dir.write("sessions/s.jsonl.lock", '{"pid":1073741824,"start_time":"1"}');
    deleteSession(path);
    expect([path, artifact, lock].filter(existsSync)).toEqual([]);
  });

  test("refuses while the session is in use", () => {
    using dir = new TempDir();
    using session = Session.open(save(dir, "s"));
    expect(() => deleteSession(session.path as string)).toThrow(SessionLockedError);
    expect(existsSync(session.path as string)).toBe(true);
  });
});
