import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ConnectionInfo } from "../../../src/jupyter/connection-file.ts";
import { KernelNotReadyError } from "../../../src/jupyter/errors.ts";
import { CellClient } from "../../support/cell-run.ts";
import { describeWithPython, type PythonName } from "../../support/python.ts";
import { RealKernel } from "../../support/real-kernel.ts";

const BOOT_MS = 60_000;
const PYTHONS: readonly PythonName[] = ["oldest", "newest"];

for (const python of PYTHONS) {
  for (const transport of ["ipc", "tcp"] as const) {
    describeWithPython(python, `the ${python} ipykernel over ${transport}`, () => {
      kernelTests(python, transport);
    });
  }
}

function kernelTests(python: PythonName, transport: "ipc" | "tcp"): void {
  let kernel: RealKernel;
  let info: ConnectionInfo;
  let cells: CellClient;

  beforeAll(async () => {
    kernel = new RealKernel(python, transport);
    info = await kernel.info;
    cells = await CellClient.connect(info, { answer: "Ada" });
  }, BOOT_MS);

  afterAll(async () => {
    cells[Symbol.dispose]();
    await kernel[Symbol.asyncDispose]();
  });

  test("says what it is", () => {
    expect(info.transport).toBe(transport);
    expect(cells.client.kernelInfo).toMatchObject({ status: "ok", implementation: "ipython" });
  });

  test("computes", async () => {
    const { reply, output } = await cells.run("1 + 1");
    expect(reply.content).toMatchObject({ status: "ok" });
    const result = output.find((message) => message.header.msg_type === "execute_result");
    expect(result?.content["data"]).toEqual({ "text/plain": "2" });
  });

  test("loses no output of a cell that follows the connect at once", async () => {
    for (let i = 0; i < 25; i += 1) {
      using fresh = await CellClient.connect(info);
      expect((await fresh.run(`print(${i})`)).text).toBe(`${i}\n`);
    }
  });

  test("prints Unicode, and undecodable file names with a replacement character", async () => {
    const code = "import os\nprint('h\u00e9 \u{1f600}', os.fsdecode(b'caf\\xe9.txt'))";
    expect((await cells.run(code)).text).toBe("h\u00e9 \u{1f600} caf\ufffd.txt\n");
    expect((await cells.run("print('next')")).text).toBe("next\n");
  });

  test("answers a cell with a lone surrogate in its code", async () => {
    const { reply } = await cells.run("x = '\ud800'");
    expect(reply.header.msg_type).toBe("execute_reply");
    expect((await cells.run("print('next')")).text).toBe("next\n");
  });

  test("displays NaN", async () => {
    const display = "from IPython.display import display\n";
    const code = `${display}display({'application/json': {'x': float('nan')}}, raw=True)`;
    const { reply, output } = await cells.run(code);
    expect(reply.content).toMatchObject({ status: "ok" });
    expect(output.map((message) => message.header.msg_type)).toContain("display_data");
  });

  test("prints 3 MB, and takes a cell of 3 MB", async () => {
    const size = 3_000_000;
    expect((await cells.run(`print('x' * ${size}, end='')`)).text).toHaveLength(size);
    const { text } = await cells.run(`print(len('${"y".repeat(size)}'))`);
    expect(text).toBe(`${size}\n`);
  });

  test("publishes faster than it may queue, and nothing is lost", async () => {
    const count = 3000;
    const { output } = await cells.run(`for i in range(${count}): display(i)`);
    const displays = output.filter((message) => message.header.msg_type === "display_data");
    expect(displays.map(({ content }) => content["data"])).toEqual(
      Array.from({ length: count }, (_, i) => ({ "text/plain": `${i}` })),
    );
  });

  test("sends and takes buffers through a comm", async () => {
    const open = `
from ipykernel.comm import Comm
c = Comm(target_name='t', data={}, buffers=[b'\\x00\\xff' * 10, b''])
c.on_msg(lambda m: print([bytes(b) for b in m['buffers']]))`;
    const { output } = await cells.run(open);
    const comm = output.find((message) => message.header.msg_type === "comm_open");
    const [filled, empty] = comm?.buffers ?? [];
    expect([Buffer.from(filled ?? []).toString("hex"), empty?.length]).toEqual([
      "00ff".repeat(10),
      0,
    ]);
    const back = { buffers: [new Uint8Array([1, 0, 2]), new Uint8Array(0)] };
    const content = { comm_id: comm?.content["comm_id"], data: {} };
    const id = cells.client.send("shell", "comm_msg", content, back);
    const printed: Parameters<typeof cells.collect>[1] = [];
    await cells.collect(id, printed);
    expect(printed[0]?.content["text"]).toBe("[b'\\x01\\x00\\x02', b'']\n");
  });

  test("closes a comm with a target that it does not know", async () => {
    const content = { comm_id: "c1", target_name: "nobody", data: {} };
    const output: Parameters<typeof cells.collect>[1] = [];
    await cells.collect(cells.client.send("shell", "comm_open", content), output);
    const closed = output.find((message) => message.header.msg_type === "comm_close");
    expect(closed?.content).toMatchObject({ comm_id: "c1" });
  });

  test("asks for input and gets the answer", async () => {
    expect((await cells.run("print('hello', input('name? '))")).text).toBe("hello Ada\n");
  });

  test("answers on control and lets a new client in while a cell runs", async () => {
    const gate = join(kernel.directory.path, "gate");
    const running = cells.run(
      `import os, time\nwhile not os.path.exists(${JSON.stringify(gate)}): time.sleep(0.01)\nprint('done')`,
    );
    const answer = await cells.client.request("control", "kernel_info_request", {}).reply;
    expect(answer.content).toMatchObject({ implementation: "ipython" });
    using second = await CellClient.connect(info);
    writeFileSync(gate, "");
    expect((await running).text).toBe("done\n");
    expect((await second.run("print('second')")).text).toBe("second\n");
  });

  test("drops what a client with another key sends, and is not believed by it", async () => {
    const options = { readyTimeoutMs: 400 };
    const connecting = CellClient.connect({ ...info, key: "another key" }, options);
    const failed = connecting.catch((error) => error);
    // Something to see on IOPub for the wrong client: a good one works on.
    let waiting = true;
    void failed.then(() => (waiting = false));
    while (waiting) await cells.run("pass");
    const error = await failed;
    expect(error).toBeInstanceOf(KernelNotReadyError);
    expect(error.message).toContain("badly signed messages were dropped");
    expect(cells.client.dropped).toBe(0);
  });

  test("has a heart that stops with the process and goes on with it", async () => {
    expect(await cells.client.beat(BOOT_MS)).toBe(true);
    kernel.signal("SIGSTOP");
    // A thread of the kernel may get one more echo out before it stops.
    while (await cells.client.beat(50));
    kernel.signal("SIGCONT");
    expect(await cells.client.beat(BOOT_MS)).toBe(true);
  });

  test("is lost once when it is killed, and all that is pending settles", async () => {
    const running = cells.run("import time\nprint('last words', flush=True)\ntime.sleep(3600)");
    const control = cells.client.request("control", "nobody_answers_this", {});
    // Once it answers here, it has read what was sent before.
    await cells.client.request("control", "kernel_info_request", {}).reply;
    kernel.signal("SIGKILL");
    const error = await cells.lost.promise;
    expect(error).toMatchObject({ code: "kernel_channel_lost" });
    expect(await running.catch((reason) => reason)).toBe(error);
    expect(await control.reply.catch((reason) => reason)).toBe(error);
    expect(cells.losses).toHaveLength(1);
    const late = CellClient.connect(info, { readyTimeoutMs: 60_000, connectTimeoutMs: 50 });
    expect(await late.catch((reason) => reason)).toBeInstanceOf(KernelNotReadyError);
  });
}
