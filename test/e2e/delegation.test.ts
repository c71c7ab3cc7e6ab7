/** Sub-agents on the compiled program: spawned in one cell, waited for, summed up, and gone afterwards. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { cell, FAMILY_ENV as env, FamilyProvider, transcript } from "../support/family-provider.ts";
import { untilGone } from "../support/processes.ts";
import { expectCode, UserHome, type Finished } from "../support/program.ts";
import type { RecordedRequest } from "../support/provider-server.ts";

/** Every scripted reply uses so many tokens. */
const TOKENS_PER_REPLY = 120;

function send(text: string): string {
  return `await agent_message.send(${JSON.stringify(text)}, receiver_role="parent")`;
}

function spawn(...names: string[]): string {
  return `for name in ${JSON.stringify(names)}:\n    await rlm(f"Find the number of {name}", name=name)`;
}

/** What sub-agents have said so far, as the root reads it. */
function reports(request: RecordedRequest): string[] {
  return [
    ...transcript(request).matchAll(/from=\\"child\\" name=\\"(\w+)\\"[^>]*>\\n(.*?)\\n</g),
  ].map(([, name, text]) => `${name}: ${text}`);
}

function resultOf(run: Finished): Record<string, any> {
  expect(run.events.filter(({ type }) => type === "result")).toHaveLength(1);
  return run.events.at(-1) ?? {};
}

test("a parent gets the messages of three sub-agents over later turns and sums them up", async () => {
  await using family = await FamilyProvider.start({
    root: [
      cell(spawn("ann", "ben", "cyd")),
      { text: "I wait." },
      (request) => ({ text: `I have ${reports(request).length}.` }),
      (request) => ({ text: `I have ${reports(request).length}.` }),
      (request) => ({ text: `All: ${reports(request).sort().join(", ")}` }),
    ],
    ann: [() => cell(send("1"), { after: family.asked("root", 2) }), { text: "sent" }],
    ben: [() => cell(send("2"), { after: family.asked("root", 3) }), { text: "sent" }],
    cyd: [() => cell(send("3"), { after: family.asked("root", 4) }), { text: "sent" }],
  });
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...family.flags, "Add them"], { env });
  expectCode(run, 0);
  const result = resultOf(run);
  expect(result).toMatchObject({
    subtype: "success",
    result: "All: ann: 1, ben: 2, cyd: 3",
    num_turns: 5,
    num_tool_calls: 1,
    agents: ["ann", "ben", "cyd"].map((name) => ({
      name,
      state: "completed",
      num_turns: 2,
      num_tool_calls: 1,
      usage: { total_tokens: 2 * TOKENS_PER_REPLY },
      error: null,
    })),
    usage: { total_tokens: 11 * TOKENS_PER_REPLY },
  });
  expect(family.server.requests).toHaveLength(11);
  expectSpawnerCharged(result["session_file"], 6 * TOKENS_PER_REPLY);
  expectOrigins(run);
  await untilGone(user.home);
});

/** The usage of all sub-agents is stored with the reply whose cell spawned them. */
function expectSpawnerCharged(path: string, tokens: number): void {
  const entries = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const spawner = entries.find(({ message }) => message?.role === "assistant");
  const charges = entries.filter(({ type }) => type === "child_usage_attributed");
  expect(new Set(charges.map(({ targetId }) => targetId))).toEqual(new Set([spawner.id]));
  expect(charges.at(-1).aggregateUsage.totalTokens).toBe(tokens + TOKENS_PER_REPLY);
}

/** Each event of a sub-agent names it and the call that spawned it. */
function expectOrigins(run: Finished): void {
  const spawner = run.events.find(({ type }) => type === "assistant");
  const callId = spawner?.["message"].content.find((block: any) => block.type === "tool_use").id;
  const ofAgents = run.events.filter((event) => event["agent"]);
  expect(ofAgents.length).toBeGreaterThan(12);
  expect(new Set(ofAgents.map((event) => event["parent_tool_use_id"]))).toEqual(new Set([callId]));
  const states = ofAgents
    .filter(({ subtype, agent }) => subtype === "agent" && agent.name === "ann")
    .map(({ state }) => state);
  expect(states).toEqual(["queued", "running", "completed"]);
}

test("the notice about a sub-agent whose kernel was killed says so; the others' messages arrive", async () => {
  await using family = await FamilyProvider.start({
    root: [
      cell(spawn("ann", "ben", "victim")),
      (request) => ({ text: `So far: ${reports(request).sort().join(", ")}` }),
    ],
    ann: [cell(send("1")), { text: "sent" }],
    ben: [cell(send("2")), { text: "sent" }],
    victim: [
      cell("import os, time\nprint(f'victim is {os.getpid()}.', flush=True)\ntime.sleep(1000)"),
      { text: "My kernel is gone; I got no further." },
    ],
  });
  using user = new UserHome();
  const child = user.start(["-p", "--json", ...family.flags, "Add them"], { env });
  await child.saw("stderr", "victim is ");
  await child.saw("stderr", "[ben] ");
  const pid = await victimPid(child);
  process.kill(pid, "SIGKILL");
  const run = await child.finished;
  expectCode(run, 0);
  const result = resultOf(run);
  expect(result["result"]).toBe("So far: ann: 1, ben: 2");
  const lastRequest = family.requestsOf("root").at(-1) as RecordedRequest;
  const notices = transcript(lastRequest).match(/<subagent_ended .*?<\/subagent_ended>/g) ?? [];
  expect(notices).toHaveLength(1);
  for (const part of ['name=\\"victim\\"', "kernel died", "SIGKILL", "I got no further"]) {
    expect(notices[0]).toContain(part);
  }
  expect(result["usage"].total_tokens).toBe(family.server.requests.length * TOKENS_PER_REPLY);
  await untilGone(user.home);
});

async function victimPid(child: ReturnType<UserHome["start"]>): Promise<number> {
  for (;;) {
    const pid = /victim is (\d+)\./.exec(child.stderr)?.[1];
    if (pid) return Number(pid);
    await Bun.sleep(10);
  }
}

test("sixteen sub-agents at once all answer", async () => {
  const names = Array.from({ length: 16 }, (_, index) => `worker${index}`);
  await using family = await FamilyProvider.start({
    root: [
      cell(spawn(...names)),
      (request) => ({ text: `${new Set(reports(request)).size} answered` }),
    ],
    others: [cell(send("here")), { text: "sent" }],
  });
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...family.flags, "Ask them"], { env });
  expectCode(run, 0);
  const result = resultOf(run);
  expect(result["result"]).toBe("16 answered");
  expect(result["agents"].map(({ state }: any) => state)).toEqual(names.map(() => "completed"));
  await untilGone(user.home);
});

test("a signal while sub-agents work ends them too: the result says so and nothing is left", async () => {
  await using family = await FamilyProvider.start({
    root: [cell(spawn("ann", "ben")), { text: "I wait." }],
    others: [cell("import time\nprint('begun', flush=True)\ntime.sleep(1000)"), { text: "never" }],
  });
  using user = new UserHome();
  const child = user.start(["-p", "--json", ...family.flags, "go"], { env });
  await child.saw("stderr", "[ann] begun");
  await child.saw("stderr", "[ben] begun");
  child.kill("SIGTERM");
  const run = await child.finished;
  expectCode(run, 143);
  expect(resultOf(run)).toMatchObject({
    subtype: "error_interrupted",
    agents: [
      { name: "ann", state: "cancelled" },
      { name: "ben", state: "cancelled" },
    ],
  });
  await untilGone(user.home);
  expect(await firstRequestAfter(user)).toMatch(/had reported\.[^]*- ann \([^]*- ben \(/);
});

/** What the model reads when the session of a home is gone on with. */
async function firstRequestAfter(user: UserHome): Promise<string> {
  await using family = await FamilyProvider.start({ root: [{ text: "I see." }] });
  const run = await user.run(["-p", "-c", ...family.flags, "go on"], { env });
  expectCode(run, 0);
  return transcript(family.requestsOf("root")[0] as RecordedRequest);
}
