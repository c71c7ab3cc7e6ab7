import { describe, expect, test } from "bun:test";
import { KernelClient } from "../../../src/jupyter/channels.ts";
import { ChannelClosedError, ChannelLostError } from "../../../src/jupyter/errors.ts";
import type { JupyterMessage } from "../../../src/jupyter/message.ts";
import { ConnectionLostError } from "../../../src/wire/errors.ts";
import { MisbehavingKernel, type Misbehaviour } from "../../support/misbehaving-kernel.ts";

/** A client of a scripted kernel, and the losses that it reported. */
async function connect(kernel: MisbehavingKernel) {
  const losses: Array<{ channel: string; error: Error }> = [];
  const iopub: JupyterMessage[] = [];
  const lost = Promise.withResolvers<void>();
  const stream = Promise.withResolvers<void>();
  const client = await KernelClient.connect(kernel.info, {
    onIopub: (message) => {
      iopub.push(message);
      if (message.header.msg_type === "stream") stream.resolve();
    },
    onStdin: () => undefined,
    onLost: (channel, error) => {
      losses.push({ channel, error });
      lost.resolve();
    },
  });
  await kernel.until(() => kernel.clients("stdin").length === 1);
  await kernel.until(() => kernel.clients("control").length === 1);
  return { client, losses, iopub, lost: lost.promise, stream: stream.promise };
}

const CHANNELS = ["shell", "control", "iopub", "stdin"] as const;

describe.each([...CHANNELS])("when the %s connection breaks", (channel) => {
  test.each(["cut", "halfClose"] as const)(
    "by a %s, all that is pending settles once",
    async (how) => {
      using kernel = new MisbehavingKernel();
      const { client, losses, lost } = await connect(kernel);
      const pending = [
        client.request("shell", "execute_request", {}),
        client.request("shell", "execute_request", {}),
        client.request("control", "interrupt_request", {}),
      ];
      await kernel.until(() => kernel.requests.length === 4);
      let settled = 0;
      for (const { reply } of pending) reply.catch(() => (settled += 1));
      kernel.cut(channel, how);
      await lost;
      const results = await Promise.allSettled(pending.map(({ reply }) => reply));
      for (const result of results) {
        expect((result as PromiseRejectedResult).reason).toBe(losses[0]!.error);
      }
      expect(losses).toHaveLength(1);
      expect(losses[0]!.channel).toBe(channel);
      expect(losses[0]!.error).toBeInstanceOf(ChannelLostError);
      expect(losses[0]!.error.cause).toBeInstanceOf(ConnectionLostError);
      expect(losses[0]!.error.message).toStartWith(`kernel connection lost (${channel}: `);
      await kernel.until(() => kernel.clients("shell").length === 0);
      client.close();
      expect([settled, losses.length]).toEqual([3, 1]);
    },
  );
});

test("after a loss nothing can be sent, even if the kernel listens again", async () => {
  using kernel = new MisbehavingKernel();
  const { client, lost, losses } = await connect(kernel);
  kernel.cut("shell");
  await lost;
  const requests = kernel.requests.length;
  expect(await client.request("control", "x", {}).reply.catch((error) => error)).toBe(
    losses[0]!.error,
  );
  expect(() => client.send("shell", "x", {})).toThrow(ChannelLostError);
  expect(await client.beat(60_000)).toBe(false);
  expect(kernel.requests.length).toBe(requests);
  expect(kernel.clients("shell")).toEqual([]);
  client.close();
});

test("the last output of a kernel that loses its shell is still delivered until close", async () => {
  using kernel = new MisbehavingKernel();
  const { client, lost, losses, stream, iopub } = await connect(kernel);
  kernel.cut("shell");
  await lost;
  kernel.publish("stream", { name: "stderr", text: "last words" });
  await stream;
  expect(losses).toHaveLength(1);
  client.close();
  const count = iopub.length;
  kernel.publish("stream", { name: "stderr", text: "too late" });
  await kernel.until(() => kernel.clients("iopub").length === 0);
  expect(iopub.length).toBe(count);
});

test("a loss is reported once, even when IOPub breaks later", async () => {
  using kernel = new MisbehavingKernel();
  const { client, lost, losses } = await connect(kernel);
  kernel.cut("control");
  await lost;
  kernel.cut("iopub");
  await kernel.until(() => kernel.clients("iopub").length === 0);
  for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
  expect(losses.map((loss) => loss.channel)).toEqual(["control"]);
  client.close();
});

test("close rejects what is pending, reports no loss, and may be called again", async () => {
  using kernel = new MisbehavingKernel();
  const { client, losses } = await connect(kernel);
  const pending = client.request("shell", "execute_request", {});
  client.close();
  client.close();
  expect(await pending.reply.catch((error) => error)).toBeInstanceOf(ChannelClosedError);
  const after = client.request("shell", "execute_request", {});
  expect(await after.reply.catch((error) => error)).toBeInstanceOf(ChannelClosedError);
  expect(() => client.send("control", "x", {})).toThrow(ChannelClosedError);
  expect(await client.beat(60_000)).toBe(false);
  for (const channel of CHANNELS) await kernel.until(() => kernel.clients(channel).length === 0);
  expect(losses).toEqual([]);
});

describe("a heartbeat", () => {
  const PEERS: ReadonlyArray<{ name: string; misbehaviour: Misbehaviour; alive: boolean }> = [
    { name: "a ROUTER that echoes", misbehaviour: {}, alive: true },
    { name: "a REP that echoes", misbehaviour: { socketTypes: { hb: "REP" } }, alive: true },
    { name: "a kernel that hangs", misbehaviour: { onBeat: () => undefined }, alive: false },
    { name: "a kernel without this socket", misbehaviour: { unbound: ["hb"] }, alive: false },
    {
      name: "a socket of another type",
      misbehaviour: { socketTypes: { hb: "PUB" } },
      alive: false,
    },
    { name: "a peer that hangs up", misbehaviour: { onBeat: (peer) => peer.cut() }, alive: false },
  ];

  test.each([...PEERS])("of $name tells so", async ({ misbehaviour, alive }) => {
    using kernel = new MisbehavingKernel(misbehaviour);
    const { client, losses } = await connect(kernel);
    expect(kernel.clients("hb")).toEqual([]);
    const timeoutMs = alive ? 60_000 : 30;
    expect([await client.beat(timeoutMs), await client.beat(timeoutMs)]).toEqual([alive, alive]);
    expect(losses).toEqual([]);
    client.close();
  });

  test("does not take the late echo of an earlier one for its own", async () => {
    const beats: Uint8Array[][] = [];
    using kernel = new MisbehavingKernel({
      onBeat: (peer, frames) => {
        beats.push(frames);
        if (beats.length === 2) peer.send(beats[0] ?? []);
      },
    });
    const { client } = await connect(kernel);
    expect([await client.beat(20), await client.beat(20)]).toEqual([false, false]);
    expect(beats).toHaveLength(2);
    client.close();
  });

  test("in flight is false at once when the client is closed", async () => {
    const asked = Promise.withResolvers<void>();
    using kernel = new MisbehavingKernel({ onBeat: () => asked.resolve() });
    const { client } = await connect(kernel);
    const beat = client.beat(60_000);
    await asked.promise;
    client.close();
    expect(await beat).toBe(false);
  });

  test("succeeds after a peer that could not be used has made way for a kernel", async () => {
    const socketTypes = { hb: "PUB" };
    using kernel = new MisbehavingKernel({ socketTypes });
    const { client } = await connect(kernel);
    expect(await client.beat(60_000)).toBe(false);
    socketTypes.hb = "ROUTER";
    expect(await client.beat(60_000)).toBe(true);
    client.close();
  });

  test("succeeds again once the kernel echoes again", async () => {
    let mute = true;
    using kernel = new MisbehavingKernel({
      onBeat: (peer, frames) => (mute ? undefined : peer.send(frames)),
    });
    const { client } = await connect(kernel);
    expect(await client.beat(20)).toBe(false);
    mute = false;
    expect(await client.beat(60_000)).toBe(true);
    client.close();
  });
});
