/** Which model answers, with which key, from where: flags, environment, files, in this order. */

import { describe, expect, test } from "bun:test";
import { expectCode, UserHome } from "../support/program.ts";
import { ProviderServer, type RecordedRequest } from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer, writeOwnFile } from "../support/user-model.ts";

const TEXTS = Array.from({ length: 6 }, () => ({ text: "hello" }));

/** The model and the key that a request names. */
function asked({ body, headers }: RecordedRequest): string {
  const key = headers["x-api-key"] ?? headers["authorization"]?.replace("Bearer ", "");
  return `${body.model} with ${key ?? "no key"}`;
}

describe("the model", () => {
  test("is that of the flag, else of the environment, else of the settings, else of the first key", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const { PRIME_AGENT_MODEL: _, ...env } = useServer(user, server);
    const keys = {
      ...env,
      OPENAI_API_KEY: "sk-openai",
      OPENAI_BASE_URL: server.baseUrl("openai-completions"),
    };
    const ask = (args: string[], more: object = {}) =>
      user.run(["-p", "-q", ...args, "hi"], { env: { ...keys, ...more } });

    await ask([]);
    await ask([], { ANTHROPIC_API_KEY: "sk-ant", ANTHROPIC_BASE_URL: server.url });
    writeOwnFile(user, "settings.json", { model: "local/from-settings" });
    await ask([]);
    await ask([], { PRIME_AGENT_MODEL: "local/from-env" });
    await ask(["-m", "local/from-flag"], { PRIME_AGENT_MODEL: "local/from-env" });
    await ask(["--bare", "-m", "openai/gpt-5.4"], { PRIME_AGENT_MODEL: "local/from-env" });
    expect(server.requests.map(asked)).toEqual([
      "gpt-5.6 with sk-openai",
      "claude-opus-5 with sk-ant",
      "from-settings with a-key-for-tests",
      "from-env with a-key-for-tests",
      "from-flag with a-key-for-tests",
      "gpt-5.4 with sk-openai",
    ]);
  });

  test("of a resumed session stays, unless a flag or the environment names another", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const { PRIME_AGENT_MODEL: _, ...env } = useServer(user, server);
    writeOwnFile(user, "settings.json", { model: "local/from-settings" });
    const ask = (...args: string[]) => user.run(["-p", "-q", ...args, "hi"], { env });
    await ask("-m", "local/first");
    await ask("-c");
    await ask("-c", "-m", "local/second");
    await ask("-c");
    expect(server.requests.map(({ body }) => body.model)).toEqual([
      "first",
      "first",
      "second",
      "second",
    ]);
  });

  test("that nobody knows works with careful assumptions, and the run says which", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const env = useServer(user, server);
    const run = await user.run(["-p", "-o", "json", "-m", "local/unheard-of", "hi"], { env });
    expectCode(run, 0);
    expect(run.events[0]?.["warnings"]).toEqual([
      expect.stringContaining("local/unheard-of is not a known model"),
    ]);
    expect(run.stderr).toContain("models.json can say otherwise");
  });

  test.each([
    { model: "anthropic/claude-opus-55", says: "claude-opus-5", code: 0 },
    { model: "antropic/claude-opus-5", says: 'no provider "antropic"', code: 2 },
    { model: "gtp-5.6", says: "openai/gpt-5.6", code: 2 },
    { model: "", says: "empty", code: 2 },
  ])("$model ends with $code and says $says", async ({ model, says, code }) => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const env = { ANTHROPIC_API_KEY: "sk-ant", ANTHROPIC_BASE_URL: server.url };
    const run = await user.run(["-p", "-m", model, "hi"], { env });
    expectCode(run, code);
    expect(run.stderr).toContain(says);
    expect(server.requests).toHaveLength(code === 0 ? 1 : 0);
  });

  test("takes --effort only when it can think, and the run says so when it can't", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const env = useServer(user, server, { model: { reasoning: false } });
    const run = await user.run(["-p", "--effort", "high", "hi"], { env });
    expectCode(run, 0);
    expect(run.stderr).toContain("--effort has no effect");
    const wrong = await user.run(["-p", "--effort", "hard", "hi"], { env });
    expectCode(wrong, 2);
    expect(wrong.stderr).toContain("--effort takes off, minimal, low, medium, high, xhigh, max");
  });
});

describe("models.json", () => {
  test("gives its headers to the request, and hides the variable of its key from cells", async () => {
    await using server = await ProviderServer.start([
      {
        toolCalls: [
          { name: "ipython", arguments: { code: "import os; print(os.environ.get('GATEWAY'))" } },
        ],
      },
      { text: "done" },
    ]);
    using user = new UserHome();
    writeOwnFile(user, "models.json", {
      providers: {
        gateway: {
          baseUrl: server.baseUrl("openai-completions"),
          api: "openai-completions",
          apiKey: "$GATEWAY",
          headers: { "x-team": "blue" },
          models: [{ id: "m", contextWindow: 100_000, maxTokens: 1_000 }],
        },
      },
    });
    const env = { GATEWAY: "the-key-of-the-gateway" };
    const run = await user.run(["-p", "--json", "hi"], { env });
    expectCode(run, 0);
    expect(server.requests[0]?.headers).toMatchObject({
      authorization: "Bearer the-key-of-the-gateway",
      "x-team": "blue",
    });
    expect(sentRequest(server.requests[1]).results[0]?.text.trim()).toBe("None");
    expect(run.stdout).not.toContain("the-key-of-the-gateway");
  });

  test.each([
    { file: "models.json", content: '{"providers": {', says: "is not valid JSON" },
    { file: "settings.json", content: "[]", says: "must hold a JSON object" },
    { file: "settings.json", content: '{"model": 5}', says: '"model" must be a string' },
    { file: "settings.json", content: '{"skills": "x"}', says: '"skills" must be a list' },
    { file: "settings.json", content: '{"maxRetries": -1}', says: '"maxRetries" must be' },
    { file: "auth.json", content: "nonsense", says: "is not valid JSON" },
  ])("a broken $file ($content) ends with 2 and names it", async ({ file, content, says }) => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const env = useServer(user, server);
    const path = writeOwnFile(user, file, content);
    const run = await user.run(["-p", "hi"], { env });
    expectCode(run, 2);
    expect(run.stderr).toContain(path);
    expect(run.stderr).toContain(says);
    expect(server.requests).toHaveLength(0);
  });

  test("an unusable entry is a warning, and the others work", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    useServer(user, server);
    const good = { baseUrl: server.baseUrl("openai-completions"), models: [{ id: "m" }] };
    const odd = { baseUrl: "nowhere", api: "telepathy", models: [{}] };
    writeOwnFile(user, "models.json", { providers: { good, odd } });
    const run = await user.run(["-p", "-m", "good/m", "hi"], {});
    expectCode(run, 0);
    for (const part of ["no http(s) address", "telepathy", "has no id"])
      expect(run.stderr).toContain(part);
  });
});

describe("the key", () => {
  test.each([
    { name: "is set but empty", env: { OPENAI_API_KEY: "" } },
    { name: "is only spaces", env: { OPENAI_API_KEY: "  " } },
    { name: "is its own name", env: { OPENAI_API_KEY: "OPENAI_API_KEY" } },
    { name: "was never expanded", env: { OPENAI_API_KEY: "${OPENAI_API_KEY}" } },
    { name: "has a line break", env: { OPENAI_API_KEY: "sk-a\nb" } },
  ])("that $name is none: exit 3, and nothing is sent", async ({ env }) => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const flags = ["-m", "openai/test", "--base-url", server.baseUrl("openai-completions")];
    const run = await user.run(["-p", "-o", "json", ...flags, "hi"], { env });
    expectCode(run, 3);
    expect(run.events).toMatchObject([
      { type: "result", subtype: "error_auth", is_error: true, exit_code: 3 },
    ]);
    expect(run.stderr).toContain("OPENAI_API_KEY");
    expect(server.requests).toHaveLength(0);
  });

  test("comes from the variable that --api-key-env names, which must be set", async () => {
    await using server = await ProviderServer.start(TEXTS);
    using user = new UserHome();
    const flags = ["-m", "x/y", "--base-url", server.baseUrl("openai-completions")];
    const ask = (env: object) =>
      user.run(["-p", ...flags, "--api-key-env", "MY_KEY", "hi"], { env: { ...env } });
    const missing = await ask({});
    expectCode(missing, 3);
    expect(missing.stderr).toContain("MY_KEY is unset or empty");
    expectCode(await ask({ MY_KEY: "mine" }), 0);
    expect(server.requests.map(asked)).toEqual(["y with mine"]);
  });

  test("that was saved is used, shown nowhere, and gone after rm", async () => {
    await using server = await ProviderServer.start([
      { toolCalls: [{ name: "ipython", arguments: { code: "print('sk-saved-' + 'secret-1')" } }] },
      { text: "It is sk-saved-secret-1" },
    ]);
    using user = new UserHome();
    expectCode(await user.run(["auth", "set", "groq"], { stdin: "sk-saved-secret-1\n" }), 0);
    const flags = ["-m", "groq/x", "--base-url", server.baseUrl("openai-completions")];
    const run = await user.run(["-p", "--json", ...flags, "hi"]);
    expectCode(run, 0);
    expect(server.requests.map(asked)[0]).toBe("x with sk-saved-secret-1");
    expect(run.stdout + run.stderr).not.toContain("sk-saved-secret-1");
    expect(run.events.at(-1)?.["result"]).toBe("It is [redacted]");
    expect((await user.run(["auth", "rm", "groq"])).stdout).toContain("Removed");
    expectCode(await user.run(["-p", ...flags, "hi"]), 3);
    expect((await user.run(["auth", "rm", "groq"])).stdout).toContain("No key of groq was saved");
  });

  test.each([
    { args: ["set", "groq"], stdin: "GROQ_API_KEY\n", says: "that is no key" },
    { args: ["set", "groq"], stdin: "two words\n", says: "that is no key" },
    { args: ["set", "grok"], stdin: "sk-x\n", says: 'no provider "grok"' },
    { args: ["set"], stdin: "sk-x\n", says: "needs the name of a provider" },
    { args: ["show"], stdin: "", says: 'there is no "auth show"' },
  ])("auth $args with $stdin ends with 2: $says", async ({ args, stdin, says }) => {
    using user = new UserHome();
    const run = await user.run(["auth", ...args], { stdin });
    expectCode(run, 2);
    expect(run.stderr).toContain(says);
  });
});

test("--offline refuses what is not on this machine, before anything is sent", async () => {
  await using server = await ProviderServer.start(TEXTS);
  using user = new UserHome();
  const env = { ...useServer(user, server), OPENAI_API_KEY: "sk-x" };
  expectCode(await user.run(["-p", "--offline", "hi"], { env }), 0);
  const remote = await user.run(["-p", "--offline", "-m", "openai/gpt-5.6", "hi"], { env });
  expectCode(remote, 2);
  expect(remote.stderr).toContain("is not on this machine");
});

test("models lists what can be used first, marks the default, and exits 1 when nothing matches", async () => {
  await using server = await ProviderServer.start(TEXTS);
  using user = new UserHome();
  const env = useServer(user, server);
  const list = await user.run(["models"], { env });
  expectCode(list, 0);
  expect(list.stdout.split("\n")[0]).toMatch(/^local\/test +200k +default$/);
  const found = await user.run(["models", "claude", "opus", "--json"], { env });
  const rows = JSON.parse(found.stdout) as Array<Record<string, unknown>>;
  expect(rows.every((row) => String(row["selector"]).includes("opus"))).toBe(true);
  expect(rows[0]).toMatchObject({ usable: false, default: false });
  expectCode(await user.run(["models", "no-such-thing"], { env }), 1);
  expect(server.requests).toHaveLength(0);
});
