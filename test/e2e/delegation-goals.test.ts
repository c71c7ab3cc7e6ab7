/** Goals, limits and compaction on the compiled program, with and without sub-agents. */

import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import {
  cell,
  FAMILY_ENV as env,
  FamilyProvider,
  lastMessage,
  transcript,
} from "../support/family-provider.ts";
import { untilGone } from "../support/processes.ts";
import { expectCode, UserHome } from "../support/program.ts";
import type { RecordedRequest } from "../support/provider-server.ts";

const OBJECTIVE = "Write `done` into out.txt, $& and nothing else.";

test("--goal alone is prompt enough: it is pursued until it is complete", async () => {
  await using family = await FamilyProvider.start({
    root: [
      { text: "I begin with a plan." },
      cell("from pathlib import Path\nPath('out.txt').write_text('done')"),
      { text: "It is written." },
      cell("print((await goal.complete())['completion_budget_report'])"),
      (request) => ({ text: `Complete: ${lastMessage(request).trim()}` }),
    ],
  });
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...family.flags, "--goal", OBJECTIVE], { env });
  expectCode(run, 0);
  expect(run.events.at(-1)).toMatchObject({ subtype: "success", num_turns: 5 });
  expect(run.events.at(-1)?.["result"]).toMatch(/^Complete: \d+ tokens used, without a budget\.$/);
  expect(readFileSync(`${user.cwd}/out.txt`, "utf8")).toBe("done");
  const [first, second] = family.server.requests.map(transcript);
  expect(first).toContain("The user has set a goal for you.");
  expect(second).toContain(`word for word:\\n\\n${OBJECTIVE}\\n`);
});

test("a goal whose budget is used up ends with a summary and a note", async () => {
  await using family = await FamilyProvider.start({
    root: [
      cell("g = await goal.create('Count to infinity', token_budget=200)"),
      { text: "One." },
      { text: "Two." },
      (request) => ({ text: lastMessage(request).includes("used up") ? "I got to two." : "More." }),
    ],
  });
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...family.flags, "Count"], { env });
  expectCode(run, 0);
  expect(run.events.at(-1)).toMatchObject({
    result: "I got to two.",
    num_turns: 4,
    warnings: expect.arrayContaining([
      expect.stringContaining("its token budget is used up: 240 of 200 tokens used"),
    ]),
  });
});

test("a goal that is not complete goes on when the session is resumed", async () => {
  using user = new UserHome();
  {
    await using family = await FamilyProvider.start({
      root: [cell("g = await goal.create('Finish it')"), { status: 401 }],
    });
    const run = await user.run(["-p", ...family.flags, "go"], { env });
    expectCode(run, 3);
  }
  await using family = await FamilyProvider.start({
    root: [{ text: "hello again" }, cell("g = await goal.complete()"), { text: "finished" }],
  });
  const run = await user.run(["-p", "-c", ...family.flags, "hello"], { env });
  expectCode(run, 0);
  expect(run.stdout).toBe("finished\n");
  expect(lastMessage(family.server.requests[1] as RecordedRequest)).toContain("Finish it");
});

test("what sub-agents use counts against the limit of the whole run", async () => {
  await using family = await FamilyProvider.start({
    root: [
      cell("for name in ('a', 'b'): await rlm('go on for ever', name=name)"),
      { text: "I wait." },
    ],
    others: [cell("1", { usage: { input: 100, output: 100 } })],
  });
  using user = new UserHome();
  const args = ["-p", "--json", "--max-tokens", "3000", ...family.flags, "go"];
  const run = await user.run(args, { env });
  expectCode(run, 4);
  const result = run.events.at(-1);
  expect(result).toMatchObject({
    type: "result",
    subtype: "error_max_tokens",
    agents: [
      { name: "a", state: "cancelled", error: expect.stringContaining("--max-tokens") },
      { name: "b", state: "cancelled" },
    ],
  });
  expect(result?.["usage"].total_tokens).toBeWithin(3_000, 3_600);
  await untilGone(user.home);
});

test("a compaction that the model asks for comes before its next request", async () => {
  const isSummary = (request: RecordedRequest) => !request.body.tools?.length;
  await using family = await FamilyProvider.start({
    root: [
      cell("kept = 7\nprint(await compact.run('Keep the secret word: apple.'))"),
      (request) => ({
        text: isSummary(request) ? "The word is apple." : "no summary was asked for",
      }),
      (request) => ({
        text: transcript(request).includes("The word is apple.") ? "apple" : "lost",
      }),
    ],
  });
  using user = new UserHome();
  const run = await user.run(["-p", "--json", ...family.flags, "The word is apple"], { env });
  expectCode(run, 0);
  expect(run.events.at(-1)?.["result"]).toBe("apple");
  expect(run.events).toContainEqual(
    expect.objectContaining({ subtype: "compact_boundary", trigger: "manual" }),
  );
  const [, , last] = family.server.requests.map(transcript);
  expect(last).toContain("kept");
});
