import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { SessionLockedError, SessionUnreadableError } from "../../../src/agent/errors.ts";
import { Session } from "../../../src/agent/session.ts";
import { UsageError } from "../../../src/errors.ts";
import { emptyUsage, messageText } from "../../../src/message.ts";
import { TempDir } from "../../support/temp-dir.ts";
import { assistant, result, user } from "../../support/transcript.ts";

const texts = (session: Session) => session.messages().map(messageText);
const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);

/** A session file with one complete turn, closed again. */
function savedSession(dir: TempDir): string {
  using session = Session.create({ home: dir.path, cwd: "/w" });
  session.appendMessage(user("hello"));
  session.appendMessage(assistant("hi"));
  return session.path as string;
}

describe("Session.create", () => {
  test("writes a header of version 3 into a private file in a private folder", () => {
    using dir = new TempDir();
    using session = Session.create({
      home: dir.join("home"),
      cwd: "/w",
      id: "abc",
      parent: "/p.jsonl",
      depth: 1,
    });
    const path = dir.join("home", "sessions", "abc.jsonl");
    expect(session.path).toBe(path);
    expect(JSON.parse(readFileSync(path, "utf8"))).toEqual({
      type: "session",
      version: 3,
      id: "abc",
      timestamp: session.header.timestamp,
      cwd: "/w",
      parentSession: "/p.jsonl",
      rlmDepth: 1,
    });
    expect([mode(path), mode(dir.join("home", "sessions"))]).toEqual(["600", "700"]);
  });

  test("refuses an id that is taken, also by a session that nobody has open", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    const id = path.slice(path.lastIndexOf("/") + 1, -".jsonl".length);
    const before = readFileSync(path, "utf8");
    expect(() => Session.create({ home: dir.path, cwd: "/", id })).toThrow(UsageError);
    expect(readFileSync(path, "utf8")).toBe(before);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test.each(["", "../x", "a/b", ".hidden", "a b", "x".repeat(200)])(
    "refuses the id %p, which can't be a file name",
    (id) => {
      using dir = new TempDir();
      expect(() => Session.create({ home: dir.path, cwd: "/", id })).toThrow(UsageError);
    },
  );

  test("goes on in memory, and says so once, where nothing can be written", () => {
    using dir = new TempDir();
    const home = dir.write("not-a-folder", "");
    using session = Session.create({ home, cwd: "/", name: "n" });
    session.appendMessage(user("hello"));
    expect(session.path).toBeUndefined();
    expect(session.artifactsDir).toBeUndefined();
    expect(texts(session)).toEqual(["hello"]);
    expect(session.warnings).toEqual([expect.stringContaining("this session is not saved")]);
  });

  test("leaves no file when nothing was said", () => {
    using dir = new TempDir();
    const session = Session.create({ home: dir.path, cwd: "/", name: "n" });
    const artifacts = session.artifactsDir as string;
    session.close();
    session.close();
    expect([existsSync(session.path as string), existsSync(artifacts)]).toEqual([false, false]);
  });
});

describe("append", () => {
  test("chains the entries by 8 hex digits and writes each as one line", () => {
    using dir = new TempDir();
    using session = Session.create({ home: dir.path, cwd: "/", name: "first" });
    session.append({ type: "model_change", provider: "p", modelId: "m" });
    session.append({ type: "thinking_level_change", thinkingLevel: "high" });
    session.append({ type: "session_info", name: "second" });
    const [, ...entries] = readFileSync(session.path as string, "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(entries.map((entry) => entry.parentId)).toEqual([
      null,
      ...entries.slice(0, -1).map((entry) => entry.id),
    ]);
    for (const entry of entries) expect(entry.id).toMatch(/^[0-9a-f]{8}$/);
    expect(entries).toEqual([...session.entries]);
    expect([session.name, session.model, session.thinkingLevel]).toEqual([
      "second",
      { provider: "p", modelId: "m" },
      "high",
    ]);
  });
});

describe("Session.open", () => {
  test("gives the same context as the session that was closed, and goes on from there", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    using session = Session.open(path);
    expect([texts(session), session.warnings]).toEqual([["hello", "hi"], []]);
    session.appendMessage(user("more"));
    session.close();
    using again = Session.open(path);
    expect(texts(again)).toEqual(["hello", "hi", "more"]);
  });

  test("opens and closes a file of another program without changing a byte", () => {
    using dir = new TempDir();
    const path = dir.join("foreign.jsonl");
    copyFileSync(join(import.meta.dir, "../../fixtures/sessions/every-entry.jsonl"), path);
    const before = readFileSync(path);
    using session = Session.open(path);
    expect(session.warnings).toEqual([]);
    expect(session.name).toBe("Count files");
    expect(session.model).toEqual({ provider: "openai", modelId: "gpt-5" });
    expect(texts(session)).toEqual([
      expect.stringContaining("Counted twelve files."),
      "I ran `git status`:\n\nclean",
      expect.stringContaining("Tried recursion."),
      "The kernel was restarted.",
    ]);
    session.close();
    expect(readFileSync(path)).toEqual(before);
  });

  test("the record after a torn one starts on a fresh line, wherever the file was cut", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    const whole = readFileSync(path);
    const lastStart = whole.lastIndexOf(0x0a, whole.length - 2) + 1;
    for (let size = lastStart; size <= whole.length; size += 1) {
      writeFileSync(path, whole.subarray(0, size));
      const kept = size >= whole.length - 1 ? ["hello", "hi"] : ["hello"];
      using session = Session.open(path);
      expect(texts(session)).toEqual(kept);
      expect(session.warnings).toHaveLength(size > lastStart && size < whole.length - 1 ? 1 : 0);
      session.appendMessage(user("next"));
      session.close();
      const lastLine = readFileSync(path, "utf8").trimEnd().split("\n").at(-1) as string;
      expect(JSON.parse(lastLine)).toMatchObject({ message: { content: "next" } });
      using again = Session.open(path);
      expect(texts(again)).toEqual([...kept, "next"]);
    }
  });

  test("300 NUL bytes mid-file are reported and survive appending", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    appendFileSync(path, Buffer.concat([Buffer.alloc(300), Buffer.from("\n")]));
    using session = Session.open(path);
    expect(session.warnings).toEqual(["1 damaged line(s) are skipped (line 4)"]);
    session.appendMessage(user("next"));
    session.close();
    using again = Session.open(path);
    expect(texts(again)).toEqual(["hello", "hi", "next"]);
  });

  test("a call that never finished gets a result that is saved", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    using session = Session.open(path);
    session.appendMessage(assistant("", "a", "b"));
    session.appendMessage(result("a"));
    session.close();
    using repaired = Session.open(path);
    expect(repaired.messages().at(-1)).toMatchObject({
      role: "toolResult",
      toolCallId: "b",
      isError: true,
    });
    expect(repaired.warnings).toEqual(["1 tool call(s) never finished; the model is told so"]);
    const before = [...repaired.messages()];
    repaired.close();
    using again = Session.open(path);
    expect([again.messages(), again.warnings]).toEqual([before, []]);
  });

  test("a lost header costs the folder, not the history", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    writeFileSync(path, readFileSync(path, "utf8").replace('{"type":"session"', "\0"));
    using session = Session.open(path);
    expect(texts(session)).toEqual(["hello", "hi"]);
    expect(session.cwd).toBe("");
    expect(path).toContain(session.id);
    expect(session.warnings.join()).toContain("first line is lost");
  });

  test("a newer format version is opened with a warning", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    writeFileSync(path, readFileSync(path, "utf8").replace('"version":3', '"version":4'));
    using session = Session.open(path);
    expect(session.warnings).toEqual([expect.stringContaining("format version 4")]);
  });

  test("an id in the header that leads out of the folder is not used", () => {
    using dir = new TempDir();
    const path = dir.write(
      "sessions/x.jsonl",
      '{"type":"session","version":3,"id":"../../etc","cwd":"/"}\n',
    );
    using session = Session.open(path);
    expect([session.id, session.artifactsDir]).toEqual(["x", dir.join("session-artifacts", "x")]);
  });

  test.each([
    ["a file that is missing", (dir: TempDir) => dir.join("none.jsonl")],
    ["a folder", (dir: TempDir) => dir.path],
    ["a device", () => "/dev/zero"],
    ["an empty file", (dir: TempDir) => dir.write("empty.jsonl", "")],
    ["a file of other text", (dir: TempDir) => dir.write("notes.jsonl", "hello\nworld\n")],
  ])("refuses %s and leaves no lock behind", (_name, make) => {
    using dir = new TempDir();
    const path = make(dir);
    expect(() => Session.open(path)).toThrow(SessionUnreadableError);
    expect(existsSync(`${path}.lock`)).toBe(false);
  });

  test("refuses a session that is open already, naming the process", () => {
    using dir = new TempDir();
    const path = savedSession(dir);
    using first = Session.open(path);
    expect(() => Session.open(path)).toThrow(SessionLockedError);
    expect(() => Session.open(path)).toThrow(`in use by process ${process.pid}`);
    first.close();
    using second = Session.open(path);
    expect(second.path).toBe(path);
  });
});

describe("attributeChildUsage", () => {
  test("sums the children of one reply on top of its own usage", () => {
    const session = Session.inMemory({ cwd: "/" });
    const own = { ...emptyUsage(), input: 10, totalTokens: 10 };
    const child = { ...emptyUsage(), input: 3, totalTokens: 3 };
    const target = session.appendMessage({ ...assistant("x"), usage: own });
    session.attributeChildUsage(target, child);
    session.attributeChildUsage(target, child);
    expect(session.entries.at(-1)).toMatchObject({
      type: "child_usage_attributed",
      targetId: target,
      childUsage: child,
      aggregateUsage: { input: 16, totalTokens: 16 },
    });
    expect(own.input).toBe(10);
  });
});
