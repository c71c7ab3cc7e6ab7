import { describe, expect, test } from "bun:test";
import { readCustomModels } from "../../../src/providers/custom-models.ts";
import { MissingKeyError } from "../../../src/providers/errors.ts";
import { listModels, resolveModel } from "../../../src/providers/models.ts";

const MINE = {
  providers: {
    mine: {
      baseUrl: "https://mine.test/v1/",
      api: "anthropic-messages",
      apiKey: "MINE_API_KEY",
      headers: { "x-team": "a" },
      models: [
        {
          id: "big",
          contextWindow: 64_000,
          maxTokens: 4_000,
          cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
          input: ["text", "image"],
          reasoning: true,
        },
        { id: "bare" },
      ],
    },
  },
};

describe("a provider of models.json", () => {
  test("is a provider like any other", () => {
    const env = { MINE_API_KEY: "m" };
    expect(resolveModel("mine/big", { env, customModels: MINE })).toEqual({
      model: {
        provider: "mine",
        id: "big",
        name: "big",
        api: "anthropic-messages",
        baseUrl: "https://mine.test/v1",
        contextWindow: 64_000,
        maxTokens: 4_000,
        cost: { input: 1, output: 2, cacheRead: 0, cacheWrite: 0 },
        reasoning: true,
        input: ["text", "image"],
        headers: { "x-team": "a" },
      },
      apiKey: "m",
      warnings: [],
    });
  });

  test("has its models listed, and takes ids that it doesn't list", () => {
    const from = { env: { MINE_API_KEY: "m" }, customModels: MINE };
    expect(listModels("mine", from).map(({ selector }) => selector)).toEqual([
      "mine/big",
      "mine/bare",
    ]);
    expect(resolveModel("mine/other", from).warnings).toHaveLength(1);
    expect(resolveModel("big", from).model.provider).toBe("mine");
  });

  test.each<[string, string, Record<string, string>, string | undefined]>([
    ["a variable", "MINE_API_KEY", { MINE_API_KEY: "m" }, "m"],
    ["a marked variable", "$mine", { mine: "m" }, "m"],
    ["a marked variable in braces", "${MINE}", { MINE: "m" }, "m"],
    ["the key itself", "sk-mine", {}, "sk-mine"],
    ["a word that servers take for a key", "EMPTY", {}, "EMPTY"],
    ["a variable that is not set", "MINE_API_KEY", {}, undefined],
    ["a variable that is empty", "MINE_API_KEY", { MINE_API_KEY: "" }, undefined],
    ["a command", "!security find-key", {}, undefined],
  ])("whose apiKey is %s never sends its name for the key", (_, apiKey, env, key) => {
    const customModels = { providers: { mine: { ...MINE.providers.mine, apiKey } } };
    const resolve = () => resolveModel("mine/big", { env, customModels });
    if (key === undefined) expect(resolve).toThrow(MissingKeyError);
    else expect(resolve().apiKey).toBe(key);
  });

  test("without an apiKey needs none", () => {
    const { apiKey: _, ...keyless } = MINE.providers.mine;
    const from = { env: {}, customModels: { providers: { mine: keyless } } };
    expect(resolveModel("mine/big", from).apiKey).toBeUndefined();
  });

  test("can move a known provider and add to its models", () => {
    const customModels = {
      providers: {
        anthropic: {
          baseUrl: "https://proxy.test",
          models: [{ id: "claude-next", contextWindow: 5_000_000 }],
        },
      },
    };
    const from = { env: { ANTHROPIC_API_KEY: "a" }, customModels };
    expect(resolveModel("anthropic/claude-opus-5", from).model).toMatchObject({
      baseUrl: "https://proxy.test",
      contextWindow: 1_000_000,
    });
    expect(resolveModel("anthropic/claude-next", from)).toMatchObject({
      model: { contextWindow: 5_000_000, api: "anthropic-messages" },
      warnings: [],
    });
  });
});

test.each<[string, unknown, RegExp]>([
  ["no object", [1], /expected an object/],
  ["no providers", { models: [] }, /expected an object/],
  ["a provider that is a string", { providers: { mine: "x" } }, /mine is not an object/],
  ["an unknown api", { providers: { mine: { api: "soap" } } }, /unknown api "soap"/],
  ["a model without id", { providers: { mine: { models: [{ name: "x" }] } } }, /has no id/],
  ["an odd address", { providers: { mine: { baseUrl: "mine.test" } } }, /no http\(s\) address/],
])("a models.json with %s is used as far as it goes, and the fault is told", (_, json, warning) => {
  const { warnings } = readCustomModels(json);
  expect(warnings).toHaveLength(1);
  expect(warnings[0]).toMatch(warning);
  expect(() => listModels("", { env: {}, customModels: json })).not.toThrow();
});

test("without a models.json there is nothing to tell", () => {
  expect(readCustomModels(undefined)).toEqual({ providers: {}, warnings: [] });
});
