/** Turns a wire format into a {@link Provider}: a pure encoder and decoder on top of the shared transport. */

import { ProviderFault } from "./errors.ts";
import {
  cutFailure,
  failure,
  htmlText,
  httpFailure,
  looksLikeHtml,
  transportFailure,
} from "./failure.ts";
import { debug } from "../log.ts";
import { sourceOf, streamAttempts } from "./attempts.ts";
import { DEFAULT_IDLE_TIMEOUT_MS } from "./provider.ts";
import type {
  ApiKind,
  Provider,
  ProviderEvent,
  ProviderFailure,
  ProviderRequest,
} from "./provider.ts";
import type { Reply } from "./reply.ts";
import { parseRetryAfter } from "./retry.ts";
import { SseOverflow, SseParser } from "./sse.ts";
import type { SseEvent } from "./sse.ts";
import { HttpStream, IdleError } from "./transport.ts";
import type { HttpCall } from "./transport.ts";

/** Reads the events of one stream into a {@link Reply}. */
export interface StreamDecoder {
  /** Takes the next event. Unknown events are ignored. Throws {@link ProviderFault} for an error event. */
  accept(event: SseEvent): void;
  /**
   * How far the stream is: `open`, `finished` when the model's reply is complete and only
   * accounting may follow, `closed` when nothing follows.
   */
  readonly state: "open" | "finished" | "closed";
  /** Called once after the last event, in state `finished` or `closed`: completes the reply. */
  complete(): void;
}

/** One wire format. */
export interface Dialect {
  readonly api: ApiKind;
  /** The request as HTTP. Pure and deterministic: retries send the same bytes. */
  encode(request: ProviderRequest): HttpCall;
  decoder(reply: Reply, request: ProviderRequest): StreamDecoder;
}

/** How long a stream whose reply is complete may take to send its accounting. */
const ACCOUNTING_MS = 3_000;
/** How long a stream that has said its last word may take to end. */
const CLOSE_MS = 50;
/** The part of the context window from which on an empty reply means that nothing was left for it. */
const FULL_WINDOW = 0.95;
const MAX_ERROR_BODY_BYTES = 64 * 1024;
/** An error body that doesn't arrive must not cost five minutes. */
const ERROR_BODY_MS = 5_000;

/** The provider that speaks `dialect`. */
export function dialectProvider(dialect: Dialect): Provider {
  return {
    api: dialect.api,
    stream: (request) => streamAttempts(request, (reply) => attempt(dialect, request, reply)),
  };
}

async function* attempt(
  dialect: Dialect,
  request: ProviderRequest,
  reply: Reply,
): AsyncGenerator<ProviderEvent, void, void> {
  const call = dialect.encode(request);
  const decoder = dialect.decoder(reply, request);
  using http = await open(call, request);
  try {
    for await (const event of events(http, call, request)) {
      const before = decoder.state;
      if (before !== "closed") decoder.accept(event);
      yield* reply.drain();
      if (before === decoder.state) continue;
      // Reading to the end keeps the connection for the next turn, but is not worth waiting for.
      http.endWithin(decoder.state === "closed" ? CLOSE_MS : ACCOUNTING_MS);
    }
  } catch (error) {
    // What breaks after the reply was complete takes nothing from it.
    if (decoder.state === "open" || request.signal.aborted) throw error;
    debug("providers", "the stream broke after the reply was complete", error);
  }
  if (decoder.state === "open") throw new ProviderFault(cutFailure(sourceOf(request)));
  decoder.complete();
  throwIfSilentOverflow(reply, request);
  yield* reply.drain();
}

/** Some servers cut what doesn't fit and answer with nothing, instead of refusing the request. */
function throwIfSilentOverflow(reply: Reply, request: ProviderRequest): void {
  if (!reply.endedByLength || reply.hasContent) return;
  const { input, cacheRead, cacheWrite } = reply.usage;
  if (input + cacheRead + cacheWrite < request.model.contextWindow * FULL_WINDOW) return;
  const text = "the context window is full: the reply had no room";
  throw new ProviderFault(failure(sourceOf(request), "overflow", text));
}

async function open(call: HttpCall, request: ProviderRequest): Promise<HttpStream> {
  try {
    return await HttpStream.open(call, {
      signal: request.signal,
      idleTimeoutMs: request.idleTimeoutMs ?? DEFAULT_IDLE_TIMEOUT_MS,
      ...(request.proxy === undefined ? {} : { proxy: request.proxy }),
      ...(request.tls ? { tls: request.tls } : {}),
    });
  } catch (error) {
    throw asFault(error, call, request);
  }
}

/** The events of a response, whatever its form; throws a {@link ProviderFault} for whatever is not one. */
async function* events(
  http: HttpStream,
  call: HttpCall,
  request: ProviderRequest,
): AsyncGenerator<SseEvent, void, void> {
  try {
    yield* readEvents(http, call, request);
  } catch (error) {
    throw asFault(error, call, request);
  }
}

async function* readEvents(
  http: HttpStream,
  call: HttpCall,
  request: ProviderRequest,
): AsyncGenerator<SseEvent, void, void> {
  const type = http.headers.get("content-type") ?? "";
  if (http.status < 200 || http.status > 299) {
    throw new ProviderFault(await errorResponse(http, call, request));
  }
  if (/\bhtml\b/i.test(type)) throw new ProviderFault(await webPage(http, call, request));
  if (/\bjson\b/i.test(type)) {
    // A server that doesn't stream answers with one object, which is then the only event.
    yield { event: "message", data: await http.text(Number.POSITIVE_INFINITY) };
    return;
  }
  const parser = new SseParser();
  for await (const chunk of http.chunks()) yield* parser.push(chunk);
}

async function errorResponse(
  http: HttpStream,
  call: HttpCall,
  request: ProviderRequest,
): Promise<ProviderFailure> {
  const source = sourceOf(request);
  const { status, headers } = http;
  if (status >= 300 && status < 400) {
    const target = headers.get("location") ?? "an unnamed address";
    const text = `${call.url} redirects to ${target} (HTTP ${status}); set the base URL to where it leads`;
    return failure(source, "protocol", text, { httpStatus: status });
  }
  const body = await errorBody(http, request);
  const retryAfterMs = parseRetryAfter(headers, Date.now());
  return httpFailure(source, { status, body, retryAfterMs }, Date.now());
}

async function webPage(
  http: HttpStream,
  call: HttpCall,
  request: ProviderRequest,
): Promise<ProviderFailure> {
  const body = await errorBody(http, request);
  const title = looksLikeHtml(body) ? htmlText(body).slice(0, 200) : "";
  const text = `${call.url} answers with a web page${title === "" ? "" : ` (${title})`}, not with a model's reply; check the base URL`;
  return failure(sourceOf(request), "protocol", text, { httpStatus: http.status });
}

async function errorBody(http: HttpStream, request: ProviderRequest): Promise<string> {
  http.endWithin(ERROR_BODY_MS);
  try {
    return await http.text(MAX_ERROR_BODY_BYTES);
  } catch (error) {
    if (request.signal.aborted) throw error;
    debug("providers", "the body of an error response did not arrive", error);
    return "";
  }
}

function asFault(error: unknown, call: HttpCall, request: ProviderRequest): Error {
  if (error instanceof ProviderFault) return error;
  const source = sourceOf(request);
  if (error instanceof IdleError) {
    const text = `nothing arrived for ${formatSeconds(error.idleMs)}`;
    return new ProviderFault(failure(source, "timeout", text, { retryable: true }), {
      cause: error,
    });
  }
  if (error instanceof SseOverflow) {
    return new ProviderFault(failure(source, "protocol", error.message), { cause: error });
  }
  return new ProviderFault(transportFailure(source, error, call.url), { cause: error });
}

function formatSeconds(ms: number): string {
  return ms < 1_000 ? `${ms} ms` : `${Math.round(ms / 1_000)} s`;
}
