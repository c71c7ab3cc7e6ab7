import { describe, expect, test } from "bun:test";
import { MissingKeyError, ModelError } from "../../../src/providers/errors.ts";
import { KNOWN_PROVIDERS, listedModels } from "../../../src/providers/model-table.ts";
import {
  defaultModel,
  listModels,
  parseModelSelector,
  resolveModel,
} from "../../../src/providers/models.ts";
import type { ModelSources } from "../../../src/providers/models.ts";

const KEYS = { ANTHROPIC_API_KEY: "sk-ant-1", OPENAI_API_KEY: "sk-1" };

function sources(more: Partial<ModelSources> = {}): ModelSources {
  return { env: KEYS, ...more };
}

/** What `resolveModel` throws. */
function refusal(selector: string, from: ModelSources) {
  try {
    resolveModel(selector, from);
  } catch (error) {
    return error as ModelError | MissingKeyError;
  }
  throw new Error(`${selector} was accepted`);
}

test.each([
  ["anthropic/claude-opus-5", "anthropic", "claude-opus-5"],
  ["openrouter/anthropic/claude-opus-5", "openrouter", "anthropic/claude-opus-5"],
  [" openai/gpt-5.6 ", "openai", "gpt-5.6"],
  ["gpt-5.6", undefined, "gpt-5.6"],
])("the selector %p names its provider and id", (selector, provider, id) => {
  expect(parseModelSelector(selector)).toEqual({ provider, id });
});

describe("a listed model", () => {
  test("comes with the table's facts and its provider's key", () => {
    expect(resolveModel("anthropic/claude-opus-5", sources())).toEqual({
      model: {
        provider: "anthropic",
        id: "claude-opus-5",
        name: "Claude Opus 5",
        api: "anthropic-messages",
        baseUrl: "https://api.anthropic.com",
        contextWindow: 1_000_000,
        maxTokens: 128_000,
        cost: { input: 5, output: 25, cacheRead: 0.5, cacheWrite: 6.25 },
        reasoning: true,
        input: ["text", "image"],
      },
      apiKey: "sk-ant-1",
      warnings: [],
    });
  });

  test("is found by its id alone, at a provider that has a key if there is one", () => {
    expect(resolveModel("gpt-5.6", sources()).model).toMatchObject({ provider: "openai" });
    const groq = sources({ env: { GROQ_API_KEY: "g" } });
    expect(resolveModel("llama-3.1-8b-instant", groq).model.provider).toBe("groq");
    const cerebras = sources({ env: { CEREBRAS_API_KEY: "c" } });
    expect(resolveModel("gpt-oss-120b", cerebras).model.provider).toBe("cerebras");
  });

  test("can be moved by the environment, and by a flag over it", () => {
    const env = { ...KEYS, ANTHROPIC_BASE_URL: "http://127.0.0.1:1/" };
    const moved = resolveModel("anthropic/claude-opus-5", sources({ env }));
    expect(moved.model.baseUrl).toBe("http://127.0.0.1:1");
    const flagged = sources({ env, baseUrl: "https://flag.test/x/" });
    expect(resolveModel("anthropic/claude-opus-5", flagged).model.baseUrl).toBe(
      "https://flag.test/x",
    );
  });
});

describe("an unknown model", () => {
  test("of a known provider is assumed to be modest, and the warning says so", () => {
    const { model, warnings } = resolveModel("anthropic/claude-opus-9", sources());
    expect(model).toMatchObject({
      api: "anthropic-messages",
      contextWindow: 128_000,
      maxTokens: 8_192,
      cost: undefined,
      reasoning: false,
      input: ["text"],
    });
    expect(warnings).toEqual([
      "anthropic/claude-opus-9 is not a known model (the nearest that is known: claude-opus-4-5): " +
        "assuming 128000 tokens of context and 8192 of reply; models.json can say otherwise",
    ]);
  });

  test("behind a gateway has the facts of the same model elsewhere, but not its price", () => {
    const env = { OPENROUTER_API_KEY: "or" };
    const { model } = resolveModel("openrouter/anthropic/claude-opus-4.6", sources({ env }));
    expect(model).toMatchObject({
      id: "anthropic/claude-opus-4.6",
      api: "openai-completions",
      baseUrl: "https://openrouter.ai/api/v1",
      contextWindow: 1_000_000,
      reasoning: true,
      cost: undefined,
    });
  });

  test("on this machine costs nothing and has a small window", () => {
    const { model, apiKey, warnings } = resolveModel("ollama/qwen3:8b", sources());
    expect(model).toMatchObject({
      baseUrl: "http://127.0.0.1:11434/v1",
      contextWindow: 32_768,
      cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 },
    });
    expect(apiKey).toBeUndefined();
    expect(warnings).toHaveLength(1);
  });

  test("of OpenAI at another address speaks the common format, a known one its own", () => {
    const env = { ...KEYS, OPENAI_BASE_URL: "http://127.0.0.1:1/v1" };
    expect(resolveModel("openai/llama-9", sources({ env })).model.api).toBe("openai-completions");
    expect(resolveModel("openai/gpt-5.6", sources({ env })).model.api).toBe("openai-responses");
    expect(resolveModel("openai/gpt-99", sources()).model.api).toBe("openai-responses");
  });

  test("needs only a base URL, whatever its provider is called", () => {
    const from = sources({ baseUrl: "http://127.0.0.1:8000/v1", api: "anthropic-messages" });
    expect(resolveModel("mine/some/model", from)).toMatchObject({
      model: { provider: "mine", id: "some/model", api: "anthropic-messages" },
    });
    expect(resolveModel("model", from).model.provider).toBe("custom");
  });
});

describe("a refusal", () => {
  test.each<[string, string, RegExp]>([
    [
      "anthropc/claude-opus-5",
      'there is no provider "anthropc"',
      /Did you mean anthropic\/claude-opus-5 /,
    ],
    ["claude-opus-55", 'no provider lists a model "claude-opus-55"', /claude-opus-5/],
    [
      "sonnet-5",
      'no provider lists a model "sonnet-5"',
      /Did you mean anthropic\/claude-sonnet-5 /,
    ],
    ["zzzzzzzzzzzz", 'no provider lists a model "zzzzzzzzzzzz"', /`prime-agent models`/],
    ["anthropic/", "the name of the model is empty", /^$/],
  ])("of %p says what may have been meant", (selector, message, hint) => {
    const error = refusal(selector, sources());
    expect(error).toBeInstanceOf(ModelError);
    expect(error.message).toBe(message);
    expect(error.hint).toMatch(hint);
  });

  test("of an unknown format or an odd address is one of usage", () => {
    expect(refusal("openai/gpt-5.6", sources({ api: "openai" }))).toBeInstanceOf(ModelError);
    expect(refusal("openai/gpt-5.6", sources({ baseUrl: "ftp://x" })).message).toContain(
      "no http(s) address",
    );
  });
});

describe("a missing key", () => {
  test.each<[string, ModelSources["env"]]>([
    ["unset", {}],
    ["empty", { OPENAI_API_KEY: "" }],
    ["blank", { OPENAI_API_KEY: " \n" }],
  ])("that is %s is named, and how to set it", (_, env) => {
    const error = refusal("openai/gpt-5.6", { env });
    expect(error).toBeInstanceOf(MissingKeyError);
    expect(error.code).toBe("auth");
    expect(error.message).toBe("there is no key for openai: OPENAI_API_KEY is unset or empty");
    expect(error.hint).toContain("prime-agent auth set openai");
  });

  test("is needed at another address too", () => {
    const error = refusal("openai/gpt-5.6", { env: {}, baseUrl: "http://127.0.0.1:1" });
    expect(error).toBeInstanceOf(MissingKeyError);
  });

  test("in the variable that --api-key-env names is not looked for elsewhere", () => {
    const error = refusal("openai/gpt-5.6", sources({ apiKeyEnv: "MY_KEY" }));
    expect(error.message).toContain("MY_KEY is unset or empty");
  });

  test("is also one that no header can carry", () => {
    const error = refusal("openai/gpt-5.6", { env: { OPENAI_API_KEY: "sk-1 2" } });
    expect(error).toBeInstanceOf(MissingKeyError);
    expect(error.message).not.toContain("sk-1");
  });
});

describe("a key", () => {
  test("comes from the environment before the saved ones, trimmed", () => {
    const savedKeys = { openai: "saved" };
    const env = { OPENAI_API_KEY: " sk-env\n" };
    expect(resolveModel("openai/gpt-5.6", { env, savedKeys }).apiKey).toBe("sk-env");
    expect(resolveModel("openai/gpt-5.6", { env: {}, savedKeys }).apiKey).toBe("saved");
  });

  test("comes from the named variable before all others", () => {
    const env = { ...KEYS, MY_KEY: "mine" };
    expect(resolveModel("openai/gpt-5.6", { env, apiKeyEnv: "MY_KEY" }).apiKey).toBe("mine");
  });
});

describe("the default model", () => {
  test.each<[string, ModelSources["env"], string]>([
    ["both", KEYS, "anthropic/claude-opus-5"],
    ["an empty first one", { ...KEYS, ANTHROPIC_API_KEY: "" }, "openai/gpt-5.6"],
    ["a later one", { MISTRAL_API_KEY: "m" }, "mistral/mistral-medium-latest"],
    ["Prime's", { PRIME_API_KEY: "p" }, "prime-inference/z-ai/glm-5.3"],
  ])("with %s is the best of the first key", (_, env, selector) => {
    const { model } = defaultModel({ env }) ?? {};
    expect(`${model?.provider}/${model?.id}`).toBe(selector);
  });

  test("does not exist without a key", () => {
    expect(defaultModel({ env: {} })).toBeUndefined();
  });

  test("is one of models.json when only that has a key", () => {
    const customModels = {
      providers: { mine: { baseUrl: "http://x.test/v1", models: [{ id: "m1" }] } },
    };
    expect(defaultModel({ env: {}, customModels })?.model.id).toBe("m1");
  });

  test("of every provider is listed or borrows its facts", () => {
    for (const { name, keyVariable, bestModel } of KNOWN_PROVIDERS) {
      if (!keyVariable || !bestModel) continue;
      const { model } = resolveModel(`${name}/${bestModel}`, { env: { [keyVariable]: "k" } });
      expect(model.maxTokens).toBeGreaterThan(8_192);
    }
  });
});

describe("the list", () => {
  test("holds every model of the table, usable ones first", () => {
    const list = listModels("", { env: { GROQ_API_KEY: "g" } });
    const all = KNOWN_PROVIDERS.flatMap(({ name }) => listedModels(name));
    expect(list).toHaveLength(all.length);
    expect(list.length).toBeGreaterThan(200);
    const usable = list.filter((entry) => entry.usable);
    expect(usable.length).toBeGreaterThan(0);
    expect(new Set(usable.map(({ model }) => model.provider))).toEqual(new Set(["groq"]));
    expect(list.slice(0, usable.length)).toEqual(usable);
  });

  test("is narrowed by every word, in selectors and names", () => {
    const found = listModels("sonnet ANTHROPIC/ 4-6", sources()).map(({ selector }) => selector);
    expect(found).toEqual(["anthropic/claude-sonnet-4-6"]);
  });
});

test("the table's facts make sense", () => {
  for (const { name } of KNOWN_PROVIDERS) {
    for (const model of listedModels(name)) {
      expect(model.maxTokens).toBeGreaterThan(0);
      expect(model.maxTokens).toBeLessThanOrEqual(model.contextWindow);
      expect(Object.values(model.cost ?? {}).every((price) => price >= 0)).toBe(true);
    }
  }
});
