/** Long sessions and crashes: nothing that was completed is lost, and every next request is valid. */

import { expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { MODEL_ENV, modelFlags } from "../support/model-flags.ts";
import { expectCode, UserHome } from "../support/program.ts";
import {
  ProviderServer,
  type RecordedRequest,
  type ServedReply,
  type ServedScript,
} from "../support/provider-server.ts";
import { TempDir } from "../support/temp-dir.ts";

const KILLS = 50;
const TURNS = 200;

/** Each call has exactly one result, directly behind its message; no result stands alone. */
function expectValid(request: RecordedRequest): void {
  const messages = request.body.messages as any[];
  for (const [index, message] of messages.entries()) {
    const calls = (message.tool_calls ?? []).map((call: any) => call.id);
    const results = messages
      .slice(index + 1, index + 1 + calls.length)
      .map((next) => next.tool_call_id);
    expect(results).toEqual(calls);
    if (message.role === "tool")
      expect(messages.slice(0, index).some((earlier) => earlier.tool_calls)).toBe(true);
  }
}

/** Answers alternately with a cell that counts and with a text. */
function countingReply(request: RecordedRequest): ServedReply {
  expectValid(request);
  const last = request.body.messages.at(-1);
  if (last.role === "tool") return { text: "counted" };
  return {
    toolCalls: [
      { name: "ipython", arguments: { code: "n = globals().get('n', 0) + 1; print(n)" } },
    ],
  };
}

test(`a session that is killed with -9 at ${KILLS} random moments resumes each time with every completed turn, and leaves no folder of a kernel`, async () => {
  let seed = 20_260_801;
  const random = () => (seed = (seed * 1_103_515_245 + 12_345) % 2 ** 31) / 2 ** 31;
  using user = new UserHome();
  using runtime = new TempDir();
  const env = { ...MODEL_ENV, XDG_RUNTIME_DIR: runtime.path };
  let completed = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const script: ServedScript[] = Array.from({ length: 8 }, () => countingReply);
    await using server = await ProviderServer.start(script);
    const prompt = `prompt ${kill}`;
    const args = [
      "-p",
      "-q",
      ...(kill > 0 ? ["-c"] : ["--session-id", "crash-test"]),
      ...modelFlags(server),
      prompt,
    ];
    const child = user.start(args, { env });
    const moment = random() * 500;
    const timer = setTimeout(() => child.kill("SIGKILL"), moment);
    const run = await child.finished;
    clearTimeout(timer);
    const first = server.requests[0];
    if (run.code === 0) completed += 1;
    if (!first) continue;
    const prompts = first.body.messages
      .filter((message: any) => message.role === "user")
      .map((message: any) => message.content);
    expect(prompts).toContain(prompt);
  }
  await using server = await ProviderServer.start([
    (request) => {
      expectValid(request);
      const answers = request.body.messages.filter((message: any) => message.content === "counted");
      expect(answers.length).toBeGreaterThanOrEqual(completed);
      return { text: "still here" };
    },
  ]);
  const last = await user.run(["-p", "-c", ...modelFlags(server), "the end"], { env });
  expectCode(last, 0);
  expect(last.stdout).toBe("still here\n");
  // A kernel notices by itself that its host was killed.
  while (readdirSync(runtime.path).length > 0) await Bun.sleep(20);
});

test(`a run of ${TURNS} turns sends a prefix that is byte-identical from turn to turn`, async () => {
  const script: ServedScript[] = Array.from({ length: TURNS }, (_, turn) => () => {
    if (turn === TURNS - 1) return { text: "the end" };
    return {
      toolCalls: [{ name: "ipython", arguments: { code: `step = ${turn}` } }],
      usage: { input: 100, output: 10 },
    };
  });
  await using server = await ProviderServer.start(script);
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...modelFlags(server), "count"], { env: MODEL_ENV });
  expectCode(run, 0);
  expect(run.events.at(-1)).toMatchObject({
    num_turns: TURNS,
    num_tool_calls: TURNS - 1,
    result: "the end",
  });
  const requests = server.requests.map((request) => request.body);
  for (const [index, body] of requests.entries()) {
    const earlier = requests[index - 1];
    if (!earlier) continue;
    expect(JSON.stringify(body.tools)).toBe(JSON.stringify(earlier.tools));
    const kept = body.messages.slice(0, earlier.messages.length);
    expect(Bun.hash(JSON.stringify(kept))).toBe(Bun.hash(JSON.stringify(earlier.messages)));
  }
});
