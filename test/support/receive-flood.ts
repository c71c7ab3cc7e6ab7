/** Benchmarks of receiving: what one message costs in this process. */

import { KernelClient } from "../../src/jupyter/channels.ts";
import { createIpcConnection, writeConnectionFile } from "../../src/jupyter/connection-file.ts";
import { createHeader, type JupyterMessage } from "../../src/jupyter/message.ts";
import { deserialize, serialize } from "../../src/jupyter/serialize.ts";
import { MessageSigner, SignatureHistory } from "../../src/jupyter/signing.ts";
import { PythonPeer } from "./python.ts";
import { TempDir } from "./temp-dir.ts";

const DISTINCT = 100;

/** How many messages of which size: the text of a `stream` message. */
export interface FloodSize {
  readonly count: number;
  readonly bytes: number;
}

/** What it took. */
export interface FloodFigures extends FloodSize {
  /** From the first message to the last. */
  readonly seconds: number;
  /** User and system time of this process in that span. */
  readonly cpuSeconds: number;
  readonly messagesPerSecond: number;
}

/** Frames to checked messages, without sockets. The same few come round again, so that memory does not count. */
export function deserializeFlood(size: FloodSize): FloodFigures {
  const signer = new MessageSigner("a key");
  const messages = Array.from({ length: Math.min(size.count, DISTINCT) }, (_, id) =>
    serialize(streamMessage(`${id}`, size.bytes), signer),
  );
  let history = new SignatureHistory();
  const clock = startClock();
  for (let i = 0; i < size.count; i += 1) {
    if (i % messages.length === 0) history = new SignatureHistory();
    deserialize(messages[i % messages.length] as Uint8Array[], signer, history);
  }
  return figures(size, clock());
}

/** The whole way: a libzmq publisher in another process, a unix socket, our client. Every message must arrive. */
export async function receiveFlood(size: FloodSize): Promise<FloodFigures> {
  using directory = new TempDir();
  const info = createIpcConnection(directory.path);
  const path = directory.join("kernel.json");
  writeConnectionFile(path, info);
  await using peer = new PythonPeer("misbehaving-kernel-flood.py", [path]);
  await peer.line();
  let clock = startClock();
  let received = 0;
  const done = Promise.withResolvers<FloodFigures>();
  const client = await KernelClient.connect(info, {
    onIopub: ({ header }) => {
      if (header.msg_type === "flood_starts") clock = startClock();
      if (header.msg_type !== "stream") return;
      received += 1;
      if (received === size.count) done.resolve(figures(size, clock()));
    },
    onLost: (_, error) => done.reject(error),
  });
  await client.request("shell", "flood_request", size).reply;
  const result = await done.promise;
  client.close();
  return result;
}

function streamMessage(id: string, bytes: number): JupyterMessage {
  return {
    identities: [new TextEncoder().encode("topic")],
    header: createHeader("stream", `${crypto.randomUUID()}_${id}`, crypto.randomUUID()),
    parent_header: createHeader("execute_request", crypto.randomUUID(), crypto.randomUUID()),
    metadata: {},
    content: { name: "stdout", text: "x".repeat(bytes) },
    buffers: [],
  };
}

function startClock(): () => { seconds: number; cpuSeconds: number } {
  const cpu = process.cpuUsage();
  const start = performance.now();
  return () => {
    const { user, system } = process.cpuUsage(cpu);
    return { seconds: (performance.now() - start) / 1e3, cpuSeconds: (user + system) / 1e6 };
  };
}

function figures(size: FloodSize, spent: { seconds: number; cpuSeconds: number }): FloodFigures {
  return { ...size, ...spent, messagesPerSecond: Math.round(size.count / spent.seconds) };
}
