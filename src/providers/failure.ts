/**
 * Says what went wrong: turns HTTP answers, error events and transport errors
 * into a {@link ProviderFailure} with the provider's own words, bounded and
 * without secrets.
 */

import { STATUS_CODES } from "node:http";
import { asNumber, asObject, asObjects, asString, parseJson } from "./json.ts";
import type { JsonObject } from "./json.ts";
import { isContextOverflow } from "./overflow.ts";
import type { FailureKind, ProviderFailure } from "./provider.ts";
import { describeReset, isRetryableStatus, MAX_RETRY_AFTER_MS } from "./retry.ts";

/** The longest text of a failure, in characters. */
export const MAX_FAILURE_CHARS = 1_000;

/** Whose failure it is, and what its text must not show. */
export interface FailureSource {
  provider: string;
  apiKey: string | undefined;
  redact?: (text: string) => string;
}

/** What an error body says: its text, and its codes and types as one searchable string. */
interface ErrorDetail {
  text: string;
  codes: string;
  /** An HTTP status inside the body, as gateways send it. */
  status?: number;
  /** The wait that the body asks for, as Gemini sends it instead of a header. */
  retryAfterMs?: number;
}

/** The failure that an HTTP response with an error status stands for. */
export function httpFailure(
  source: FailureSource,
  response: { status: number; body: string; retryAfterMs: number | undefined },
  now: number,
): ProviderFailure {
  const detail = readErrorBody(response.body);
  const named = STATUS_CODES[response.status];
  const text = detail.text === "" ? (named ?? "no explanation") : detail.text;
  return classify(source, { ...detail, text, status: response.status }, now, {
    fromStatusLine: true,
    retryAfterMs: response.retryAfterMs,
  });
}

/** The failure that an error inside a stream with status 200 stands for. */
export function streamFailure(source: FailureSource, error: unknown, now: number): ProviderFailure {
  const detail = readError(error);
  const text = detail.text === "" ? "an error without explanation" : detail.text;
  return classify(source, { ...detail, text }, now, { fromStatusLine: false });
}

/** A failure of a given kind with our own words. */
export function failure(
  source: FailureSource,
  kind: FailureKind,
  text: string,
  more: Partial<ProviderFailure> = {},
): ProviderFailure {
  const message = clean(source, `${source.provider}: ${text}`);
  return { kind, message, provider: source.provider, retryable: false, ...more };
}

/** The stream ended, cleanly or not, before the reply was complete. */
export function cutFailure(source: FailureSource): ProviderFailure {
  const text = "the connection ended before the reply was complete";
  return failure(source, "network", text, { retryable: true });
}

/** The failure that an error thrown by `fetch` or by reading its body stands for. */
export function transportFailure(
  source: FailureSource,
  error: unknown,
  url: string,
): ProviderFailure {
  const code = asString(asObject(error)?.["code"]) ?? "";
  const message = error instanceof Error ? error.message : String(error);
  const host = hostOf(url);
  const text = TRANSPORT_TEXTS[code]?.(host);
  if (text !== undefined) return failure(source, "network", text, { retryable: true });
  if (/CERT|SELF_SIGNED|SSL|TLS/i.test(code)) {
    const trust = `no trusted TLS connection to ${host} (${code}); SSL_CERT_FILE names further authorities`;
    return failure(source, "network", trust, { retryable: true });
  }
  // Without a code it is our own request that could not be made, and never will.
  if (error instanceof TypeError && code === "") {
    return failure(source, "invalid_request", `the request can't be sent: ${message}`);
  }
  return failure(source, "network", `no connection to ${host}: ${message}`, { retryable: true });
}

const TRANSPORT_TEXTS: Record<string, (host: string) => string> = {
  ENOTFOUND: (host) => `the host name ${host} can't be resolved (DNS)`,
  EAI_AGAIN: (host) => `the host name ${host} can't be resolved now (DNS)`,
  ECONNREFUSED: (host) => `nothing accepts connections at ${host}`,
  ECONNRESET: (host) => `the connection to ${host} was closed unexpectedly`,
  EPIPE: (host) => `the connection to ${host} was closed unexpectedly`,
  ETIMEDOUT: (host) => `no connection to ${host} within the system's time limit`,
  EHOSTUNREACH: (host) => `${host} can't be reached`,
  ENETUNREACH: (host) => `the network of ${host} can't be reached`,
};

function hostOf(url: string): string {
  return URL.canParse(url) ? new URL(url).host : url;
}

function classify(
  source: FailureSource,
  detail: ErrorDetail,
  now: number,
  origin: { fromStatusLine: boolean; retryAfterMs?: number | undefined },
): ProviderFailure {
  const { status } = detail;
  const kind = kindOf(detail);
  const retryAfterMs = origin.retryAfterMs ?? detail.retryAfterMs;
  let text = origin.fromStatusLine ? `${detail.text} (HTTP ${status})` : detail.text;
  const retryable = isTransient(kind, detail);
  if (retryable && retryAfterMs !== undefined && retryAfterMs > MAX_RETRY_AFTER_MS) {
    text = `${text}; ${describeReset(retryAfterMs, now)}`;
  }
  return failure(source, kind, text, {
    retryable,
    ...(status === undefined ? {} : { httpStatus: status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(kind === "invalid_request" && IMAGE_TEXT.test(detail.text) ? { imageRelated: true } : {}),
  });
}

const IMAGE_TEXT = /\bimages?\b|image_url|inline_?data|media.?type|\bpixels?\b/i;
const KEY_TEXT =
  /api.?key.{0,20}(?:not valid|invalid|incorrect)|(?:invalid|incorrect).{0,10}api.?key/i;
const FILTER_TEXT = /content.?(?:filter|policy|management)|moderation|\bflagged\b|safety system/i;
const MODEL_TEXT = /model_not_found|model.{0,80}(?:does not exist|not found)|unknown model/i;
/** A quota that is used up comes back with a payment, not with time. */
const QUOTA_TEXT =
  /insufficient_quota|insufficient.{0,10}(?:balance|credits?|funds)|billing_hard_limit/i;

function kindOf(detail: ErrorDetail): FailureKind {
  const { status, text, codes } = detail;
  const all = `${codes} ${text}`;
  if (isContextOverflow(all, status)) return "overflow";
  if (status === undefined) return kindOfText(codes, text);
  if (status === 400 || status === 403 || status === 422) {
    if (KEY_TEXT.test(all) || /API_KEY_INVALID/.test(all)) return "auth";
    if (FILTER_TEXT.test(all)) return "content_filter";
    if (MODEL_TEXT.test(all)) return "not_found";
  }
  if (status === 401 || status === 402 || status === 403) return "auth";
  if (status === 404) return "not_found";
  if (status === 408) return "timeout";
  if (status === 409) return "server";
  if (status === 429) return "rate_limit";
  if (status === 503 || status === 529) return "overloaded";
  return status >= 500 ? "server" : "invalid_request";
}

/** For errors inside a stream without a status; the codes count first, then the prose. */
function kindOfText(codes: string, text: string): FailureKind {
  for (const where of [codes, text]) {
    for (const [kind, pattern] of TEXT_KINDS) if (pattern.test(where)) return kind;
  }
  return "server";
}

const TEXT_KINDS: ReadonlyArray<readonly [FailureKind, RegExp]> = [
  ["overloaded", /overloaded|capacity|unavailable/i],
  ["rate_limit", /rate.?limit|too many requests|throttl|RESOURCE_EXHAUSTED|insufficient_quota/i],
  ["auth", /authentication|unauthorized|permission|UNAUTHENTICATED|invalid_api_key/i],
  ["content_filter", FILTER_TEXT],
  ["timeout", /time.?out|timed out|DEADLINE_EXCEEDED/i],
  ["not_found", /not_found|NOT_FOUND|model_not_found/],
  ["invalid_request", /invalid_request|INVALID_ARGUMENT|bad.?request|invalid_prompt|unsupported/i],
];

function isTransient(kind: FailureKind, detail: ErrorDetail): boolean {
  if (QUOTA_TEXT.test(`${detail.codes} ${detail.text}`)) return false;
  if (kind === "overflow" || kind === "content_filter") return false;
  if (detail.status !== undefined) return isRetryableStatus(detail.status);
  return ["overloaded", "rate_limit", "server", "timeout"].includes(kind);
}

function readErrorBody(body: string): ErrorDetail {
  const json = parseJson(body);
  if (json !== undefined && typeof json !== "number") return readError(json);
  return { text: looksLikeHtml(body) ? htmlText(body) : body, codes: "" };
}

/** Reads the error objects of all providers, which differ in nesting and in names. */
function readError(value: unknown): ErrorDetail {
  if (typeof value === "string") return { text: value, codes: "" };
  // Gemini wraps errors in an array when the response would have been one.
  const outer = asObject(value) ?? asObjects(value)[0];
  if (!outer) return { text: "", codes: "" };
  const inner = asObject(outer["error"]) ?? asObject(outer["response"])?.["error"] ?? outer;
  if (typeof outer["error"] === "string") return { text: outer["error"], codes: codesOf(outer) };
  const error = asObject(inner) ?? outer;
  const status = asNumber(error["code"]) ?? asNumber(error["status"]) ?? asNumber(outer["status"]);
  return {
    text: textOf(error),
    codes: `${codesOf(error)} ${codesOf(outer)}`,
    ...(status !== undefined && status >= 400 && status < 600 ? { status } : {}),
    ...retryDelayOf(error),
  };
}

/** `google.rpc.RetryInfo`: a duration such as "36.5s" among the details. */
function retryDelayOf(error: JsonObject): { retryAfterMs?: number } {
  for (const detail of asObjects(error["details"])) {
    const seconds = /^(\d+(?:\.\d+)?)s$/.exec(asString(detail["retryDelay"]) ?? "")?.[1];
    if (seconds !== undefined) return { retryAfterMs: Math.ceil(Number(seconds) * 1_000) };
  }
  return {};
}

function textOf(error: JsonObject): string {
  const message =
    asString(error["message"]) ??
    asString(error["detail"]) ??
    asString(error["error_description"]) ??
    [...asObjects(error["detail"]), ...asObjects(error["errors"])]
      .map((item) => asString(item["msg"]) ?? asString(item["message"]) ?? "")
      .filter((text) => text !== "")
      .join("; ");
  // OpenRouter says "Provider returned error" and keeps the cause in the metadata.
  const raw = asString(asObject(error["metadata"])?.["raw"]);
  if (!raw) return message;
  const cause = readErrorBody(raw).text;
  return cause === "" ? message : `${message}: ${cause}`;
}

function codesOf(error: JsonObject): string {
  const reasons = asObjects(error["details"]).map((detail) => asString(detail["reason"]));
  return [asString(error["code"]), asString(error["type"]), asString(error["status"]), ...reasons]
    .filter((code) => code !== undefined)
    .join(" ");
}

/** Whether a body is a web page, as proxies and wrong addresses answer. */
export function looksLikeHtml(body: string): boolean {
  return /^\s*<(?:!doctype|html|head|body|h\d|center|title|\?xml)/i.test(body);
}

/** The readable part of a web page: its title, or its text without tags. */
export function htmlText(html: string): string {
  const title = /<title[^>]*>([^<]*)<\/title>/i.exec(html)?.[1]?.trim();
  if (title) return decodeEntities(title);
  const visible = html.replace(/<(script|style)\b[\s\S]*?<\/\1>/gi, " ").replace(/<[^>]*>/g, " ");
  return decodeEntities(visible);
}

function decodeEntities(text: string): string {
  const named: Record<string, string> = {
    amp: "&",
    lt: "<",
    gt: ">",
    quot: '"',
    "#39": "'",
    nbsp: " ",
  };
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_, name: string) => named[name] ?? " ");
}

function clean(source: FailureSource, text: string): string {
  // Control characters could move a terminal's cursor; line breaks would break one-line reports.
  const flat = text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\s]+/g, " ").trim();
  const key = source.apiKey;
  const safe = key && key.length >= 4 ? flat.replaceAll(key, "[redacted]") : flat;
  const redacted = source.redact ? source.redact(safe) : safe;
  if (redacted.length <= MAX_FAILURE_CHARS) return redacted.toWellFormed();
  return `${redacted.slice(0, MAX_FAILURE_CHARS - 1).toWellFormed()}…`;
}
