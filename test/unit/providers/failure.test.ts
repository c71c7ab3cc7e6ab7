import { describe, expect, test } from "bun:test";
import {
  failure,
  httpFailure,
  MAX_FAILURE_CHARS,
  streamFailure,
  transportFailure,
} from "../../../src/providers/failure.ts";

const SOURCE = { provider: "acme", apiKey: "sk-secret-key" };
const NOW = Date.parse("2026-03-01T12:00:00Z");

function ofBody(body: string, status = 400) {
  return httpFailure(SOURCE, { status, body, retryAfterMs: undefined }, NOW);
}

describe("the text of an error body", () => {
  test.each<[string, string, string]>([
    ["OpenAI", `{"error":{"message":"bad","type":"x","code":null}}`, "bad"],
    ["Anthropic", `{"type":"error","error":{"type":"x","message":"bad"}}`, "bad"],
    ["Gemini in an array", `[{"error":{"code":400,"message":"bad","status":"X"}}]`, "bad"],
    ["an error that is a string", `{"error":"bad"}`, "bad"],
    ["a message at the top", `{"object":"error","message":"bad","code":40000}`, "bad"],
    ["FastAPI", `{"detail":"bad"}`, "bad"],
    [
      "FastAPI's validation",
      `{"detail":[{"loc":["body"],"msg":"bad"},{"msg":"worse"}]}`,
      "bad; worse",
    ],
    ["a list of errors", `{"errors":[{"message":"bad"}]}`, "bad"],
    ["a JSON string", `"bad"`, "bad"],
    [
      "OpenRouter with its cause",
      `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"bad\\"}}"}}}`,
      "Provider returned error: bad",
    ],
    [
      "a page with a title",
      "<html><head><title>Bad &lt;gateway&gt;</title></head><body>x</body></html>",
      "Bad <gateway>",
    ],
    [
      "a page without",
      "<!doctype html><body><script>x()</script><h1>Bad</h1>\n<p>day</p></body>",
      "Bad day",
    ],
    ["plain text", "bad\r\n  day\u001b[31m", "bad day [31m"],
    ["nothing", "", "Bad Request"],
    ["an object that says nothing", "{}", "Bad Request"],
  ])("of %s", (_, body, text) => {
    expect(ofBody(body).message).toBe(`acme: ${text} (HTTP 400)`);
  });

  test("is bounded, without control characters and without half characters", () => {
    const { message } = ofBody(`😀\u0007\u2028${"😀".repeat(2_000)}`);
    expect(message.length).toBeLessThanOrEqual(MAX_FAILURE_CHARS);
    expect(message).toStartWith("acme: 😀 😀");
    expect(message.isWellFormed()).toBe(true);
  });

  test("hides the key, and what the caller knows to be secret", () => {
    const source = { ...SOURCE, redact: (text: string) => text.replaceAll("hunter2", "***") };
    const { message } = failure(source, "auth", "sk-secret-key or hunter2 is wrong");
    expect(message).toBe("acme: [redacted] or *** is wrong");
  });
});

describe("a status", () => {
  test.each<[string, number, string, string]>([
    [
      "Gemini's bad key",
      400,
      `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","details":[{"reason":"API_KEY_INVALID"}]}}`,
      "auth",
    ],
    ["xAI's bad key", 400, `{"error":"Incorrect API key provided: xa***"}`, "auth"],
    ["a filter", 400, `{"error":{"message":"flagged","code":"content_filter"}}`, "content_filter"],
    [
      "OpenRouter's moderation",
      403,
      `{"error":{"message":"Your input was flagged"}}`,
      "content_filter",
    ],
    [
      "a model that is not there",
      400,
      `{"error":{"message":"The model x does not exist","code":"model_not_found"}}`,
      "not_found",
    ],
    ["a teapot", 418, "", "invalid_request"],
    ["a bad gateway", 520, "", "server"],
  ])("for %s is read with its text", (_, status, body, kind) => {
    expect(ofBody(body, status).kind).toBe(kind as never);
  });

  test.each([
    "image exceeds 5 MB maximum",
    "Could not process image",
    "image_url is invalid",
    "more than 8000 pixels",
  ])("of 400 that says %p is about an image", (message) => {
    expect(ofBody(JSON.stringify({ error: { message } }))).toMatchObject({
      kind: "invalid_request",
      imageRelated: true,
    });
  });

  test("of 400 about something else is not about an image", () => {
    expect(ofBody(`{"error":{"message":"imagine a bad tool"}}`)).not.toHaveProperty("imageRelated");
  });
});

test("a wait that Gemini asks for in the body counts, unless a header asks for another", () => {
  const details = [{ "@type": "x", quotaId: "y" }, { retryDelay: "36.5s" }];
  const body = JSON.stringify({ error: { code: 429, message: "slow", details } });
  expect(ofBody(body, 429)).toMatchObject({ retryable: true, retryAfterMs: 36_500 });
  const response = { status: 429, body, retryAfterMs: 10 };
  expect(httpFailure(SOURCE, response, NOW).retryAfterMs).toBe(10);
});

describe("an error inside a stream", () => {
  test.each<[string, unknown, string, boolean]>([
    [
      "Anthropic's overload",
      { type: "error", error: { type: "overloaded_error", message: "Overloaded" } },
      "overloaded",
      true,
    ],
    [
      "Anthropic's fault",
      { type: "error", error: { type: "api_error", message: "x" } },
      "server",
      true,
    ],
    ["a rate limit", { error: { code: "rate_limit_exceeded", message: "x" } }, "rate_limit", true],
    ["OpenRouter's status", { error: { code: 502, message: "x" } }, "server", true],
    ["OpenRouter's bad request", { error: { code: 400, message: "x" } }, "invalid_request", false],
    [
      "Gemini's status",
      { error: { code: 503, status: "UNAVAILABLE", message: "x" } },
      "overloaded",
      true,
    ],
    [
      "an overflow",
      { error: { code: "context_length_exceeded", message: "x" } },
      "overflow",
      false,
    ],
    [
      "a bad request",
      { error: { type: "invalid_request_error", message: "x" } },
      "invalid_request",
      false,
    ],
    ["a quota", { error: { code: "insufficient_quota", message: "x" } }, "rate_limit", false],
    ["a key", { error: { type: "authentication_error", message: "x" } }, "auth", false],
    ["a string", { error: "capacity reached" }, "overloaded", true],
    ["no word", {}, "server", true],
    ["null", null, "server", true],
  ])("as %s", (_, error, kind, retryable) => {
    expect(streamFailure(SOURCE, error, NOW)).toMatchObject({ kind, retryable });
  });
});

describe("an error of the transport", () => {
  test("that has no code is a request that can't be made", () => {
    const error = new TypeError("Header 'x' has invalid value");
    expect(transportFailure(SOURCE, error, "http://a/")).toMatchObject({
      kind: "invalid_request",
      retryable: false,
    });
  });

  test.each(["ECONNRESET", "ENOTFOUND", "ECONNREFUSED", "CERT_HAS_EXPIRED", "EWHATEVER"])(
    "with code %s is named, and never called an abort",
    (code) => {
      const error = Object.assign(new Error("it broke"), { code });
      const result = transportFailure(SOURCE, error, "https://api.acme.test/v1/x");
      expect(result).toMatchObject({ kind: "network", retryable: true });
      expect(result.message).toContain("api.acme.test");
      expect(result.message).not.toContain("abort");
    },
  );
});
