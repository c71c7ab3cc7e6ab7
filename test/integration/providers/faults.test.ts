import { describe, expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { AbortedError } from "../../../src/errors.ts";
import type { FailureKind } from "../../../src/providers/provider.ts";
import {
  collect,
  failureIn,
  finalEvent,
  messageIn,
  TEST_KEY,
  testModel,
  testRequest,
} from "../../support/provider-call.ts";
import { SERVED_APIS } from "../../support/provider-formats.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import type { ServedReply } from "../../support/provider-server.ts";

/** Asks for one retry, and tells the server how soon. */
const SOON = { "retry-after-ms": "1" };

interface FaultCase {
  status: number;
  error: { type: string; message: string };
  kind: FailureKind;
  retried: boolean;
}

const STATUSES: FaultCase[] = [
  fault(400, "invalid_request_error", "tools.0: bad schema", "invalid_request", false),
  fault(
    400,
    "invalid_request_error",
    "prompt is too long: 9 tokens > 8 maximum",
    "overflow",
    false,
  ),
  fault(401, "authentication_error", "invalid x-api-key", "auth", false),
  fault(402, "billing_error", "Insufficient Balance", "auth", false),
  fault(403, "permission_error", "not allowed", "auth", false),
  fault(404, "not_found_error", "model: test-model", "not_found", false),
  fault(408, "timeout", "took too long", "timeout", true),
  fault(409, "conflict", "try again", "server", true),
  fault(413, "request_too_large", "Request exceeds the maximum size", "overflow", false),
  fault(422, "unprocessable", "extra inputs are not permitted", "invalid_request", false),
  fault(429, "rate_limit_error", "too many tokens per minute", "rate_limit", true),
  fault(429, "insufficient_quota", "You exceeded your current quota", "rate_limit", false),
  fault(500, "api_error", "Internal server error", "server", true),
  fault(502, "bad_gateway", "upstream died", "server", true),
  fault(503, "unavailable", "no capacity", "overloaded", true),
  fault(529, "overloaded_error", "Overloaded", "overloaded", true),
];

function fault(
  status: number,
  type: string,
  message: string,
  kind: FailureKind,
  retried: boolean,
): FaultCase {
  return { status, error: { type, message }, kind, retried };
}

describe.each([...SERVED_APIS])("%s", (api) => {
  test.each(STATUSES)(
    "status $status ($error.type) fails as $kind, retried: $retried",
    async ({ status, error, kind, retried }) => {
      const reply = { status, error, headers: SOON };
      await using server = await ProviderServer.start([reply, reply]);
      const model = testModel(api, server.baseUrl(api));
      const events = await collect(testRequest(model, { maxRetries: 1 }));
      const failure = failureIn(events);
      expect(failure).toMatchObject({ kind, httpStatus: status, retryable: retried });
      expect(failure.message).toContain(error.message);
      expect(server.requests).toHaveLength(retried ? 2 : 1);
      expect(events.filter((event) => event.type === "retry")).toHaveLength(retried ? 1 : 0);
      expect(messageIn(events)).toMatchObject({
        stopReason: "error",
        content: [],
        errorMessage: failure.message,
      });
    },
  );

  test("a retry sends the same bytes, is announced before the wait, and can succeed", async () => {
    const busy = { status: 529, error: { type: "overloaded_error", message: "Overloaded" } };
    await using server = await ProviderServer.start([{ ...busy, headers: SOON }, { text: "Hi" }]);
    const model = testModel(api, server.baseUrl(api));
    const events = await collect(testRequest(model, { maxRetries: 3 }));
    expect(events[0]).toEqual({
      type: "retry",
      attempt: 1,
      maxRetries: 3,
      delayMs: 1,
      reason: "tested: Overloaded (HTTP 529)",
      httpStatus: 529,
    });
    expect(messageIn(events).content).toMatchObject([{ type: "text", text: "Hi" }]);
    expect(server.requests[1]?.text).toBe(server.requests[0]?.text as string);
    // Nothing of the first attempt was shown, so nothing has to be taken back.
    expect(events.some((event) => event.type === "restart")).toBe(false);
  });

  test.concurrent.each(["close", "reset"] as const)(
    "a stream that ends by %s inside a call is retried from the start and never gives the call",
    async (end) => {
      const call = { name: "ipython", arguments: { code: "import shutil; shutil.rmtree('a')" } };
      const seen = defer<void>();
      const cut: ServedReply = { text: "Cleaning", toolCalls: [call], finish: "none", end };
      await using server = await ProviderServer.start([
        { ...cut, endAfter: seen.promise },
        { text: "All done" },
      ]);
      const model = testModel(api, server.baseUrl(api));
      const events = await collect(testRequest(model, { maxRetries: 1 }), () => seen.resolve());
      const kinds = events.map((event) => event.type);
      expect(kinds.indexOf("restart")).toBe(kinds.indexOf("retry") + 1);
      expect(kinds).not.toContain("tool_call_end");
      expect(messageIn(events).content).toMatchObject([{ type: "text", text: "All done" }]);
      expect(server.requests).toHaveLength(2);
    },
  );

  test("a stream that ends early without retries fails as network and keeps the text", async () => {
    await using server = await ProviderServer.start([{ text: "Half an ans", finish: "none" }]);
    const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
    expect(failureIn(events)).toMatchObject({ kind: "network", retryable: true });
    expect(failureIn(events).message).toContain("before the reply was complete");
    expect(messageIn(events).content).toMatchObject([{ type: "text", text: "Half an ans" }]);
  });

  test("an error event inside a 200 is read like a status", async () => {
    const errorEvent = { type: "overloaded_error", message: "Overloaded" };
    await using server = await ProviderServer.start([{ text: "So", errorEvent }]);
    const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
    expect(failureIn(events)).toMatchObject({ kind: "overloaded", retryable: true });
    expect(failureIn(events).message).toBe("tested: Overloaded");
  });

  test("a reply that its provider's filter stopped fails as content_filter", async () => {
    await using server = await ProviderServer.start([{ text: "Well", finish: "filter" }]);
    const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
    expect(failureIn(events)).toMatchObject({ kind: "content_filter", retryable: false });
  });

  test("a 200 that says that the context window is full fails as overflow", async () => {
    await using server = await ProviderServer.start([{ finish: "overflow" }]);
    const model = testModel(api, server.baseUrl(api));
    const events = await collect(testRequest(model, { maxRetries: 3 }));
    expect(failureIn(events)).toMatchObject({ kind: "overflow", retryable: false });
    expect(server.requests).toHaveLength(1);
  });

  test("an empty reply that ends by length with a full window fails as overflow", async () => {
    const usage = { input: 99_000, output: 0 };
    await using server = await ProviderServer.start([{ finish: "length", usage }]);
    const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
    expect(failureIn(events).kind).toBe("overflow");
  });

  test("a silent stream ends as a timeout, not as an abort", async () => {
    await using server = await ProviderServer.start([{ text: "Hm", finish: "none", end: "hang" }]);
    const model = testModel(api, server.baseUrl(api));
    const events = await collect(testRequest(model, { idleTimeoutMs: 60 }));
    expect(failureIn(events)).toMatchObject({ kind: "timeout", retryable: true });
    expect(failureIn(events).message).toBe("tested: nothing arrived for 60 ms");
    expect(messageIn(events)).toMatchObject({ stopReason: "error" });
    await server.requests[0]?.closed;
  });

  test("an abort while the reply streams ends it at once and closes the connection", async () => {
    await using server = await ProviderServer.start([{ text: "Hm", finish: "none", end: "hang" }]);
    const abort = new AbortController();
    const model = testModel(api, server.baseUrl(api));
    const request = testRequest(model, { signal: abort.signal, maxRetries: 3 });
    const events = await collect(request, ({ type }) => {
      if (type === "text_delta") abort.abort(new AbortedError("user", "stopped by the user"));
    });
    expect(finalEvent(events)).toMatchObject({
      type: "failed",
      failure: { kind: "aborted", message: "tested: stopped by the user", retryable: false },
      message: { stopReason: "aborted", content: [{ type: "text", text: "Hm" }] },
    });
    await server.requests[0]?.closed;
  });

  test("no text of a failure shows the key", async () => {
    const error = { type: "authentication_error", message: `no such key: ${TEST_KEY}!` };
    await using server = await ProviderServer.start([{ status: 401, error }]);
    const events = await collect(testRequest(testModel(api, server.baseUrl(api))));
    expect(failureIn(events).message).toContain("no such key: [redacted]!");
    expect(JSON.stringify(events)).not.toContain(TEST_KEY);
  });
});
