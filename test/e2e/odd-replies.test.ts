/** Replies that are not what they should be: malformed calls, cut ones, empty ones, refusals; the work goes on or ends clearly. */

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expectCode, UserHome } from "../support/program.ts";
import { SERVED_APIS } from "../support/provider-formats.ts";
import {
  ProviderServer,
  type RecordedRequest,
  type ServedScript,
} from "../support/provider-server.ts";
import { sentRequest } from "../support/sent-request.ts";
import { useServer } from "../support/user-model.ts";

const cell = (code: string) => ({ toolCalls: [{ name: "ipython", arguments: { code } }] });
/** Leaves a file, so that it shows when it ran. */
const mark = (name: string) => `open(${JSON.stringify(name)}, "w").close()`;
const cutShort = (name: string) => `{"code": ${JSON.stringify(mark(name)).slice(0, -1)}`;

async function converse(
  script: ServedScript[],
  options: Parameters<typeof useServer>[2] & { args?: string[] } = {},
) {
  await using server = await ProviderServer.start(script);
  using user = new UserHome();
  const env = useServer(user, server, options);
  const run = await user.run(["-p", "--json", ...(options.args ?? []), "hi"], { env });
  return {
    run,
    result: run.events.at(-1) as Record<string, any>,
    requests: server.requests,
    ran: readdirSync(user.cwd).sort(),
  };
}

describe.each(SERVED_APIS)("%s: a call", (api) => {
  test("that is malformed, cut off, or of no such tool is answered and never run; the next one is", async () => {
    const ipython = (args: Record<string, unknown> | string) => ({
      name: "ipython",
      arguments: args,
    });
    const { run, requests, ran, result } = await converse(
      [
        { toolCalls: [{ name: "bash", arguments: { command: "touch ran-bash" } }] },
        { toolCalls: [ipython({ source: mark("ran-source") })] },
        { toolCalls: [ipython({ code: ["a", "list"] })] },
        { toolCalls: [ipython(cutShort("ran-cut"))], finish: "length" },
        { toolCalls: [ipython(cutShort("ran-bad"))] },
        { text: "Now.", toolCalls: [ipython({ code: mark("ran-good"), extra: 1 })] },
        { text: "done" },
      ],
      { api },
    );
    expectCode(run, 0);
    expect(result).toMatchObject({ result: "done", subtype: "success" });
    expect(ran).toEqual(["ran-good"]);
    const { results, calls, userTexts } = sentRequest(requests.at(-1));
    expect(results.map(({ id }) => id)).toEqual(calls.map(({ id }) => id));
    const texts = results.map(({ text }) => text);
    expect(texts[0]).toContain('There is no tool "bash". The one tool is "ipython"');
    expect(texts[1]).toContain('needs {"code": string}, but had source');
    expect(texts[2]).toContain('needs {"code": string}');
    expect(texts.at(-1)).toBe("(no output)");
    // Google does not send what it can't read as a call: there the reply itself was cut off.
    expect([...texts, ...userTexts].join("\n")).toMatch(/cut off[^]*smaller/);
    if (api !== "google-generative-ai") expect(texts[4]).toMatch(/not run: .*\{"code": "…"\}/);
  });

  test.each([
    { name: "a connection that closes", end: "close" as const },
    { name: "a connection that breaks", end: "reset" as const },
  ])("that ends with $name is asked for again, not run", async ({ end }) => {
    const half = {
      toolCalls: [{ name: "ipython", arguments: cutShort("ran-half") }],
      finish: "none" as const,
      end,
    };
    const { run, ran, requests } = await converse([half, { text: "done" }], { api });
    expectCode(run, 0);
    expect(ran).toEqual([]);
    expect(requests).toHaveLength(2);
    expect(sentRequest(requests[1]).calls).toEqual([]);
  });

  test("an empty answer is a success with an empty text; an error event alone is a failure", async () => {
    const empty = await converse([{}], { api });
    expectCode(empty.run, 0);
    expect(empty.result).toMatchObject({ result: "", subtype: "success" });
    const failed = await converse(
      [{ errorEvent: { type: "api_error", message: "it broke inside" }, finish: "none" }],
      { api, args: ["--max-retries", "0"] },
    );
    expect(failed.run.code).not.toBe(0);
    expect(failed.result).toMatchObject({ is_error: true });
    expect(failed.run.stderr).toContain("it broke inside");
  });

  test("a context that is too long is summarised once, and the interrupted work goes on", async () => {
    const long = "x".repeat(40_000);
    const { run, requests, result } = await converse(
      [
        cell(`kept = 1; print(${JSON.stringify(long)})`),
        overflow(api),
        { text: "SUMMARY" },
        { text: "done" },
      ],
      { api },
    );
    expectCode(run, 0);
    expect(result["result"]).toBe("done");
    expect(requests).toHaveLength(4);
    expect(run.events.filter(({ subtype }) => subtype === "compact_boundary")).toMatchObject([
      { trigger: "overflow" },
    ]);
    const last = sentRequest(requests[3]);
    expect(last.userTexts.join("\n")).toContain("SUMMARY");
    expect(last.userTexts.join("\n")).toMatch(/kept/);
    expect(requests[3]?.text.length).toBeLessThan(requests[1]?.text.length ?? 0);
  });
});

/** The refusal of a request that is too long, as each provider words it. */
function overflow(api: (typeof SERVED_APIS)[number]): ServedScript {
  const messages = {
    "anthropic-messages": "prompt is too long: 210000 tokens > 200000 maximum",
    "openai-completions": "This model's maximum context length is 200000 tokens",
    "openai-responses": "Your input exceeds the context window of this model.",
    "google-generative-ai":
      "The input token count (210000) exceeds the maximum number of tokens allowed (200000).",
  };
  return { status: 400, error: { type: "invalid_request_error", message: messages[api] } };
}

describe("the context", () => {
  const BIG = `print("word " * 12_000)`;
  /** Answers requests for a summary, which carry no tools, with `summary`, and others by turns. */
  const byKind = (summary: string, others: ServedScript[]) => (request: RecordedRequest) => {
    if (!request.body.tools) return { text: summary };
    const next = others.shift() ?? { text: "done" };
    return typeof next === "function" ? next(request) : next;
  };

  test("is summarised before it overflows, by what the provider counted, cache included", async () => {
    const reply = byKind("SUMMARY", [
      { ...cell(BIG), usage: { input: 10, output: 10, cacheRead: 185_000 } },
      { text: "done", usage: { input: 900, output: 10 } },
    ]);
    const { run, requests } = await converse(Array.from({ length: 6 }, () => reply));
    expectCode(run, 0);
    expect(requests).toHaveLength(3);
    const [boundary] = run.events.filter(({ subtype }) => subtype === "compact_boundary");
    expect(boundary).toMatchObject({ trigger: "threshold" });
    expect(boundary?.["tokens_after"]).toBeLessThan(boundary?.["tokens_before"]);
  });

  test("that stays too long ends the run after few requests, with a clear error", async () => {
    for (const summary of ["", "SUMMARY"]) {
      const refuse = byKind(
        summary,
        Array.from({ length: 50 }, () => overflow("openai-completions")),
      );
      const { run, requests, result } = await converse(Array.from({ length: 50 }, () => refuse));
      expectCode(run, 1);
      expect(result).toMatchObject({ subtype: "error_during_execution", is_error: true });
      expect(requests.length).toBeLessThanOrEqual(5);
    }
  });

  test("that fills again and again ends the run instead of going round for ever", async () => {
    let cells = 0;
    const full = byKind(
      "SUMMARY",
      Array.from({ length: 60 }, () => () => {
        cells += 1;
        return { ...cell(BIG), usage: { input: 195_000, output: 10 } };
      }),
    );
    const { run, result } = await converse(Array.from({ length: 60 }, () => full));
    expectCode(run, 1);
    expect(result["error"]).toMatchObject({ code: "compaction_failed" });
    expect(cells).toBeLessThan(10);
  });
});

describe("an image that the provider refuses", () => {
  const PNG =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
  const SHOW = `from base64 import b64decode
from IPython.display import Image, display
display(Image(data=b64decode("${PNG}")))`;
  const refusal: ServedScript = {
    status: 400,
    error: { type: "invalid_request_error", message: "Could not process image" },
  };

  test("is dropped once and for all: it is not sent again in later turns", async () => {
    const { run, requests } = await converse([
      cell(SHOW),
      refusal,
      cell("1"),
      cell("2"),
      { text: "done" },
    ]);
    expectCode(run, 0);
    expect(requests.map((request) => sentRequest(request).images.length)).toEqual([0, 1, 0, 0, 0]);
    expect(run.events.at(-1)?.["warnings"]).toEqual([expect.stringContaining("refused an image")]);
    expect(sentRequest(requests[2]).results[0]?.text).toContain("an image was left out");
  });

  test("and is refused without any image is an error, not a loop", async () => {
    const { run, requests } = await converse([cell(SHOW), refusal, refusal, refusal]);
    expectCode(run, 1);
    expect(requests).toHaveLength(3);
  });
});

describe("a wait for another try", () => {
  test("is as long as the provider asks, is told, and ends at once with a signal", async () => {
    await using server = await ProviderServer.start([
      {
        status: 429,
        headers: { "retry-after": "30" },
        error: { type: "rate", message: "slow down" },
      },
    ]);
    using user = new UserHome();
    const env = useServer(user, server);
    const child = user.start(["-p", "--json", "hi"], { env });
    await child.saw("stdout", "api_retry");
    child.kill("SIGINT");
    const run = await child.finished;
    expectCode(run, 130);
    expect(run.events.find(({ subtype }) => subtype === "api_retry")).toMatchObject({
      delay_ms: 30_000,
      http_status: 429,
      attempt: 1,
    });
    expect(run.events.at(-1)).toMatchObject({ subtype: "error_interrupted" });
    expect(run.events.at(-1)?.["duration_ms"]).toBeLessThan(30_000);
    expect(server.requests).toHaveLength(1);
  });

  test("for stdin ends with a signal, too, and with --timeout", async () => {
    using user = new UserHome();
    const child = user.start(["-p", "--json", "--stdin", "wait", "-v", "hi"], {
      stdin: "pipe",
      env: { OPENAI_API_KEY: "sk-x" },
    });
    await child.saw("stdout", "init");
    child.kill("SIGTERM");
    const run = await child.finished;
    expectCode(run, 143);
    expect(run.events.at(-1)).toMatchObject({ subtype: "error_interrupted", exit_code: 143 });
    const late = user.start(["-p", "--json", "--timeout", "300ms", "-"], {
      stdin: "pipe",
      env: { OPENAI_API_KEY: "sk-x" },
    });
    expectCode(await late.finished, 124);
  });
});

describe("payloads with holes", () => {
  const chunk = (delta: unknown, finish: string | null = null) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

  test("content that is null or a list with null in it is stored and sent back without a crash", async () => {
    const body = [
      "data: null\n\n",
      "data: {}\n\n",
      ": keep-alive\n\n",
      chunk({ role: "assistant", content: null }),
      chunk({ content: [null, { type: "text", text: "from a list" }] }),
      chunk({ content: null, tool_calls: null }),
      chunk(null),
      chunk({}, "stop"),
      "data: [DONE]\n\n",
    ].join("");
    await using server = await ProviderServer.start([{ body }, { text: "resumed" }]);
    using user = new UserHome();
    const env = useServer(user, server);
    const run = await user.run(["-p", "hi"], { env });
    expectCode(run, 0);
    expect(["from a list\n", "\n"]).toContain(run.stdout);
    expectCode(await user.run(["-p", "-c", "go on"], { env }), 0);
    expect(sentRequest(server.requests[1]).userTexts).toEqual(["hi", "go on"]);
  });

  test("calls whose pieces come mixed, with the same id or none, run in order with one result each", async () => {
    const piece = (index: number, id: string | undefined, args: string) =>
      chunk({
        tool_calls: [
          {
            index,
            ...(id !== undefined && { id }),
            function: { name: "ipython", arguments: args },
          },
        ],
      });
    const more = (index: number, args: string) =>
      chunk({ tool_calls: [{ index, function: { arguments: args } }] });
    const body = [
      piece(0, "same", '{"code": "n'),
      piece(1, "same", '{"code": "n '),
      more(0, ' = 1; print(n)"}'),
      piece(2, "", '{"code": "n *= 5; '),
      more(1, '+= 1; print(n)"}'),
      more(2, 'print(n)"}'),
      chunk({}, "tool_calls"),
      "data: [DONE]\n\n",
    ].join("");
    const { run, requests } = await converse([{ body }, { text: "done" }]);
    expectCode(run, 0);
    const { results, calls } = sentRequest(requests[1]);
    expect(results.map(({ text }) => text)).toEqual(["1\n", "2\n", "10\n"]);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(3);
    expect(results.map(({ id }) => id)).toEqual(calls.map(({ id }) => id));
  });
});

test("a kernel that dies in a cell is told with what it printed, and the next cell runs in a new one", async () => {
  const { run, requests } = await converse([
    cell("x = 1\nprint('before', flush=True)"),
    // What was printed is on its way for a moment, even when it was flushed.
    cell(
      "print('last words', flush=True)\nimport os, time; time.sleep(0.3); os.kill(os.getpid(), 9)",
    ),
    cell("print('after')"),
    { text: "done" },
  ]);
  expectCode(run, 0);
  const texts = sentRequest(requests[3]).results.map(({ text }) => text);
  expect(texts[1]).toMatch(/last words[^]*(signal 9|SIGKILL|killed)/i);
  expect(texts[2]).toMatch(/^<ipython_kernel_reset>[^]*after\n$/);
});

test("a prompt with an image that is far too large is made smaller before it is sent", async () => {
  await using server = await ProviderServer.start([{ text: "done" }]);
  using user = new UserHome();
  const env = useServer(user, server);
  const make =
    "import zlib,struct\nw,h=6000,20\nraw=b''.join(b'\\0'+b'\\x80'*(w*3) for _ in range(h))\nc=lambda t,d: struct.pack('>I',len(d))+t+d+struct.pack('>I',zlib.crc32(t+d))\nopen('big.png','wb').write(b'\\x89PNG\\r\\n\\x1a\\n'+c(b'IHDR',struct.pack('>IIBBBBB',w,h,8,2,0,0,0))+c(b'IDAT',zlib.compress(raw))+c(b'IEND',b''))";
  writeFileSync(join(user.cwd, "make.py"), make);
  Bun.spawnSync(["python3", "make.py"], { cwd: user.cwd });
  expect(existsSync(join(user.cwd, "big.png"))).toBe(true);
  expectCode(await user.run(["-p", "-i", "big.png", "hi"], { env }), 0);
  const image = Buffer.from(sentRequest(server.requests[0]).images[0] ?? "", "base64");
  const width = image.subarray(1, 4).toString() === "PNG" ? image.readUInt32BE(16) : 0;
  expect(width).toBeLessThan(6_000);
});
