/** The choice of a model: whose word counts, and what can't be used. Nothing is sent. */

import { describe, expect, test } from "bun:test";
import { credentialStatus, isKnownProvider, looksLikeKey } from "../../src/app-credentials.ts";
import {
  bindModel,
  bindScript,
  parseEffort,
  readScript,
  rebindModel,
} from "../../src/app-model.ts";
import { parseArguments } from "../../src/cli/arguments.ts";
import { readConfig } from "../../src/cli/read-config.ts";
import { readEnvironment, type Config } from "../../src/config.ts";
import { UsageError } from "../../src/errors.ts";
import { TempDir } from "../support/temp-dir.ts";

const LOCAL = {
  baseUrl: "http://127.0.0.1:9/v1",
  api: "openai-completions",
  models: [
    { id: "thinks", reasoning: true, contextWindow: 1_000, maxTokens: 100 },
    { id: "plain", contextWindow: 1_000, maxTokens: 100 },
  ],
};

/** A program's folder with a `models.json` that has the provider `local`. */
class Home extends TempDir {
  constructor(settings: object = {}) {
    super();
    this.write("models.json", JSON.stringify({ providers: { local: LOCAL } }));
    this.write("settings.json", JSON.stringify(settings));
  }

  config(line = "", env: Record<string, string> = {}): Config {
    const environment = readEnvironment({ PRIME_AGENT_HOME: this.path, ...env });
    const args = ["exec", ...line.split(" ").filter(Boolean)];
    return readConfig(parseArguments(args).options, environment);
  }
}

describe("bindModel", () => {
  test.each([
    ["-m local/flag", "local/saved", "flag"],
    ["", "local/saved", "saved"],
    ["", undefined, "settings"],
  ])("with the flags %j and the session's %s asks %s", async (line, saved, id) => {
    using home = new Home({ model: "local/settings" });
    const { binding } = await bindModel(home.config(line), saved);
    expect(binding.model.id).toBe(id);
  });

  test("takes the first of models.json when there is no key and no choice", async () => {
    using home = new Home();
    expect((await bindModel(home.config())).binding.model.id).toBe("thinks");
  });

  test.each([
    ["-m local/thinks --effort high", "high", []],
    [
      "-m local/plain --effort high",
      "high",
      ["--effort has no effect: local/plain is not known to think; models.json can say so"],
    ],
    ["-m local/plain --effort off", "off", []],
    ["-m local/plain", "low", []],
    [
      "-m openai/unheard-of --max-budget-usd 1 --base-url https://far.invalid --api-key-env KEY",
      "low",
      [
        expect.stringContaining("not a known model"),
        expect.stringContaining("--max-budget-usd can't be kept"),
      ],
    ],
  ])("with %j has the effort %s and the warnings %j", async (line, effort, warnings) => {
    using home = new Home({ effort: "low" });
    const choice = await bindModel(home.config(line, { KEY: "a-key" }));
    expect([choice.binding.effort, choice.warnings]).toEqual([effort as never, warnings as never]);
  });

  test("refuses what --offline does not allow, and an unreadable SSL_CERT_FILE", async () => {
    using home = new Home();
    const env = { OPENAI_API_KEY: "sk-1" };
    await expect(bindModel(home.config("--offline -m openai/gpt-5.6", env))).rejects.toThrow(
      "is not on this machine",
    );
    await expect(bindModel(home.config("--offline -m local/plain", env))).resolves.toBeDefined();
    const tls = { ...env, SSL_CERT_FILE: "/no/such/file" };
    await expect(bindModel(home.config("-m openai/gpt-5.6", tls))).rejects.toThrow(
      "SSL_CERT_FILE: /no/such/file",
    );
    await expect(bindModel(home.config("-m local/plain", tls))).resolves.toBeDefined();
  });

  test("with --bare knows models.json only for a model that is named", async () => {
    using home = new Home();
    expect((await bindModel(home.config("--bare -m local/plain"))).binding.model.id).toBe("plain");
    const { binding } = await bindModel(home.config("--bare", { OPENAI_API_KEY: "sk-1" }));
    expect(binding.model.provider).toBe("openai");
  });

  test("can be done again for another model", async () => {
    using home = new Home();
    const { binding } = await rebindModel(home.config("-m local/thinks"), "local/plain");
    expect(binding.model.id).toBe("plain");
  });
});

describe("credentials", () => {
  test("are found where they are, and never shown", () => {
    using home = new Home();
    home.write("auth.json", '{"groq": {"type": "api_key", "key": "gsk-1"}}');
    home.write(
      "models.json",
      JSON.stringify({ providers: { mine: { apiKey: "$MINE", models: [] } } }),
    );
    const config = home.config("", { OPENAI_API_KEY: "sk-1", ANTHROPIC_API_KEY: "", MINE: "m" });
    const status = Object.fromEntries(
      credentialStatus(config).map(({ provider, source }) => [provider, source]),
    );
    expect(status).toMatchObject({
      openai: "OPENAI_API_KEY",
      groq: "auth.json",
      mine: "MINE",
      anthropic: null,
    });
    expect(JSON.stringify(status)).not.toMatch(/sk-1/);
    expect([isKnownProvider(config, "mine"), isKnownProvider(config, "theirs")]).toEqual([
      true,
      false,
    ]);
  });

  test.each([
    ["sk-ant-0123_AB", true],
    ["gsk_x", true],
    ["OPENAI_API_KEY", false],
    ["$OPENAI_API_KEY", false],
    ["two words", false],
    ["sk-ü", false],
    ["", false],
  ])("%j looks like a key: %p", (text, isKey) => {
    expect(looksLikeKey(text)).toBe(isKey);
  });
});

describe("a script", () => {
  test("is a model that costs nothing, answers and is not asked again", async () => {
    const { binding } = await bindScript([{ text: "hi" }]);
    expect(binding).toMatchObject({ model: { provider: "scripted" }, request: { maxRetries: 0 } });
  });

  test.each([
    ["nowhere.json", "can't be used"],
    ["broken.json", "can't be used"],
    ["object.json", "must hold a JSON array"],
  ])("from %s is refused: it %s", (name, says) => {
    using dir = new TempDir();
    dir.write("broken.json", "[");
    dir.write("object.json", "{}");
    expect(() => readScript(dir.path, name)).toThrow(UsageError);
    expect(() => readScript(dir.path, name)).toThrow(says);
  });
});

test("an effort level is one of those that there are, in any case of letters", () => {
  expect(parseEffort("HIGH")).toBe("high");
  expect(() => parseEffort("11")).toThrow(
    "--effort takes off, minimal, low, medium, high, xhigh, max",
  );
});
