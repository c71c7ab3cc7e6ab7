import { expect, test } from "bun:test";
import { AbortedError } from "../../../src/errors.ts";
import { KernelClient, type KernelClientEvents } from "../../../src/jupyter/channels.ts";
import { KernelNotReadyError } from "../../../src/jupyter/errors.ts";
import { MisbehavingKernel } from "../../support/misbehaving-kernel.ts";
import { SocketTypeError } from "../../../src/wire/errors.ts";

/** The error that a promise rejects with. */
const rejectionOf = (promise: Promise<unknown>) =>
  promise.then(
    () => undefined,
    (error) => error,
  );

const IGNORE: KernelClientEvents = { onIopub: () => undefined, onLost: () => undefined };
const BUSY = { execution_state: "busy" };

test("a client is ready when the kernel has answered and IOPub is live", async () => {
  using kernel = new MisbehavingKernel();
  const client = await KernelClient.connect(kernel.info, IGNORE);
  expect(client.kernelInfo).toEqual({ status: "ok", implementation: "misbehaving" });
  expect(kernel.requests.map((request) => [request.channel, request.header.msg_type])).toEqual([
    ["shell", "kernel_info_request"],
  ]);
  client.close();
});

test("a client waits for a kernel that binds its sockets late", async () => {
  using kernel = new MisbehavingKernel({ unbound: ["shell", "iopub", "control", "hb"] });
  const connecting = KernelClient.connect(kernel.info, IGNORE);
  for (const channel of ["control", "shell", "iopub"] as const) {
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    kernel.bind(channel);
  }
  (await connecting).close();
});

test("a client probes until a status shows that a late subscription has taken effect", async () => {
  const kernelInfoRequests = (kernel: MisbehavingKernel) =>
    kernel.requests.filter((request) => request.header.msg_type === "kernel_info_request").length;
  using kernel = new MisbehavingKernel({ subscribed: (it) => kernelInfoRequests(it) >= 3 });
  const seen: string[] = [];
  const idle = Promise.withResolvers<void>();
  const client = await KernelClient.connect(kernel.info, {
    ...IGNORE,
    onIopub: (message) => {
      if (message.parent_header.msg_id !== cell.msgId) return;
      seen.push(message.header.msg_type);
      if (message.header.msg_type === "status") idle.resolve();
    },
  });
  expect(kernelInfoRequests(kernel)).toBeGreaterThanOrEqual(3);
  const cell = client.request("shell", "execute_request", { code: "1" });
  const request = await kernel.request("execute_request");
  kernel.publish("stream", { name: "stdout", text: "1" }, { parent: request.header });
  kernel.publish("status", { execution_state: "idle" }, { parent: request.header });
  kernel.reply(request, "execute_reply", { status: "ok" });
  await Promise.all([cell.reply, idle.promise]);
  expect(seen).toEqual(["stream", "status"]);
  client.close();
});

test("a welcome proves that IOPub is live, even if no status ever comes", async () => {
  using kernel = new MisbehavingKernel({
    socketTypes: { iopub: "XPUB" },
    onRequest: (request, it) => {
      it.reply(request, "kernel_info_reply", { status: "ok" });
      it.publish("iopub_welcome", { subscription: "" });
      return true;
    },
  });
  (await KernelClient.connect(kernel.info, IGNORE)).close();
});

test("a message of another client proves that IOPub is live", async () => {
  using kernel = new MisbehavingKernel({
    onRequest: (request, it) => {
      it.reply(request, "kernel_info_reply", { status: "ok" });
      it.publish("status", BUSY, { parent: { msg_id: "of-another-client" } });
      return true;
    },
  });
  (await KernelClient.connect(kernel.info, IGNORE)).close();
});

test("a kernel whose shell is busy becomes ready through control", async () => {
  using kernel = new MisbehavingKernel({ onRequest: ({ channel }) => channel === "shell" });
  (await KernelClient.connect(kernel.info, IGNORE)).close();
});

test("a kernel that never answers on control becomes ready through shell", async () => {
  let probes = 0;
  using kernel = new MisbehavingKernel({
    onRequest: ({ channel }) => channel === "control" || (probes += 1) < 2,
  });
  (await KernelClient.connect(kernel.info, IGNORE)).close();
});

test("a kernel that never answers is not ready, and the error says what is missing", async () => {
  using mute = new MisbehavingKernel({ onRequest: () => true });
  const error = await rejectionOf(KernelClient.connect(mute.info, IGNORE, { readyTimeoutMs: 30 }));
  expect(error).toBeInstanceOf(KernelNotReadyError);
  expect(error).toMatchObject({ missing: "kernel_info_reply and iopub" });
  await mute.until(() => mute.clients("shell").length === 0);
});

test("a kernel whose IOPub stays silent is not ready", async () => {
  using kernel = new MisbehavingKernel({ subscribed: () => false });
  const error = await rejectionOf(
    KernelClient.connect(kernel.info, IGNORE, { readyTimeoutMs: 1_000 }),
  );
  expect(error).toBeInstanceOf(KernelNotReadyError);
  expect(error).toMatchObject({ missing: "iopub" });
});

test("a kernel that binds nothing fails with the last error of the connection", async () => {
  using kernel = new MisbehavingKernel({ unbound: ["shell", "iopub", "control", "stdin", "hb"] });
  const error = await rejectionOf(
    KernelClient.connect(kernel.info, IGNORE, { connectTimeoutMs: 400, readyTimeoutMs: 60_000 }),
  );
  expect(error).toBeInstanceOf(KernelNotReadyError);
  expect((error as Error).message).toContain("ENOENT");
});

test("mixed up ports fail at once and name the channel", async () => {
  using kernel = new MisbehavingKernel({ socketTypes: { iopub: "ROUTER" } });
  const error = await rejectionOf(KernelClient.connect(kernel.info, IGNORE));
  expect(error).toMatchObject({ code: "kernel_not_ready", missing: "iopub" });
  expect((error as Error).cause).toBeInstanceOf(SocketTypeError);
  expect((error as KernelNotReadyError).hint).toContain("ports");
});

test("a kernel that dies during the start rejects the start and reports no loss", async () => {
  let losses = 0;
  using kernel = new MisbehavingKernel({
    onRequest: (_, it) => {
      it.cut("control");
      return true;
    },
  });
  const events = { ...IGNORE, onLost: () => (losses += 1) };
  const error = await rejectionOf(KernelClient.connect(kernel.info, events));
  expect(error).toMatchObject({ code: "kernel_not_ready", missing: "control" });
  expect(losses).toBe(0);
});

test("an abort ends a start at once and closes its connections", async () => {
  using kernel = new MisbehavingKernel({ onRequest: () => true });
  const abort = new AbortController();
  const connecting = KernelClient.connect(kernel.info, IGNORE, { signal: abort.signal });
  await kernel.request("kernel_info_request");
  abort.abort();
  expect(await rejectionOf(connecting)).toBeInstanceOf(AbortedError);
  await kernel.until(() => kernel.clients("shell").length === 0);
  const again = KernelClient.connect(kernel.info, IGNORE, { signal: abort.signal });
  expect(await rejectionOf(again)).toBeInstanceOf(AbortedError);
});
