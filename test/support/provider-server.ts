/**
 * A scripted model provider: a real HTTP server on a free port that speaks
 * four wire formats, records what it was asked, and can fail in all the ways
 * that real ones do. It writes HTTP by hand, since libraries don't send resets
 * or half chunks.
 *
 *   await using server = await ProviderServer.start([{ text: "Hello" }, { status: 529 }]);
 *   server.baseUrl("anthropic-messages")  // where to send requests
 *   server.requests                       // what came
 */

import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { errorBody, streamOf } from "./provider-formats.ts";
import type { ServedApi } from "./provider-formats.ts";
import type { ServedContent } from "./served-content.ts";

/** One answer of the server. Without any field it is an empty reply that ends well. */
export interface ServedReply extends ServedContent {
  /** Answers with this status and no stream; `error` (as the provider writes errors) or `body` say why. */
  status?: number;
  error?: { type: string; message: string };
  /** A body as it is, instead of the stream or the error. */
  body?: string | Uint8Array;
  headers?: Record<string, string>;
  contentType?: string;
  /** Waits for this before the first byte of the answer. */
  after?: PromiseLike<unknown>;
  /** Sends only so many bytes of the body, then does what `end` says. */
  cutAt?: number;
  /**
   * After the body: `end` it properly (default), `close` the connection without its end, `reset` it,
   * or stay silent (`hang`) until the client goes.
   */
  end?: "end" | "close" | "reset" | "hang";
  /** Waits for this before it does what `end` says: a reset may overtake bytes that were not read yet. */
  endAfter?: PromiseLike<unknown>;
  /** Ends the connection so before anything is sent. */
  refuse?: "close" | "reset" | "hang";
  /** Writes the body in pieces of so many bytes, each in a segment of its own. */
  chunkBytes?: number;
  /** The time between these pieces; none by default. */
  chunkDelayMs?: number;
}

/** A reply, or a function that makes it from the request. */
export type ServedScript = ServedReply | ((request: RecordedRequest) => ServedReply);

/** A request as it came. */
export interface RecordedRequest {
  method: string;
  path: string;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** The body as text, and as JSON where it is JSON. */
  text: string;
  body: any;
  api: ServedApi;
  /** Which connection it came on, counted from 1. */
  connection: number;
  /** Resolves when the client has closed that connection. */
  closed: Promise<void>;
}

/** A running server; dispose of it to close every connection. */
export class ProviderServer {
  readonly requests: RecordedRequest[] = [];
  readonly #script: ServedScript[];
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #connections = 0;
  #waiters: Array<() => void> = [];
  /** The ids that `GET …/models` lists. */
  models: string[] = [];

  private constructor(script: readonly ServedScript[]) {
    this.#script = [...script];
    this.#server = createServer({ noDelay: true }, (socket) => this.#accept(socket));
  }

  /** Starts a server that answers with `script`, one entry a request; beyond its end it answers 400. */
  static async start(script: readonly ServedScript[] = []): Promise<ProviderServer> {
    const server = new ProviderServer(script);
    await new Promise<void>((resolve) => server.#server.listen(0, "127.0.0.1", resolve));
    return server;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Without a path. */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** The base URL to configure for a wire format. */
  baseUrl(api: ServedApi): string {
    const paths = { "anthropic-messages": "", "google-generative-ai": "/v1beta" };
    return `${this.url}${paths[api as keyof typeof paths] ?? "/v1"}`;
  }

  /** Adds answers at the end of the script. */
  push(...replies: ServedScript[]): void {
    this.#script.push(...replies);
  }

  /** How many answers were not used. */
  get remaining(): number {
    return this.#script.length;
  }

  /** Resolves when `count` requests have come in all. */
  async waitForRequests(count: number): Promise<void> {
    while (this.requests.length < count) {
      await new Promise<void>((resolve) => this.#waiters.push(resolve));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  #accept(socket: Socket): void {
    this.#sockets.add(socket);
    const connection = ++this.#connections;
    const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
    void closed.then(() => this.#sockets.delete(socket));
    // A client that goes away is what many tests are about.
    socket.on("error", () => undefined);
    let held = Buffer.alloc(0);
    let queue = Promise.resolve();
    socket.on("data", (bytes: Buffer) => {
      held = Buffer.concat([held, bytes]);
      for (let parsed = parseRequest(held); parsed; parsed = parseRequest(held)) {
        held = held.subarray(parsed.length);
        const request = { ...parsed.request, connection, closed };
        queue = queue.then(() => this.#answer(socket, request));
      }
    });
  }

  async #answer(socket: Socket, request: RecordedRequest): Promise<void> {
    if (request.method === "GET") {
      const list = { object: "list", data: this.models.map((id) => ({ id, object: "model" })) };
      await send(socket, 200, { "content-type": "application/json" }, [JSON.stringify(list)]);
      return;
    }
    this.requests.push(request);
    for (const wake of this.#waiters.splice(0)) wake();
    const next = this.#script.shift() ?? NO_REPLY;
    const reply = typeof next === "function" ? next(request) : next;
    await reply.after;
    if (reply.refuse) return end(socket, reply.refuse);
    const { status, type, body } = content(request, reply);
    const cut = body.subarray(0, reply.cutAt ?? body.length);
    const whole = (reply.end ?? "end") === "end" && cut.length === body.length;
    const headers = { "content-type": type, ...reply.headers };
    await send(socket, status, headers, split(cut, reply.chunkBytes), {
      complete: whole,
      delayMs: reply.chunkDelayMs ?? 0,
    });
    await reply.endAfter;
    if (!whole) end(socket, reply.end === "end" || !reply.end ? "close" : reply.end);
  }
}

const NO_REPLY: ServedReply = {
  status: 400,
  error: { type: "invalid_request_error", message: "the script has no more replies" },
};

/** The first complete request in `held`, and how long it is. */
function parseRequest(held: Buffer) {
  const head = held.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const [first = "", ...lines] = held.subarray(0, head).toString("latin1").split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers: Record<string, string> = {};
  for (const line of lines) {
    const colon = line.indexOf(":");
    headers[line.slice(0, colon).toLowerCase()] = line.slice(colon + 1).trim();
  }
  const length = head + 4 + Number(headers["content-length"] ?? 0);
  if (held.length < length) return undefined;
  const text = held.subarray(head + 4, length).toString("utf8");
  const body = text.startsWith("{") ? JSON.parse(text) : undefined;
  return { length, request: { method, path, headers, text, body, api: apiOf(path) } };
}

function apiOf(path: string): ServedApi {
  if (path.includes("/messages")) return "anthropic-messages";
  if (path.includes(":streamGenerateContent")) return "google-generative-ai";
  return path.endsWith("/responses") ? "openai-responses" : "openai-completions";
}

function content(request: RecordedRequest, reply: ServedReply) {
  const status = reply.status ?? 200;
  const { error, body } = reply;
  if (body !== undefined || error || status !== 200) {
    const sent = body ?? (error ? errorBody(request.api, status, error) : "");
    const type = reply.contentType ?? (status === 200 ? "text/event-stream" : "application/json");
    return { status, type, body: typeof sent === "string" ? Buffer.from(sent) : Buffer.from(sent) };
  }
  const events = streamOf(request.api, reply, request.body?.model);
  const type = reply.contentType ?? "text/event-stream; charset=utf-8";
  return { status, type, body: Buffer.from(events.join("")) };
}

function split(body: Buffer, size = body.length): Buffer[] {
  const parts: Buffer[] = [];
  for (let start = 0; start < body.length; start += size) {
    parts.push(body.subarray(start, start + size));
  }
  return parts;
}

async function send(
  socket: Socket,
  status: number,
  headers: Record<string, string>,
  parts: ReadonlyArray<string | Uint8Array>,
  options = { complete: true, delayMs: 0 },
): Promise<void> {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `HTTP/1.1 ${status} Scripted\r\n${lines.join("")}transfer-encoding: chunked\r\n\r\n`;
  await write(socket, head);
  for (const part of parts) {
    const bytes: Uint8Array = typeof part === "string" ? Buffer.from(part) : part;
    await write(socket, Buffer.concat([hex(bytes.length), bytes, CRLF]));
    if (options.delayMs > 0) await new Promise((resolve) => setTimeout(resolve, options.delayMs));
  }
  if (options.complete) await write(socket, "0\r\n\r\n");
}

const CRLF = Buffer.from("\r\n");

function hex(length: number): Buffer {
  return Buffer.from(`${length.toString(16)}\r\n`);
}

/** Resolves when the bytes are with the system, so that each write is a segment of its own. */
function write(socket: Socket, bytes: string | Buffer): Promise<void> {
  return new Promise((resolve) => {
    if (socket.destroyed) resolve();
    else socket.write(bytes, () => setImmediate(resolve));
  });
}

function end(socket: Socket, how: "close" | "reset" | "hang"): void {
  if (how === "close") socket.end();
  else if (how === "reset") socket.resetAndDestroy();
}
