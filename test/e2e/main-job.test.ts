/** The main job on the compiled program: prompt → model → cell → answer. */

import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { MODEL_ENV, modelFlags } from "../support/model-flags.ts";
import { ProviderServer } from "../support/provider-server.ts";
import { expectCode, UserHome } from "../support/program.ts";

const CALL = { toolCalls: [{ name: "ipython", arguments: { code: "print(6*7)" } }] };

/** A server that asks for one cell and then quotes its result. */
function quotingServer(): Promise<ProviderServer> {
  return ProviderServer.start([
    CALL,
    (request) => ({ text: `The kernel says ${request.body.messages.at(-1).content.trim()}.` }),
  ]);
}

describe("a headless run", () => {
  test("prints exactly the final answer on stdout", async () => {
    await using server = await quotingServer();
    using user = new UserHome();
    const run = await user.run(["-p", ...modelFlags(server), "What is 6*7?"], { env: MODEL_ENV });
    expectCode(run, 0);
    expect(run.stdout).toBe("The kernel says 42.\n");
  });

  test("as JSON: every line parses, the first is system/init and the last is result", async () => {
    await using server = await quotingServer();
    using user = new UserHome();
    const run = await user.run(["-p", "--json", ...modelFlags(server), "What is 6*7?"], {
      env: MODEL_ENV,
    });
    expectCode(run, 0);
    const { events } = run;
    expect(events[0]).toMatchObject({
      type: "system",
      subtype: "init",
      schema: 1,
      tools: ["ipython"],
    });
    expect(events.at(-1)).toMatchObject({
      type: "result",
      subtype: "success",
      is_error: false,
      exit_code: 0,
      result: "The kernel says 42.",
      num_turns: 2,
      num_tool_calls: 1,
    });
    expect(events.map((event) => event["seq"])).toEqual(events.map((_, index) => index));
    for (const event of events) {
      expect(event).toMatchObject({
        session_id: expect.any(String),
        uuid: expect.any(String),
        timestamp: expect.any(String),
      });
    }
  });

  test("sends the tool's result back with the id of its call", async () => {
    await using server = await quotingServer();
    using user = new UserHome();
    await user.run(["-p", ...modelFlags(server), "What is 6*7?"], { env: MODEL_ENV });
    const [first, second] = server.requests;
    expect(first?.body.tools.map((tool: any) => tool.function.name)).toEqual(["ipython"]);
    const [assistant, result] = second?.body.messages.slice(-2) ?? [];
    expect(result.tool_call_id).toBe(assistant.tool_calls[0].id);
    expect(result.content).toContain("42");
  });

  test("shows no key, neither to cells nor on any stream", async () => {
    await using server = await ProviderServer.start([
      {
        toolCalls: [
          {
            name: "ipython",
            arguments: { code: "import os; print(os.environ.get('OPENAI_API_KEY'))" },
          },
        ],
      },
      (request) => ({ text: `It printed ${request.body.messages.at(-1).content}` }),
    ]);
    using user = new UserHome();
    const flags = [
      "-m",
      "openai/test",
      "--base-url",
      server.baseUrl("openai-completions"),
      "--api",
      "openai-completions",
    ];
    const key = "sk-secret-0123456789";
    const run = await user.run(["-p", "--json", "-v", ...flags, "hi"], {
      env: { OPENAI_API_KEY: key },
    });
    expectCode(run, 0);
    expect(run.events.at(-1)?.["result"]).toContain("None");
    expect(run.stdout + run.stderr).not.toContain(key);
    expect(server.requests[0]?.headers["authorization"]).toBe(`Bearer ${key}`);
  });
});

test("a model that sees no images is told so when a cell attaches one", async () => {
  const png =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
  const code = `import base64; open("a.png", "wb").write(base64.b64decode("${png}")); await attach_image("a.png")`;
  await using server = await ProviderServer.start([
    { toolCalls: [{ name: "ipython", arguments: { code } }] },
    { text: "done" },
  ]);
  using user = new UserHome();
  const run = await user.run(["-p", ...modelFlags(server), "look"], { env: MODEL_ENV });
  expectCode(run, 0);
  expect(server.requests[1]?.text).toContain("ImageError");
});

describe("cell", () => {
  test.each([
    { args: ["x = 20", "x + 22"], stdout: "42\n" },
    { args: ["print(1)"], stdout: "1\n" },
    { args: ["-"], stdin: "print(1)", stdout: "1\n" },
    { args: ["%%bash\necho from the shell"], stdout: "from the shell\n" },
    { args: ["import asyncio; await asyncio.sleep(0); 'awaited'"], stdout: "'awaited'\n" },
  ])("$args prints $stdout", async ({ args, stdin, stdout }) => {
    using user = new UserHome();
    const run = await user.run(["cell", ...args], stdin === undefined ? {} : { stdin });
    expectCode(run, 0);
    expect(run.stdout).toBe(stdout);
  });

  test("has the helpers that the model's cells have", async () => {
    using user = new UserHome();
    await Bun.write(`${user.cwd}/notes.txt`, "one\ntwo\n");
    const run = await user.run([
      "cell",
      "await edit('notes.txt', 'two', 'three'); open('notes.txt').read()",
    ]);
    expectCode(run, 0);
    expect(run.stdout).toContain("'one\\nthree\\n'");
  });

  test("an error shows the traceback without escape bytes and exits 1", async () => {
    using user = new UserHome();
    const run = await user.run(["cell", "1/0", "print('not reached')"]);
    expectCode(run, 1);
    expect(run.stdout).toBe("");
    expect(run.stderr).toContain("ZeroDivisionError: division by zero");
    expect(run.stderr).not.toContain("\x1b");
  });

  test("shows on stderr what an earlier cell prints late, and what could not be shown", async () => {
    using user = new UserHome();
    const run = await user.run([
      "cell",
      "import asyncio; gate = asyncio.Event()\nasync def late(): await gate.wait(); print('so late')\ntask = asyncio.create_task(late())",
      "gate.set(); await task",
      "display({'image/png': 'no image'}, raw=True); 1",
    ]);
    expectCode(run, 0);
    expect(run.stdout).toBe("1\n");
    expect(run.stderr).toContain("[late output of earlier cells]\nso late\n");
    expect(run.stderr).toContain("image/png");
  });

  test("runs the code cells of a notebook and a Python file in one kernel", async () => {
    using user = new UserHome();
    const notebook = {
      cells: [
        { cell_type: "markdown", source: ["# not code"] },
        { cell_type: "code", source: ["a = 1\n", "print(a)"] },
      ],
    };
    await Bun.write(`${user.cwd}/book.ipynb`, JSON.stringify(notebook));
    await Bun.write(`${user.cwd}/more.py`, "print(a + 1)\n");
    const run = await user.run(["cell", "-f", "book.ipynb", "-f", "more.py"]);
    expectCode(run, 0);
    expect(run.stdout).toBe("1\n2\n");
  });
});

test("the demo shows the whole loop on a real kernel, without a key, and changes nothing here", async () => {
  using user = new UserHome();
  const run = await user.run(["demo"]);
  expectCode(run, 0);
  expect(run.stdout).toContain("everything else is real");
  expect(run.stdout).toContain("model (scripted): ");
  expect(run.stdout).toContain("That was the demo");
  expect(run.stdout).not.toContain("\x1b");
  expect(readdirSync(user.cwd)).toEqual([]);
  expect(existsSync(join(user.home, ".prime/agent/sessions"))).toBe(false);
});

describe("usage errors", () => {
  test.each([
    { args: ["-p", "--modle", "x", "hi"], says: "unknown option --modle", hint: "--model" },
    { args: ["-p", ""], says: "the prompt is empty", hint: "stdin" },
    { args: ["-p", "   "], says: "the prompt is empty", hint: "stdin" },
    { args: ["cell", "--timeout", "soon", "1"], says: "--timeout takes a duration", hint: "90s" },
    {
      args: ["-p", "-C", "/no/such/folder", "hi"],
      says: "/no/such/folder does not exist",
      hint: "",
    },
    { args: ["-p", "--fork", "hi"], says: "--fork needs -c or -r", hint: "" },
    {
      args: ["-p", "-r", "nosuchid", "hi"],
      says: 'there is no session "nosuchid"',
      hint: "sessions list",
    },
  ])("$args exits 2 and says what is wrong", async ({ args, says, hint }) => {
    using user = new UserHome();
    const run = await user.run(args, { env: MODEL_ENV });
    expectCode(run, 2);
    expect(run.stdout).toBe("");
    expect(run.stderr).toContain(says);
    expect(run.stderr).toContain(hint);
  });

  test("without any credential the exit code is 3 and the way out is named", async () => {
    using user = new UserHome();
    const run = await user.run(["-p", "hi"]);
    expectCode(run, 3);
    expect(run.stderr).toContain("ANTHROPIC_API_KEY");
    expect(run.stderr).toContain("prime-agent demo");
  });
});
