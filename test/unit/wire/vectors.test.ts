import { describe, expect, test } from "bun:test";
import { type Deferred, defer, delay } from "../../../src/async.ts";
import {
  DealerSocket,
  ReqSocket,
  type SocketOptions,
  SubSocket,
} from "../../../src/wire/sockets.ts";
import { type PeerConnection, ScriptedPeer, ascii } from "../../support/zmtp-peer.ts";
import {
  type Vector,
  type VectorOutcome,
  type VectorStep,
  showBody,
  vectors,
} from "../../support/zmtp-vectors.ts";

const IMPATIENT_MS = 100;
const PONG_PREFIX = "04504f4e47";

/** One run of a vector between a real socket of ours and the scripted peer. */
class Run {
  readonly vector: Vector;
  readonly messages: string[][] = [];
  pongs: string[] = [];
  #arrived: Deferred<void> = defer();

  constructor(vector: Vector) {
    this.vector = vector;
  }

  deliver(frames: readonly Uint8Array[]): void {
    this.messages.push(frames.map(showBody));
    if (this.messages.length === this.vector.messages.length) this.#arrived.resolve();
  }

  /** The peer's part. It hangs up at the end, so that a run is over when our socket has noticed. */
  async play(connection: PeerConnection): Promise<void> {
    for (const step of this.vector.steps) await this.#step(connection, step);
    if (this.vector.closes === "handshake_timeout") return connection.closed;
    await connection.until(() => pongsIn(connection).length >= this.vector.pongs.length);
    this.pongs = pongsIn(connection);
    connection.end();
  }

  async #step(connection: PeerConnection, step: VectorStep): Promise<void> {
    if (step.kind === "send") {
      if (step.pauseMs > 0) await delay(step.pauseMs);
      await connection.send(step.bytes);
    } else if (step.kind === "await") {
      if (step.what === "ready") await connection.untilFrames(1);
      else if (step.what === "request") await connection.untilFrames(3);
      else await connection.untilBytes(step.what);
    } else if (step.how === "reset") {
      // A reset overtakes what has been sent before it.
      await this.#arrived.promise;
      connection.reset();
    }
  }
}

function pongsIn(connection: PeerConnection): string[] {
  const bodies = connection.frames.map((frame) => frame.body.toHex());
  return bodies.filter((body) => body.startsWith(PONG_PREFIX)).map((body) => body.slice(10));
}

async function outcomeOf(vector: Vector, transport: "tcp" | "ipc"): Promise<VectorOutcome> {
  const run = new Run(vector);
  await using peer = await ScriptedPeer.listen(transport, (connection, number) =>
    number === 0 ? run.play(connection) : connection.end(),
  );
  const over = defer<string>();
  const impatient = vector.closes === "handshake_timeout";
  const socket = openSocket(vector.role, {
    endpoint: peer.endpoint,
    ...(impatient ? { handshakeTimeoutMs: IMPATIENT_MS } : {}),
    events: {
      onMessage: (frames) => run.deliver(frames),
      onDisconnect: (error) => over.resolve(error.code),
    },
  });
  const closes = await over.promise;
  socket.close();
  return { messages: run.messages, pongs: run.pongs, closes };
}

function openSocket(role: Vector["role"], options: SocketOptions): { close(): void } {
  if (role === "sub") return new SubSocket({ ...options, topics: [""] });
  if (role === "dealer") return new DealerSocket(options);
  const socket = new ReqSocket(options);
  // The reply as if it were a message, since a REQ hands it to its caller only.
  socket.request(ascii("ping"), 5000).then(
    (reply) => options.events.onMessage([new Uint8Array(0), reply]),
    () => undefined,
  );
  return socket;
}

/** A REQ drops what is no answer to its request. */
function expectedMessages(vector: Vector): VectorOutcome["messages"] {
  return vector.role === "req" ? vector.messages.slice(-1) : vector.messages;
}

for (const transport of ["tcp", "ipc"] as const) {
  describe(`each vector has its outcome on a real ${transport} socket`, () => {
    for (const vector of vectors) {
      test.concurrent(`${vector.id}: ${vector.title}`, async () => {
        expect(await outcomeOf(vector, transport)).toEqual({
          messages: expectedMessages(vector),
          pongs: vector.pongs,
          closes: vector.closes ?? "connection_lost",
        });
      });
    }
  });
}
