import { describe, expect, test } from "bun:test";
import { KernelClient, type KernelClientEvents } from "../../../src/jupyter/channels.ts";
import { ChannelClosedError, ProtocolError } from "../../../src/jupyter/errors.ts";
import type { JupyterMessage } from "../../../src/jupyter/message.ts";
import {
  MisbehavingKernel,
  type KernelRequest,
  type Misbehaviour,
} from "../../support/misbehaving-kernel.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const IDLE = { execution_state: "idle" };
const BUSY = { execution_state: "busy" };
const EXECUTE = { code: "1 + 1" };

/** A client of a scripted kernel, with all that it was told. */
class Connected implements Disposable {
  readonly iopub: JupyterMessage[] = [];
  readonly dropped: ProtocolError[] = [];
  readonly stdin: JupyterMessage[] = [];
  #changed = Promise.withResolvers<void>();
  client!: KernelClient;

  private constructor(readonly kernel: MisbehavingKernel) {}

  static async to(misbehaviour: Misbehaviour = {}, withStdin = false): Promise<Connected> {
    const connected = new Connected(new MisbehavingKernel(misbehaviour));
    const note =
      <T>(list: T[]) =>
      (item: T) => {
        list.push(item);
        connected.#changed.resolve();
        connected.#changed = Promise.withResolvers();
      };
    const events: KernelClientEvents = {
      onIopub: note(connected.iopub),
      onLost: (channel) => expect(`${channel} was lost`).toBe("kept"),
      onDropped: note(connected.dropped),
    };
    if (withStdin) events.onStdin = note(connected.stdin);
    connected.client = await KernelClient.connect(connected.kernel.info, events);
    return connected;
  }

  /** Sends a cell; gives both ends of it. */
  async execute() {
    const pending = this.client.request("shell", "execute_request", EXECUTE);
    const find = () => this.kernel.requests.find((one) => one.header.msg_id === pending.msgId);
    await this.kernel.until(() => find() !== undefined);
    return { pending, request: find() as KernelRequest };
  }

  /** Resolves when the client was told something that fits. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#changed.promise;
  }

  /** The IOPub messages of a request, as `type` or `type:execution_state`. */
  outputOf(parentId: string): string[] {
    return this.iopub
      .filter((message) => message.parent_header.msg_id === parentId)
      .map(({ header, content }) =>
        "execution_state" in content
          ? `${header.msg_type}:${content["execution_state"]}`
          : header.msg_type,
      );
  }

  [Symbol.dispose](): void {
    this.client.close();
    this.kernel[Symbol.dispose]();
  }
}

const REPLIES: ReadonlyArray<{ name: string; type: string; content: object }> = [
  {
    name: "an error without ename, as xeus gives for an aborted request",
    type: "execute_reply",
    content: { status: "error" },
  },
  {
    name: 'the status "abort", as tslab gives',
    type: "execute_reply",
    content: { status: "abort" },
  },
  { name: "an empty shutdown_reply, as octave gives", type: "shutdown_reply", content: {} },
  { name: "an unexpected type", type: "something_else", content: { status: "ok" } },
];

describe("a reply", () => {
  test.each([...REPLIES])("is given as it is: $name", async ({ type, content }) => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    it.kernel.reply(request, type, content);
    expect(await pending.reply).toMatchObject({ header: { msg_type: type }, content });
  });

  test("is matched by its parent's msg_id alone, in any order and on either channel", async () => {
    using it = await Connected.to();
    const first = await it.execute();
    const second = await it.execute();
    const control = it.client.request("control", "interrupt_request", {});
    const interrupt = await it.kernel.request("interrupt_request", "control");
    it.kernel.reply(second.request, "execute_reply", { n: 2 });
    it.kernel.reply(interrupt, "interrupt_reply", { n: 3 });
    // Kernels rewrite the date and add keys when they echo our header.
    const parent = { msg_id: first.pending.msgId, date: "2026-01-01T00:00:00.000000Z", extra: 1 };
    it.kernel.reply(first.request, "execute_reply", { n: 1 }, { parent });
    const replies = [first.pending.reply, second.pending.reply, control.reply];
    const contents = (await Promise.all(replies)).map((reply) => reply.content);
    expect(contents).toEqual([{ n: 1 }, { n: 2 }, { n: 3 }]);
  });

  test("to nobody, to another client, or that comes twice is ignored", async () => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    it.kernel.reply(request, "execute_reply", { n: 0 }, { parent: {} });
    it.kernel.reply(request, "execute_reply", { n: 0 }, { parent: { msg_id: "of-another" } });
    it.kernel.reply(request, "execute_reply", { n: 1 });
    it.kernel.reply(request, "execute_reply", { n: 2 });
    expect((await pending.reply).content).toEqual({ n: 1 });
    const next = await it.execute();
    it.kernel.reply(next.request, "execute_reply", { n: 3 });
    expect((await next.pending.reply).content).toEqual({ n: 3 });
    expect(it.client.dropped).toBe(0);
  });

  test("to a request that was forgotten is ignored", async () => {
    using it = await Connected.to();
    const forgotten = await it.execute();
    let settled = false;
    forgotten.pending.reply.then(() => (settled = true));
    forgotten.pending.forget();
    it.kernel.reply(forgotten.request, "execute_reply", {});
    const next = await it.execute();
    it.kernel.reply(next.request, "execute_reply", {});
    await next.pending.reply;
    expect(settled).toBe(false);
  });

  test("may have a header without a date, frames before the delimiter, and buffers", async () => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    const extras = {
      header: { date: undefined },
      identities: [bytes("a"), bytes(""), bytes("b")],
      buffers: [new Uint8Array([0, 255]), new Uint8Array(0)],
    };
    it.kernel.reply(request, "execute_reply", {}, extras);
    const reply = await pending.reply;
    expect(reply.header).not.toHaveProperty("date");
    expect(reply.identities).toEqual(extras.identities);
    expect(reply.buffers).toEqual(extras.buffers);
  });
});

describe("the order of a reply and its IOPub messages", () => {
  const ORDERS: ReadonlyArray<{ name: string; steps: readonly string[]; output: string[] }> = [
    {
      name: "reply before busy",
      steps: ["reply", "busy", "stream", "idle"],
      output: ["status:busy", "stream", "status:idle"],
    },
    {
      name: "idle before reply",
      steps: ["busy", "stream", "idle", "reply"],
      output: ["status:busy", "stream", "status:idle"],
    },
    {
      name: "reply without idle",
      steps: ["busy", "stream", "reply"],
      output: ["status:busy", "stream"],
    },
    {
      name: "stream after idle",
      steps: ["busy", "reply", "idle", "stream"],
      output: ["status:busy", "status:idle", "stream"],
    },
  ];

  test.each([...ORDERS])("does not matter: $name", async ({ steps, output }) => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    const parent = request.header;
    for (const step of steps) {
      if (step === "reply") it.kernel.reply(request, "execute_reply", { status: "ok" });
      else if (step === "busy") it.kernel.publish("status", BUSY, { parent });
      else if (step === "idle") it.kernel.publish("status", IDLE, { parent });
      else it.kernel.publish("stream", { name: "stdout", text: "x" }, { parent });
    }
    expect((await pending.reply).content).toEqual({ status: "ok" });
    await it.until(() => it.outputOf(pending.msgId).length === output.length);
    expect(it.outputOf(pending.msgId)).toEqual(output);
  });

  test("an idle without a reply leaves the reply open", async () => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    let settled = false;
    pending.reply.then(
      () => (settled = true),
      () => undefined, // The client is closed at the end.
    );
    it.kernel.publish("status", IDLE, { parent: request.header });
    await it.until(() => it.outputOf(pending.msgId).length === 1);
    expect(settled).toBe(false);
  });
});

describe("IOPub", () => {
  test("passes on messages of no, an unknown and a control request", async () => {
    using it = await Connected.to();
    it.client.send("control", "interrupt_request", {});
    const { header } = await it.kernel.request("interrupt_request", "control");
    const parents = [{}, { msg_id: "of-another" }, { msg_id: header.msg_id }];
    for (const parent of parents) it.kernel.publish("stream", { text: "x" }, { parent });
    const streams = () => it.iopub.filter((message) => message.header.msg_type === "stream");
    await it.until(() => streams().length === parents.length);
    expect(streams().map((message) => message.parent_header)).toEqual(parents);
  });

  test("never passes on a welcome, at any time, nor minds unknown types", async () => {
    using it = await Connected.to({ socketTypes: { iopub: "XPUB" } });
    it.kernel.publish("iopub_welcome", { subscription: "" });
    it.kernel.publish("type_of_the_future", {}, { identities: [bytes("topic")] });
    it.kernel.publish("iopub_welcome", { subscription: "x" }, { identities: [bytes("x")] });
    it.kernel.publish("stream", { text: "x" });
    await it.until(() => it.iopub.at(-1)?.header.msg_type === "stream");
    const types = it.iopub.map((message) => message.header.msg_type);
    expect(types.filter((type) => type !== "status")).toEqual(["type_of_the_future", "stream"]);
  });
});

describe("a message that is malformed, badly signed or repeated", () => {
  test("is counted, reported and dropped, and the connection goes on", async () => {
    using it = await Connected.to();
    const { pending, request } = await it.execute();
    const good = it.kernel.frames("stream", { text: "x" }, { parent: request.header });
    const forged = good.with(-1, bytes('{"text":"y"}'));
    const unsigned = good.with(1, bytes(""));
    for (const frames of [good.slice(1), forged, good, good, unsigned]) {
      it.kernel.sendRaw("iopub", frames);
    }
    await it.until(() => it.dropped.length === 4);
    const kinds = ["missing_delimiter", "bad_signature", "repeated_signature", "missing_signature"];
    expect(it.dropped.map((error) => error.kind as string)).toEqual(kinds);
    expect(it.client.dropped).toBe(4);
    expect(it.outputOf(pending.msgId)).toEqual(["stream"]);
    it.kernel.reply(request, "execute_reply", {});
    await pending.reply;
  });

  test("is not counted when shell and IOPub carry the same one", async () => {
    using it = await Connected.to();
    const pending = it.client.request("shell", "shutdown_request", { restart: false });
    const request = await it.kernel.request("shutdown_request");
    const frames = it.kernel.frames("shutdown_reply", {}, { parent: request.header });
    request.peer.send(frames);
    it.kernel.sendRaw("iopub", frames);
    await pending.reply;
    await it.until(() => it.outputOf(pending.msgId).length === 1);
    expect(it.client.dropped).toBe(0);
  });
});

describe("what a client sends", () => {
  test("has the parts that were asked for, and an id of its own", async () => {
    using it = await Connected.to();
    const parent = { ...it.kernel.requests[0]!.header, msg_id: "p" };
    const buffers = [new Uint8Array([1, 2])];
    const options = { metadata: { m: 1 }, buffers, parent, subshellId: "sub" };
    const id = it.client.send("shell", "comm_msg", { comm_id: "c", data: {} }, options);
    const message = await it.kernel.request("comm_msg");
    expect(message).toMatchObject({
      header: { msg_id: id, session: it.client.session, version: "5.3", subshell_id: "sub" },
      parent_header: parent,
      metadata: { m: 1 },
      content: { comm_id: "c", data: {} },
      buffers,
    });
    const ids = it.kernel.requests.map((request) => request.header.msg_id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test("comes from one routing id on shell and stdin, new for each client", async () => {
    const ids: string[] = [];
    for (let i = 0; i < 2; i += 1) {
      using it = await Connected.to({}, true);
      await it.kernel.until(() => it.kernel.clients("stdin").length === 1);
      const [shell, stdin] = [it.kernel.clients("shell")[0], it.kernel.clients("stdin")[0]];
      expect(shell?.length).toBeGreaterThan(8);
      expect(shell?.[0]).not.toBe(0);
      expect(stdin).toEqual(shell);
      ids.push(new TextDecoder().decode(shell));
    }
    expect(ids[0]).not.toBe(ids[1]);
  });

  test("answers a question on stdin", async () => {
    using it = await Connected.to({}, true);
    const { request } = await it.execute();
    await it.kernel.until(() => it.kernel.clients("stdin").length === 1);
    const question = { prompt: "name? ", password: false };
    it.kernel.sendRaw(
      "stdin",
      it.kernel.frames("input_request", question, { parent: request.header }),
    );
    await it.until(() => it.stdin.length === 1);
    const asked = it.stdin[0]!;
    expect(asked.content).toEqual(question);
    it.client.send("stdin", "input_reply", { value: "Ada" }, { parent: asked.header });
    const answer = await it.kernel.request("input_reply", "stdin");
    expect(answer.content).toEqual({ value: "Ada" });
    expect(answer.parent_header).toEqual(asked.header);
  });

  test("has no stdin if nobody handles its questions", async () => {
    using it = await Connected.to();
    expect(it.kernel.clients("stdin")).toEqual([]);
    const answer = () => it.client.send("stdin", "input_reply", { value: "" });
    expect(answer).toThrow(ChannelClosedError);
  });
});
