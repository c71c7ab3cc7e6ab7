/**
 * Every way in which a provider fails, in every output format: exit code,
 * `is_error`, `subtype` and message agree, and nothing is sent again that must
 * not be.
 */

import { describe, expect, test } from "bun:test";
import { expectCode, UserHome, type Finished } from "../support/program.ts";
import { ProviderServer, type ServedReply } from "../support/provider-server.ts";

interface Failure {
  name: string;
  reply: ServedReply;
  exit: number;
  subtype: string;
  /** What the message must hold. */
  says: string;
  /** How many requests come in all, with one retry allowed. */
  requests: number;
}

const error = (status: number, message: string): ServedReply => ({
  status,
  error: { type: "some_error", message },
});

const FAILURES: Failure[] = [
  {
    name: "400",
    reply: error(400, "bad field"),
    exit: 1,
    subtype: "error_during_execution",
    says: "bad field",
    requests: 1,
  },
  {
    name: "401",
    reply: error(401, "bad key"),
    exit: 3,
    subtype: "error_auth",
    says: "bad key",
    requests: 1,
  },
  {
    name: "403",
    reply: error(403, "not allowed"),
    exit: 3,
    subtype: "error_auth",
    says: "not allowed",
    requests: 1,
  },
  {
    name: "404",
    reply: error(404, "no such model"),
    exit: 1,
    subtype: "error_during_execution",
    says: "no such model",
    requests: 1,
  },
  {
    name: "408",
    reply: error(408, "too slow"),
    exit: 6,
    subtype: "error_unavailable",
    says: "too slow",
    requests: 2,
  },
  {
    name: "413",
    reply: error(413, "too large"),
    exit: 1,
    subtype: "error_during_execution",
    says: "",
    // The second one asks for a summary, in the hope that a shorter request passes.
    requests: 2,
  },
  {
    name: "429",
    reply: { ...error(429, "slow down"), headers: { "retry-after": "0" } },
    exit: 6,
    subtype: "error_unavailable",
    says: "slow down",
    requests: 2,
  },
  {
    name: "429 with a wait beyond the cap",
    reply: { ...error(429, "slow down"), headers: { "retry-after": "3600" } },
    exit: 6,
    subtype: "error_unavailable",
    says: "slow down",
    requests: 1,
  },
  {
    name: "500",
    reply: error(500, "it broke"),
    exit: 6,
    subtype: "error_unavailable",
    says: "it broke",
    requests: 2,
  },
  {
    name: "529",
    reply: error(529, "overloaded"),
    exit: 6,
    subtype: "error_unavailable",
    says: "overloaded",
    requests: 2,
  },
  {
    name: "a reset",
    reply: { refuse: "reset" },
    exit: 6,
    subtype: "error_unavailable",
    says: "",
    requests: 2,
  },
  {
    name: "a cut stream",
    reply: { text: "Half an ans", finish: "none", end: "close" },
    exit: 6,
    subtype: "error_unavailable",
    says: "",
    requests: 2,
  },
  {
    name: "an HTML error page",
    reply: {
      status: 503,
      body: "<html><body><h1>Service Unavailable</h1></body></html>",
      contentType: "text/html",
    },
    exit: 6,
    subtype: "error_unavailable",
    says: "Service Unavailable",
    requests: 2,
  },
];

const FORMATS = ["text", "json", "stream-json"] as const;
const env = { TEST_KEY: "a-key-for-tests" };

function run(
  user: UserHome,
  baseUrl: string,
  format: string,
  more: string[] = [],
): Promise<Finished> {
  const model = [
    "-m",
    "local/test",
    "--base-url",
    baseUrl,
    "--api",
    "openai-completions",
    "--api-key-env",
    "TEST_KEY",
  ];
  return user.run(["-p", "-o", format, "--max-retries", "1", ...model, ...more, "hi"], { env });
}

/** What a run says about its outcome, in whatever format. */
function expectFailure(
  finished: Finished,
  format: string,
  failure: Pick<Failure, "exit" | "subtype" | "says">,
): void {
  expectCode(finished, failure.exit);
  expect(finished.stderr).toContain(failure.says);
  expect(finished.stderr).not.toContain("    at ");
  if (format === "text") {
    expect(finished.stdout).toBe("");
    return;
  }
  const result = finished.events.at(-1);
  expect(result).toMatchObject({
    type: "result",
    subtype: failure.subtype,
    is_error: true,
    exit_code: failure.exit,
    error: { message: expect.stringContaining(failure.says) },
  });
}

describe.each(FORMATS)("as %s", (format) => {
  test.each(FAILURES)(
    "$name ends with exit code $exit and $subtype after $requests requests",
    async (failure) => {
      await using server = await ProviderServer.start([
        failure.reply,
        failure.reply,
        failure.reply,
      ]);
      using user = new UserHome();
      const finished = await run(user, server.baseUrl("openai-completions"), format);
      expectFailure(finished, format, failure);
      expect(server.requests).toHaveLength(failure.requests);
      if (format === "stream-json") {
        const retries = finished.events.filter((event) => event["subtype"] === "api_retry");
        expect(retries).toHaveLength(failure.name === "413" ? 0 : failure.requests - 1);
      }
    },
  );

  test("a name that does not resolve is unavailable", async () => {
    using user = new UserHome();
    const finished = await run(user, "http://no-such-host.invalid/v1", format);
    expectFailure(finished, format, {
      exit: 6,
      subtype: "error_unavailable",
      says: "no-such-host.invalid",
    });
  });

  test("a time-out is told as one", async () => {
    await using server = await ProviderServer.start([{ refuse: "hang" }]);
    using user = new UserHome();
    const finished = await run(user, server.baseUrl("openai-completions"), format, [
      "--timeout",
      "1s",
    ]);
    expectFailure(finished, format, { exit: 124, subtype: "error_timeout", says: "--timeout" });
  });
});

test("HTTP_PROXY is asked for what is not on this machine, and NO_PROXY says what is not its business", async () => {
  await using proxy = await ProviderServer.start([{ text: "through the proxy" }]);
  using user = new UserHome();
  const flags = ["-m", "far/away", "--base-url", "http://far.invalid/v1", "--max-retries", "0"];
  const through = await user.run(["-p", ...flags, "hi"], { env: { HTTP_PROXY: proxy.url } });
  expectCode(through, 0);
  expect(through.stdout).toBe("through the proxy\n");
  expect(proxy.requests[0]?.path).toBe("http://far.invalid/v1/chat/completions");
  const without = { HTTP_PROXY: proxy.url, NO_PROXY: "far.invalid" };
  expectCode(await user.run(["-p", ...flags, "hi"], { env: without }), 6);
  await using local = await ProviderServer.start([{ text: "directly" }]);
  const near = ["-m", "near/by", "--base-url", local.baseUrl("openai-completions")];
  const direct = await user.run(["-p", ...near, "hi"], { env: { HTTP_PROXY: proxy.url } });
  expect(direct.stdout).toBe("directly\n");
});

test("a request that succeeds after a retry is a success, and partial text is not shown twice", async () => {
  await using server = await ProviderServer.start([
    { text: "Half an ans", finish: "none", end: "close" },
    { text: "The whole answer." },
  ]);
  using user = new UserHome();
  const finished = await run(user, server.baseUrl("openai-completions"), "text");
  expectCode(finished, 0);
  expect(finished.stdout).toBe("The whole answer.\n");
});

test("an overflow that can't be compacted ends with a clear error", async () => {
  const overflow = error(400, "This model's maximum context length is 1000 tokens");
  await using server = await ProviderServer.start([overflow, overflow, overflow, overflow]);
  using user = new UserHome();
  const finished = await run(user, server.baseUrl("openai-completions"), "stream-json");
  expectCode(finished, 1);
  expect(finished.events.at(-1)).toMatchObject({
    subtype: "error_during_execution",
    is_error: true,
  });
  expect(server.requests.length).toBeLessThanOrEqual(4);
});
