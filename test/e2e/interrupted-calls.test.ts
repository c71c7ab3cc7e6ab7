/** Calls without a result never poison a session: each next request has exactly one result for each call, in every format. */

import { describe, expect, test } from "bun:test";
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";
import { SERVED_APIS, type ServedApi } from "../support/provider-formats.ts";
import { ProviderServer, type RecordedRequest } from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

const cells = (...codes: string[]) => ({
  toolCalls: codes.map((code) => ({ name: "ipython", arguments: { code } })),
});

/** Says that it runs in a word that its code, which is shown before, does not hold. */
const SLEEP = "import time; print('be' + 'gun'); time.sleep(1000)";

/** Exactly one result for each call, in the order of the calls, with ids that are all different. */
function expectPaired(request: RecordedRequest | undefined): string[] {
  const { calls, results } = sentRequest(request);
  expect(results.map(({ id }) => id)).toEqual(calls.map(({ id }) => id));
  expect(new Set(calls.map(({ id }) => id)).size).toBe(calls.length);
  return results.map(({ text }) => text);
}

describe.each(SERVED_APIS)("%s", (api) => {
  test("a run that is interrupted in the second of three calls is resumed with a result for each", async () => {
    await using server = await ProviderServer.start([
      cells("print('one')", SLEEP, "print('three')"),
      { text: "resumed" },
    ]);
    using user = new UserHome();
    const env = useServer(user, server, { api });
    const child = user.start(["-p", "go"], { env });
    await child.saw("stderr", "begun");
    child.kill("SIGINT");
    expectCode(await child.finished, 130);
    const resumed = await user.run(["-p", "-c", "go on"], { env });
    expect(resumed.stdout).toBe("resumed\n");
    const texts = expectPaired(server.requests[1]);
    expect(texts[0]).toBe("one\n");
    expect(texts[1]).toMatch(/begun[^]*interrupted/i);
    expect(texts[2]).toMatch(/not run/i);
  });

  test("a run that is killed in a call is resumed with a result that says so", async () => {
    await using server = await ProviderServer.start([cells(SLEEP, "2"), { text: "resumed" }]);
    using user = new UserHome();
    const env = useServer(user, server, { api });
    const child = user.start(["-p", "go"], { env });
    await child.saw("stderr", "begun");
    child.kill("SIGKILL");
    await child.finished;
    const resumed = await user.run(["-p", "-c", "go on"], { env });
    expect(resumed.stdout).toBe("resumed\n");
    expect(expectPaired(server.requests[1])).toHaveLength(2);
    expect(resumed.stderr).toContain("never finished");
  });
});

test("one session goes through all formats in turn, and back, with every call paired and no secret state of another", async () => {
  using user = new UserHome();
  const order: ServedApi[] = [...SERVED_APIS, ...SERVED_APIS.toReversed()];
  let turn = 0;
  for (const api of order) {
    turn += 1;
    await using server = await ProviderServer.start([
      { thinking: `thought ${turn}`, text: `look ${turn}`, ...cells(`print(${turn})`) },
      { text: `answer ${turn}` },
    ]);
    const env = useServer(user, server, { api });
    const run = await user.run(["-p", ...(turn > 1 ? ["-c"] : []), `prompt ${turn}`], { env });
    expectCode(run, 0);
    const [first, second] = server.requests;
    expect(expectPaired(first)).toHaveLength(turn - 1);
    expect(expectPaired(second).at(-1)).toBe(`${turn}\n`);
    const prompts = sentRequest(second).userTexts.filter((text) => text.startsWith("prompt"));
    expect(prompts).toEqual(Array.from({ length: turn }, (_, index) => `prompt ${index + 1}`));
  }
});

test("results without a call, calls without a result and doubled results in a file are mended", async () => {
  await using server = await ProviderServer.start([
    cells("print(1)"),
    { text: "one" },
    { text: "two" },
  ]);
  using user = new UserHome();
  const env = useServer(user, server);
  expectCode(await user.run(["-p", "--session-id", "s", "go"], { env }), 0);
  const path = join(user.home, ".prime/agent/sessions/s.jsonl");
  const entries = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const result = entries.find((entry) => entry.message?.role === "toolResult");
  const asking = entries.find((entry) => entry.message?.content?.[0]?.type === "toolCall");
  let parentId = entries.at(-1).id;
  const add = (id: string, message: object) => {
    const entry = { type: "message", id, parentId, timestamp: new Date().toISOString(), message };
    appendFileSync(path, `${JSON.stringify(entry)}\n`);
    parentId = id;
  };
  add("aaaaaaa1", { ...result.message, toolCallId: "nobody-asked" });
  add("aaaaaaa2", asking.message);
  add("aaaaaaa3", result.message);
  add("aaaaaaa4", result.message);
  add("aaaaaaa5", asking.message);
  expectCode(await user.run(["-p", "-c", "go on"], { env }), 0);
  expect(expectPaired(server.requests[2])).toHaveLength(3);
});
