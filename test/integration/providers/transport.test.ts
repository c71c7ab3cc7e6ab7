import { describe, expect, test } from "bun:test";
import { connect, createServer } from "node:net";
import type { AddressInfo, Server } from "node:net";
import { AbortedError } from "../../../src/errors.ts";
import {
  collect,
  failureIn,
  messageIn,
  testModel,
  testRequest,
} from "../../support/provider-call.ts";
import { ProviderServer } from "../../support/provider-server.ts";
import type { ServedReply } from "../../support/provider-server.ts";

const API = "openai-completions";

async function ask(reply: ServedReply, more: Partial<Parameters<typeof testRequest>[1]> = {}) {
  await using server = await ProviderServer.start([reply]);
  return await collect(testRequest(testModel(API, server.baseUrl(API)), more));
}

describe("a server that can't be reached", () => {
  test.each([
    ["http://127.0.0.1:1/v1", "tested: nothing accepts connections at 127.0.0.1:1"],
    [
      "http://no-such-host.invalid/v1",
      "tested: the host name no-such-host.invalid can't be resolved (DNS)",
    ],
  ])("at %s is named as a fault of the network", async (baseUrl, message) => {
    const failure = failureIn(await collect(testRequest(testModel(API, baseUrl))));
    expect(failure).toEqual({ kind: "network", message, provider: "tested", retryable: true });
  });

  test.each(["close", "reset"] as const)(
    "that answers with %s is a fault of the network",
    async (refuse) => {
      const failure = failureIn(await ask({ refuse }));
      expect(failure).toMatchObject({ kind: "network", retryable: true });
      expect(failure.message).toMatch(
        /^tested: the connection to 127.0.0.1:\d+ was closed unexpectedly$/,
      );
    },
  );

  test("that never answers is a timeout", async () => {
    const failure = failureIn(await ask({ refuse: "hang" }, { idleTimeoutMs: 60 }));
    expect(failure).toMatchObject({ kind: "timeout", retryable: true });
  });
});

describeWithOpenssl("TLS", () => {
  test("a certificate that nobody vouches for is named, and its authority can be given", async () => {
    const { key, cert } = await selfSigned();
    const body = 'data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n';
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      tls: { key, cert },
      fetch: () => new Response(body, { headers: { "content-type": "text/event-stream" } }),
    });
    const model = testModel(API, `https://localhost:${server.port}/v1`);
    const failure = failureIn(await collect(testRequest(model)));
    expect(failure).toMatchObject({ kind: "network", retryable: true });
    expect(failure.message).toMatch(
      /no trusted TLS connection to localhost:\d+ \(\w+\); SSL_CERT_FILE/,
    );
    const tls = { ca: [cert] };
    const trusted = await collect(testRequest(model, { tls }));
    expect(messageIn(trusted).content).toEqual([{ type: "text", text: "Hi" }]);
    await using tunnel = await Tunnel.start();
    const tunnelled = await collect(testRequest(model, { tls, proxy: tunnel.url }));
    expect(messageIn(tunnelled).content).toEqual([{ type: "text", text: "Hi" }]);
    expect(tunnel.targets).toEqual([`localhost:${server.port}`]);
  });
});

/** A proxy that does nothing but `CONNECT`. */
class Tunnel implements AsyncDisposable {
  readonly targets: string[] = [];
  readonly #server: Server;

  private constructor() {
    this.#server = createServer((client) => {
      client.once("data", (head) => {
        const target = /^CONNECT (\S+):(\d+) /.exec(String(head));
        this.targets.push(`${target?.[1]}:${target?.[2]}`);
        const server = connect(Number(target?.[2]), "127.0.0.1", () => {
          client.write("HTTP/1.1 200 Connected\r\n\r\n");
          client.pipe(server).pipe(client);
        });
        // Either side may go first when the test ends.
        server.on("error", () => client.destroy());
        client.on("error", () => server.destroy());
      });
    });
  }

  static async start(): Promise<Tunnel> {
    const tunnel = new Tunnel();
    await new Promise<void>((resolve) => tunnel.#server.listen(0, "127.0.0.1", resolve));
    return tunnel;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.close();
  }
}

/** `describe`; without openssl it is skipped with a printed reason, under `CI=true` it fails. */
function describeWithOpenssl(title: string, body: () => void): void {
  if (Bun.which("openssl")) return describe(title, body);
  const reason = `${title}: openssl is missing, which makes the certificate`;
  if (process.env["CI"] === "true") throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  describe.skip(title, body);
}

async function selfSigned(): Promise<{ key: string; cert: string }> {
  const args = ["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"];
  const subject = ["-nodes", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
  const run = Bun.spawn(["openssl", ...args, ...subject, "-keyout", "-", "-out", "-"], {
    stdout: "pipe",
    stderr: "ignore",
  });
  const pem = await new Response(run.stdout).text();
  const start = pem.indexOf("-----BEGIN CERTIFICATE-----");
  return { key: pem.slice(0, start), cert: pem.slice(start) };
}

describe("a proxy", () => {
  test("that is named carries the request", async () => {
    await using proxy = await ProviderServer.start([{ text: "By proxy" }]);
    const model = testModel(API, "http://model.invalid/v1");
    const events = await collect(testRequest(model, { proxy: proxy.url }));
    expect(messageIn(events).content).toEqual([{ type: "text", text: "By proxy" }]);
    expect(proxy.requests[0]?.path).toBe("http://model.invalid/v1/chat/completions");
  });
});

describe("a proxy of the environment", () => {
  test("is not asked for a server on this machine", async () => {
    await using proxy = await ProviderServer.start();
    const before = process.env["HTTP_PROXY"];
    process.env["HTTP_PROXY"] = proxy.url;
    try {
      expect(messageIn(await ask({ text: "Hi" })).content).toEqual([{ type: "text", text: "Hi" }]);
    } finally {
      if (before === undefined) delete process.env["HTTP_PROXY"];
      else process.env["HTTP_PROXY"] = before;
    }
    expect(proxy.requests).toEqual([]);
  });
});

describe("an answer that is no stream", () => {
  test("a redirect is not followed, since it would carry the key elsewhere", async () => {
    await using elsewhere = await ProviderServer.start();
    const failure = failureIn(
      await ask({ status: 307, headers: { location: `${elsewhere.url}/v1/chat/completions` } }),
    );
    expect(failure).toMatchObject({ kind: "protocol", httpStatus: 307, retryable: false });
    expect(failure.message).toContain(`redirects to ${elsewhere.url}`);
    expect(elsewhere.requests).toEqual([]);
  });

  test("a web page with status 200 says to check the base URL", async () => {
    const body = "<!DOCTYPE html><html><head><title>Sign in &amp; go</title></head></html>";
    const failure = failureIn(await ask({ body, contentType: "text/html; charset=utf-8" }));
    expect(failure).toMatchObject({ kind: "protocol", retryable: false });
    expect(failure.message).toMatch(
      /answers with a web page \(Sign in & go\), not with a model's reply; check the base URL/,
    );
  });

  test("a web page with status 503 is shown as its text", async () => {
    const body =
      "<html><head><style>b{}</style></head><body><h1>Down</h1>\n<p>for repair</p></body></html>";
    const failure = failureIn(await ask({ status: 503, body, contentType: "text/html" }));
    expect(failure.message).toBe("tested: Down for repair (HTTP 503)");
    expect(failure.kind).toBe("overloaded");
  });

  test("an endless error body is cut", async () => {
    const body = "x".repeat(1_000_000);
    const failure = failureIn(await ask({ status: 400, body, contentType: "text/plain" }));
    expect(failure.message.length).toBeLessThanOrEqual(1_000);
    expect(failure.message).toEndWith("…");
  });

  test("an error without a body is named by its status", async () => {
    expect(failureIn(await ask({ status: 500 })).message).toBe(
      "tested: Internal Server Error (HTTP 500)",
    );
  });

  test("a whole completion as JSON, from a server that can't stream, is taken", async () => {
    const body = JSON.stringify({
      choices: [{ message: { role: "assistant", content: "Whole" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 3, completion_tokens: 1 },
    });
    const message = messageIn(await ask({ body, contentType: "application/json" }));
    expect(message.content).toEqual([{ type: "text", text: "Whole" }]);
    expect(message.usage).toMatchObject({ input: 3, output: 1 });
  });

  test("an error as JSON with status 200 is an error", async () => {
    const body = JSON.stringify({ error: { message: "model is loading", code: 503 } });
    const failure = failureIn(await ask({ body, contentType: "application/json" }));
    expect(failure).toMatchObject({ kind: "overloaded", httpStatus: 503, retryable: true });
  });
});

describe("the time that a provider asks to wait", () => {
  const limited = { status: 429, error: { type: "rate_limit_error", message: "slow down" } };

  test("beyond a minute ends the call and says when to come back", async () => {
    const events = await ask({ ...limited, headers: { "retry-after": "3600" } }, { maxRetries: 3 });
    expect(events).toHaveLength(1);
    const failure = failureIn(events);
    expect(failure).toMatchObject({ kind: "rate_limit", retryAfterMs: 3_600_000 });
    expect(failure.message).toMatch(
      /slow down \(HTTP 429\); it asks to wait 60 min, until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/,
    );
  });

  test("can be cut short by an abort", async () => {
    const abort = new AbortController();
    await using server = await ProviderServer.start([
      { ...limited, headers: { "retry-after": "50" } },
    ]);
    const request = testRequest(testModel(API, server.baseUrl(API)), {
      signal: abort.signal,
      maxRetries: 3,
    });
    const events = await collect(request, (event) => {
      if (event.type === "retry") {
        expect(event).toMatchObject({ delayMs: 50_000, httpStatus: 429 });
        queueMicrotask(() => abort.abort(new AbortedError("user")));
      }
    });
    expect(failureIn(events).kind).toBe("aborted");
    expect(server.requests).toHaveLength(1);
  });
});

describe("an abort", () => {
  test("before the call sends nothing", async () => {
    await using server = await ProviderServer.start();
    const signal = AbortSignal.abort(new AbortedError("timeout", "the time limit is over"));
    const events = await collect(testRequest(testModel(API, server.baseUrl(API)), { signal }));
    expect(failureIn(events)).toMatchObject({
      kind: "aborted",
      message: "tested: the time limit is over",
    });
    expect(server.requests).toEqual([]);
  });

  test("while the server thinks closes the connection", async () => {
    await using server = await ProviderServer.start([{ refuse: "hang" }]);
    const abort = new AbortController();
    const request = testRequest(testModel(API, server.baseUrl(API)), { signal: abort.signal });
    const events = collect(request);
    await server.waitForRequests(1);
    abort.abort(new AbortedError("user"));
    expect(failureIn(await events).kind).toBe("aborted");
    await server.requests[0]?.closed;
  });
});

describe("connections", () => {
  test("one is used for call after call", async () => {
    await using server = await ProviderServer.start([{ text: "1" }, { text: "2" }, { text: "3" }]);
    const request = testRequest(testModel(API, server.baseUrl(API)));
    for (let call = 0; call < 3; call += 1) await collect(request);
    expect(server.requests.map((request) => request.connection)).toEqual([1, 1, 1]);
  });

  test("a consumer that stops listening closes its own", async () => {
    await using server = await ProviderServer.start([{ text: "Hm", finish: "none", end: "hang" }]);
    const { openAiChat } = await import("../../../src/providers/openai-chat.ts");
    for await (const event of openAiChat.stream(testRequest(testModel(API, server.baseUrl(API))))) {
      expect(event.type).toBe("text_delta");
      break;
    }
    await server.requests[0]?.closed;
  });

  test("a stream that keeps talking after its end is closed", async () => {
    const body = `data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`;
    await using server = await ProviderServer.start([
      { body: body + ": still here\n\n".repeat(20_000), chunkBytes: 400, chunkDelayMs: 1 },
    ]);
    const events = await collect(testRequest(testModel(API, server.baseUrl(API))));
    expect(messageIn(events).content).toEqual([{ type: "text", text: "Hi" }]);
    await server.requests[0]?.closed;
  });

  test("keep-alive comments count as life", async () => {
    const body = `${": wait\n\n".repeat(16)}data: {"choices":[{"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n`;
    const events = await ask({ body, chunkBytes: 8, chunkDelayMs: 40 }, { idleTimeoutMs: 500 });
    expect(messageIn(events).content).toEqual([{ type: "text", text: "Hi" }]);
  });
});
