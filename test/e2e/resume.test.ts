/** Sessions on the command line: which one a run goes on with, what is kept, and what the model is told. */

import { describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";
import { ProviderServer, type ServedScript } from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });

/** A home with a model that says `text 1`, `text 2`, … unless a script says otherwise. */
class Conversation implements AsyncDisposable {
  readonly user = new UserHome();
  readonly server: ProviderServer;
  readonly env: Record<string, string>;

  private constructor(server: ProviderServer) {
    this.server = server;
    this.env = useServer(this.user, server);
  }

  static async begin(script?: ServedScript[]): Promise<Conversation> {
    const texts = Array.from({ length: 12 }, (_, index) => ({ text: `text ${index + 1}` }));
    return new Conversation(await ProviderServer.start(script ?? texts));
  }

  /** Runs headless and quiet. */
  run(...args: string[]) {
    return this.user.run(["-p", "-q", ...args], { env: this.env });
  }

  /** What the user said in the last request. */
  get said(): string[] {
    return sentRequest(this.server.requests.at(-1)).userTexts;
  }

  get sessions(): string[] {
    const folder = join(this.user.home, ".prime/agent/sessions");
    return existsSync(folder) ? readdirSync(folder).sort() : [];
  }

  path(id: string): string {
    return join(this.user.home, `.prime/agent/sessions/${id}.jsonl`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.server[Symbol.asyncDispose]();
    this.user[Symbol.dispose]();
  }
}

describe("which session", () => {
  test("-c goes on with the latest of this folder, and begins one where there is none", async () => {
    await using talk = await Conversation.begin();
    expectCode(await talk.run("-c", "first"), 0);
    expectCode(await talk.run("second"), 0);
    mkdirSync(join(talk.user.cwd, "sub"));
    expectCode(await talk.run("-C", "sub", "elsewhere"), 0);
    expectCode(await talk.run("-c", "third"), 0);
    expect(talk.said).toEqual(["second", "third"]);
    expect(talk.sessions).toHaveLength(3);
  });

  test("-r takes an id, the beginning of one, a name, a path, or the latest of all", async () => {
    await using talk = await Conversation.begin();
    expectCode(await talk.run("--session-id", "abc-first", "-n", "my work", "one"), 0);
    expectCode(await talk.run("--session-id", "xyz-other", "other"), 0);
    for (const query of ["abc-first", "abc", "my work", talk.path("abc-first")]) {
      expectCode(await talk.run("-r", query, `by ${query === "abc" ? query : "whole"}`), 0);
      expect(talk.said[0]).toBe("one");
    }
    expectCode(await talk.run("--resume=", "latest"), 0);
    expect(talk.said.slice(-2)).toEqual(["by whole", "latest"]);
    expectCode(await talk.user.run(["resume", "xyz", "with", "words"], { env: talk.env }), 0);
    expect(talk.said).toEqual(["other", "with words"]);
    expectCode(await talk.run("-r", "abc", "-n", "renamed", "again"), 0);
    const list = await talk.user.run(["sessions", "list"]);
    expect(list.stdout).toMatch(/abc-firs.*renamed/);
  });

  test.each([
    { args: ["-r", "abc-secnd"], says: "the nearest: abc-second" },
    { args: ["-r", "abc"], says: "2 sessions match" },
    { args: ["-r", "nothing-like-it"], says: 'there is no session "nothing-like-it"' },
    { args: ["-r", "no/such.jsonl"], says: "there is no session file" },
    { args: ["-r", "abc-first", "--session-id", "new"], says: "--session-id is for a new session" },
    { args: ["--session-id", "abc-first"], says: "exists already" },
    { args: ["--fork"], says: "--fork needs -c or -r" },
  ])("$args ends with 2 ($says), and nothing is sent or saved", async ({ args, says }) => {
    await using talk = await Conversation.begin();
    expectCode(await talk.run("--session-id", "abc-first", "one"), 0);
    expectCode(await talk.run("--session-id", "abc-second", "two"), 0);
    const before = talk.sessions;
    const run = await talk.run(...args, "hi");
    expectCode(run, 2);
    expect(run.stderr).toContain(says);
    expect(talk.server.requests).toHaveLength(2);
    expect(talk.sessions).toEqual(before);
  });

  test("--fork goes on in a copy and leaves the original as it was", async () => {
    await using talk = await Conversation.begin();
    expectCode(await talk.run("--session-id", "original", "one"), 0);
    const before = readFileSync(talk.path("original"), "utf8");
    expectCode(await talk.run("-c", "--fork", "--session-id", "copy", "two"), 0);
    expect(talk.said).toEqual(["one", "two"]);
    expect(talk.sessions).toEqual(["copy.jsonl", "original.jsonl"]);
    expect(readFileSync(talk.path("original"), "utf8")).toBe(before);
  });

  test("--no-session saves nothing, also when it goes on with a saved one", async () => {
    await using talk = await Conversation.begin();
    const fresh = await talk.run("--no-session", "-o", "json", "one");
    expectCode(fresh, 0);
    expect(fresh.events[0]).toMatchObject({ session_file: null, resume: null });
    expect(talk.sessions).toEqual([]);
    expectCode(await talk.run("--session-id", "kept", "two"), 0);
    const before = readFileSync(talk.path("kept"), "utf8");
    expectCode(await talk.run("-c", "--no-session", "three"), 0);
    expect(talk.said).toEqual(["two", "three"]);
    expect(readFileSync(talk.path("kept"), "utf8")).toBe(before);
    expect(talk.sessions).toEqual(["kept.jsonl"]);
  });

  test("that another process uses is refused with its pid, and a copy of it is not", async () => {
    await using talk = await Conversation.begin([
      { text: "first" },
      { refuse: "hang" },
      { text: "in the copy" },
    ]);
    expectCode(await talk.run("--session-id", "shared", "one"), 0);
    const busy = talk.user.start(["-p", "-q", "-c", "two"], { env: talk.env });
    await talk.server.waitForRequests(2);
    const refused = await talk.run("-r", "shared", "-o", "json", "three");
    expectCode(refused, 1);
    expect(refused.stderr).toContain(`in use by process ${busy.child.pid}`);
    expect(refused.events[0]).toMatchObject({ error: { code: "session_locked" } });
    const copy = await talk.run("-r", "shared", "--fork", "three");
    expect(copy.stdout).toBe("in the copy\n");
    busy.kill("SIGKILL");
    await busy.finished;
    talk.server.push({ text: "free again" });
    expect((await talk.run("-r", "shared", "four")).stdout).toBe("free again\n");
  });
});

describe("a damaged file", () => {
  test.each([
    { name: "a torn last record", damage: '{"type":"message","id":"aaaaaaaa","par' },
    {
      name: "a record that is cut inside a character",
      damage: Buffer.from('{"x":"é').subarray(0, -1),
    },
    { name: "a block of NUL bytes", damage: "\0".repeat(300) },
    { name: "a line of nonsense", damage: "nonsense\n" },
  ])(
    "with $name resumes with all intact records, says so once, and can be resumed again",
    async ({ damage }) => {
      await using talk = await Conversation.begin();
      expectCode(await talk.run("--session-id", "torn", "one"), 0);
      appendFileSync(talk.path("torn"), damage);
      const run = await talk.user.run(["-p", "-c", "two"], { env: talk.env });
      expectCode(run, 0);
      expect(run.stderr).toMatch(/warning: .*(dropped|skipped)/);
      expect(talk.said).toEqual(["one", "two"]);
      const again = await talk.user.run(["-p", "-c", "three"], { env: talk.env });
      expect(talk.said).toEqual(["one", "two", "three"]);
      expect(again.code).toBe(0);
    },
  );

  test("that holds nothing of a session is refused, and stays as it is", async () => {
    await using talk = await Conversation.begin();
    const path = join(talk.user.cwd, "notes.jsonl");
    writeFileSync(path, "these are notes\n");
    const run = await talk.run("-r", "notes.jsonl", "hi");
    expectCode(run, 1);
    expect(run.stderr).toContain("cannot open the session");
    expect(readFileSync(path, "utf8")).toBe("these are notes\n");
  });
});

describe("the kernel of a resumed session", () => {
  const SET = "x = 41\nf = lambda: x + 1\nlines = (line for line in [])";

  test("has its variables again, and the next request says which, and which are gone and why", async () => {
    await using talk = await Conversation.begin([
      cell(SET),
      { text: "set" },
      cell("print(f())"),
      { text: "resumed" },
    ]);
    expectCode(await talk.run("begin"), 0);
    expectCode(await talk.run("-c", "go on"), 0);
    const [, , third, fourth] = talk.server.requests.map(sentRequest);
    expect(third?.userTexts.at(-1)).toMatch(/^<kernel_state>[^]*f, x[^]*lines \(.*generator/);
    expect(fourth?.results.at(-1)?.text).toBe("42\n");
  });

  test("is empty when its variables were lost, and the next request says so", async () => {
    await using talk = await Conversation.begin([
      cell(SET),
      { text: "set" },
      { text: "resumed" },
      { text: "not saved" },
    ]);
    expectCode(await talk.run("--session-id", "lost", "begin"), 0);
    const artifacts = join(talk.user.home, ".prime/agent/session-artifacts/lost");
    for (const name of readdirSync(artifacts)) writeFileSync(join(artifacts, name), "");
    expectCode(await talk.run("-c", "go on"), 0);
    expect(talk.said.at(-1)).toMatch(/^<kernel_state>[^]*(No names of yours exist|gone)/);
    expectCode(await talk.run("-c", "--no-session", "go on"), 0);
    expect(talk.said.at(-1)).toContain("No names of yours exist");
  });

  test("comes along into a fork, and neither run touches the other's variables", async () => {
    await using talk = await Conversation.begin([
      cell("n = 1"),
      { text: "set" },
      cell("n += 10; print(n)"),
      { text: "in the fork" },
      cell("n += 1; print(n)"),
      { text: "in the original" },
    ]);
    expectCode(await talk.run("--session-id", "original", "begin"), 0);
    expectCode(await talk.run("-c", "--fork", "go on"), 0);
    expect(sentRequest(talk.server.requests.at(-1)).results.at(-1)?.text).toBe("11\n");
    expectCode(await talk.run("-r", "original", "go on"), 0);
    expect(sentRequest(talk.server.requests.at(-1)).results.at(-1)?.text).toBe("2\n");
  });
});

describe("sessions", () => {
  test("are listed, shown, exported, found and removed", async () => {
    await using talk = await Conversation.begin([cell("6*7"), { text: "It is **42**." }]);
    expectCode(await talk.run("--session-id", "s-one", "-n", "sums", "what is 6*7?"), 0);
    const { user } = talk;
    const list = await user.run(["sessions", "list", "--json"]);
    expect(JSON.parse(list.stdout)).toMatchObject([
      { id: "s-one", name: "sums", cwd: user.cwd, first_prompt: "what is 6*7?", message_count: 4 },
    ]);
    const shown = await user.run(["sessions", "show", "s-one"]);
    for (const part of ["what is 6*7?", "6*7", "42", "It is **42**."])
      expect(shown.stdout).toContain(part);
    const page = await user.run(["sessions", "export", "s-one", "--format", "html"]);
    expect(page.stdout).toMatch(/^<!doctype html>/i);
    const path = await user.run(["sessions", "path", "sums"]);
    expect(path.stdout).toBe(`${talk.path("s-one")}\n`);
    const elsewhere = await user.run(["sessions", "list"], { cwd: user.home });
    expect(elsewhere.stdout).toContain("--all lists those of every folder");
    expect((await user.run(["sessions", "list", "--all"], { cwd: user.home })).stdout).toContain(
      "sums",
    );
    expectCode(await user.run(["sessions", "rm", "s-one"]), 0);
    expect(talk.sessions).toEqual([]);
    expect(readdirSync(join(user.home, ".prime/agent/session-artifacts"))).toEqual([]);
  });

  test("of other programs of the family open, go on, and keep what we don't know", async () => {
    await using talk = await Conversation.begin();
    const source = join(import.meta.dir, "../fixtures/sessions/every-entry.jsonl");
    const path = join(talk.user.cwd, "theirs.jsonl");
    writeFileSync(path, readFileSync(source));
    const before = readFileSync(path, "utf8");
    expectCode(await talk.run("-r", "theirs.jsonl", "go on"), 0);
    expect(talk.said).toContain("go on");
    const after = readFileSync(path, "utf8");
    expect(after.startsWith(before)).toBe(true);
    const added = after
      .slice(before.length)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(added.map(({ type }) => type)).toContain("message");
    for (const entry of added)
      expect(entry).toMatchObject({
        id: expect.stringMatching(/^[0-9a-f]{8}$/),
        parentId: expect.any(String),
      });
  });
});
