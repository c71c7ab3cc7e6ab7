import { expect, test } from "bun:test";
import { probeLocalServers } from "../../../src/providers/local-servers.ts";
import { ProviderServer } from "../../support/provider-server.ts";

const signal = () => new AbortController().signal;

function known(name: string, baseUrl: string) {
  return { name, baseUrl, api: "openai-completions" as const };
}

test("servers that answer are offered in order with their models", async () => {
  await using first = await ProviderServer.start();
  await using second = await ProviderServer.start();
  first.models = ["qwen3:8b", "llama3"];
  second.models = ["gemma"];
  const servers = [
    known("ollama", first.baseUrl("openai-completions")),
    known("lmstudio", "http://127.0.0.1:1/v1"),
    known("llamacpp", second.baseUrl("openai-completions")),
  ];
  const found = await probeLocalServers({ env: {} }, signal(), servers);
  expect(found.map(({ model }) => `${model.provider}/${model.id}`)).toEqual([
    "ollama/qwen3:8b",
    "ollama/llama3",
    "llamacpp/gemma",
  ]);
  expect(found[0]).toMatchObject({
    model: { baseUrl: first.baseUrl("openai-completions"), api: "openai-completions" },
  });
  expect(found[0]).not.toHaveProperty("apiKey");
});

test("the window that a server tells is believed", async () => {
  const data = [{ id: "m", meta: { n_ctx: 4_096 } }];
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => Response.json({ data }),
  });
  const servers = [known("llamacpp", `http://127.0.0.1:${server.port}/v1`)];
  const [found] = await probeLocalServers({ env: {} }, signal(), servers);
  expect(found?.model).toMatchObject({ contextWindow: 4_096, maxTokens: 4_096 });
  expect(found?.warnings).toEqual([]);
});

test.each<[string, () => Response]>([
  ["an error", () => new Response("no", { status: 500 })],
  ["a web page", () => new Response("<html></html>")],
  ["another kind of list", () => Response.json([1])],
  ["a redirect", () => Response.redirect("http://127.0.0.1:1/")],
])("a server that answers with %s is none", async (_, answer) => {
  using server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: answer });
  const servers = [known("ollama", `http://127.0.0.1:${server.port}/v1`)];
  expect(await probeLocalServers({ env: {} }, signal(), servers)).toEqual([]);
});
