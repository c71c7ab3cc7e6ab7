/** What the command line accepts, in which form, and how it refuses the rest: one clear line, and nothing is sent. */

import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import packageFile from "../../package.json";
import { expectCode, UserHome } from "../support/program.ts";
import { ProviderServer } from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

const { version } = packageFile;

describe("information", () => {
  test.each(["--version", "-V", "version", "-V models", "exec --version hi"])(
    "%s prints the version on stdout",
    async (line) => {
      using user = new UserHome();
      const run = await user.run(line.split(" "));
      expect(run).toMatchObject({ code: 0, stdout: `prime-agent ${version}\n`, stderr: "" });
    },
  );

  test.each(["--help", "-h", "help", "sessions -h", "-p --help"])(
    "%s prints every command and option on stdout",
    async (line) => {
      using user = new UserHome();
      const run = await user.run(line.split(" "));
      expectCode(run, 0);
      expect(run.stderr).toBe("");
      for (const word of ["exec", "sessions", "doctor", "--model", "--check", "--env-pass"])
        expect(run.stdout).toContain(word);
      expect(run.stdout).not.toContain("\x1b");
    },
  );
});

/** Runs with a server as the model that answers with the prompt it got. */
async function ask(args: readonly string[], prepare?: (user: UserHome) => void) {
  await using server = await ProviderServer.start([
    (request) => ({ text: `<<${sentRequest(request).userTexts.join("|")}>>` }),
  ]);
  using user = new UserHome();
  prepare?.(user);
  const run = await user.run(args, { env: useServer(user, server) });
  return { run, requests: server.requests };
}

describe("a prompt", () => {
  test.each([
    { args: ["hello", "there"], prompt: "hello there" },
    { args: ["exec", "hello"], prompt: "hello" },
    { args: ["run", "hello"], prompt: "hello" },
    { args: ["-p", "hello"], prompt: "hello" },
    { args: ["--print", "hello"], prompt: "hello" },
    { args: ["hello", "-p"], prompt: "hello" },
    { args: ["-p", "sessions", "are", "slow"], prompt: "sessions are slow" },
    { args: ["exec", "sessions"], prompt: "sessions" },
    { args: ["--", "models"], prompt: "models" },
    { args: ["--", "modles"], prompt: "modles" },
    { args: ["help", "me"], prompt: "help me" },
    { args: ["modles are mistyped"], prompt: "modles are mistyped" },
    { args: ["exec", "--yolo", "hi"], prompt: "hi" },
    { args: ["-p", "--full-auto", "hi"], prompt: "hi" },
    { args: ["-p", "--dangerously-skip-permissions", "hi"], prompt: "hi" },
    { args: ["-p", "--session-id", "007", "true", "0"], prompt: "true 0" },
    { args: ["-qp", "hi"], prompt: "hi" },
    { args: ["-p", "--output-format=text", "hi"], prompt: "hi" },
  ])("$args asks $prompt", async ({ args, prompt }) => {
    const { run } = await ask(args);
    expectCode(run, 0);
    expect(run.stdout).toBe(`<<${prompt}>>\n`);
  });

  test("and every file that a flag names lie in the folder of -C", async () => {
    const { run } = await ask(
      ["-C", "sub", "-f", "prompt.txt", "--append-system-prompt-file", "more.txt"],
      (user) => {
        mkdirSync(join(user.cwd, "sub"));
        writeFileSync(join(user.cwd, "sub/prompt.txt"), "from the file");
        writeFileSync(join(user.cwd, "sub/more.txt"), "more");
      },
    );
    expectCode(run, 0);
    expect(run.stdout).toBe("<<from the file>>\n");
  });
});

describe("refused with 2", () => {
  test.each([
    { args: ["modles"], says: 'no command "modles"', hint: "Did you mean models?" },
    { args: ["session", "list"], says: 'no command "session"', hint: "sessions" },
    { args: ["sesions", "show", "abc"], says: 'no command "sesions"', hint: "sessions" },
    { args: ["-p", "--modle", "x", "hi"], says: "unknown option --modle", hint: "--model" },
    { args: ["-p", "-x", "hi"], says: "unknown option -x", hint: "" },
    { args: ["-p", "hi", "--model"], says: "--model needs a value", hint: "" },
    { args: ["-p", "hi", "-m"], says: "-m needs a value", hint: "" },
    { args: ["-p", "--offline=yes", "hi"], says: "--offline takes no value", hint: "" },
    { args: ["-p", "-o", "xml", "hi"], says: "--output-format takes text, json, stream-json" },
    { args: ["-p", "--color", "blue", "hi"], says: "--color takes auto, always, never" },
    { args: ["-p", "--stdin", "x", "hi"], says: "--stdin takes auto, wait, ignore" },
    { args: ["-p", "--on-busy", "x", "hi"], says: "--on-busy takes cancel, restart" },
    { args: ["-p", "--timeout", "0", "hi"], says: "--timeout takes a duration" },
    { args: ["-p", "--cell-timeout", "5d", "hi"], says: "--cell-timeout takes a duration" },
    { args: ["-p", "--max-turns", "0", "hi"], says: "--max-turns takes a whole number" },
    { args: ["-p", "--max-tokens", "1.5", "hi"], says: "--max-tokens takes a whole number" },
    { args: ["-p", "--max-budget-usd", "-1", "hi"], says: "--max-budget-usd" },
    { args: ["-p", "--max-retries", "many", "hi"], says: "--max-retries takes a whole number" },
    { args: ["-p", "--api", "telepathy", "hi"], says: "--api takes openai-completions" },
    { args: ["-p", "--base-url", "nowhere", "hi"], says: "which is no http(s) address" },
    { args: ["-p", "--effort", "11", "hi"], says: "--effort takes off, minimal" },
    { args: ["-p", "--env-pass", "A=b", "hi"], says: "--env-pass takes the name of a variable" },
    { args: ["-p", "-C", "nowhere", "hi"], says: "nowhere does not exist" },
    { args: ["-p", "-C", "file", "hi"], says: "file is not a folder" },
    { args: ["-p", "-f", "nowhere"], says: "nowhere can't be read" },
    { args: ["-p", "--system-prompt-file", "nowhere", "hi"], says: "--system-prompt-file" },
    { args: ["-p", "--script", "file", "hi"], says: "the script file can't be used" },
    { args: ["-p", "--session-id", "../x", "hi"], says: "can't be a file name" },
    { args: ["-p", "   "], says: "the prompt is empty", hint: "stdin" },
    { args: ["-p"], says: "the prompt is empty", hint: "stdin" },
    { args: ["cell"], says: "there is no cell to run", hint: "prime-agent cell" },
    { args: ["cell", "-f", "nowhere.py"], says: "nowhere.py can't be read" },
    { args: ["cell", "-f", "broken.ipynb"], says: "broken.ipynb is not a notebook" },
    { args: ["sessions", "lst"], says: 'no "sessions lst"', hint: "Did you mean list?" },
    { args: ["sessions", "show"], says: "sessions show needs a session" },
    { args: ["skills", "add"], says: 'no "skills add"' },
  ])("$args: $says", async ({ args, says, hint = "" }) => {
    const { run, requests } = await ask(args, (user) => {
      writeFileSync(join(user.cwd, "file"), "no image");
      writeFileSync(join(user.cwd, "broken.ipynb"), "{");
    });
    expectCode(run, 2);
    expect(run.stdout).toBe("");
    expect(run.stderr.split("\n")[0]).toMatch(/^prime-agent: /);
    expect(run.stderr).toContain(says);
    expect(run.stderr).toContain(hint);
    expect(run.stderr.trim().split("\n").length).toBeLessThanOrEqual(2);
    expect(requests).toHaveLength(0);
  });

  test.each([
    { image: "nowhere", says: "nowhere can't be read" },
    { image: "file", says: "file is not a PNG, JPEG, GIF or WebP image" },
  ])("an image that can't be used: $says", async ({ image, says }) => {
    const { run, requests } = await ask(["-p", "-q", "-i", image, "hi"], (user) =>
      writeFileSync(join(user.cwd, "file"), "no image"),
    );
    expectCode(run, 2);
    expect(run.stderr).toContain(says);
    expect(requests).toHaveLength(0);
  });

  test.each([
    { name: "RLM_MAX_DEPTH", value: "deep" },
    { name: "RLM_MAX_DEPTH", value: "-1" },
    { name: "PRIME_AGENT_KERNEL_TRANSPORT", value: "udp" },
  ])("$name=$value", async ({ name, value }) => {
    using user = new UserHome();
    const run = await user.run(["-p", "hi"], { env: { [name]: value } });
    expectCode(run, 2);
    expect(run.stderr).toContain(`${name} is "${value}"`);
  });
});
