/**
 * A client of one kernel: its channels, opened together and lost together
 * ("Introduction" and "Messages on the shell/control channels" of the messaging
 * specification). Knows nothing of the process behind them.
 *
 * IOPub is always read: a publisher whose reader is slow drops messages without
 * a word. What is too much to keep is for the receiver of `onIopub` to cap.
 */

import { raceWithAbort, within, TIMED_OUT } from "../async.ts";
import { debug } from "../log.ts";
import type { WireError } from "../wire/errors.ts";
import { DealerSocket, SubSocket, type SocketEvents, type SocketOptions } from "../wire/sockets.ts";
import { channelEndpoint, type ConnectionInfo } from "./connection-file.ts";
import {
  ChannelClosedError,
  ChannelLostError,
  KernelNotReadyError,
  ProtocolError,
} from "./errors.ts";
import { Heartbeat } from "./heartbeat.ts";
import {
  createHeader,
  KERNEL_INFO_REQUEST,
  type Header,
  type JupyterMessage,
  type KernelInfoReply,
} from "./message.ts";
import { PendingReplies, type PendingRequest } from "./pending-replies.ts";
import { Readiness } from "./readiness.ts";
import { deserialize, serialize } from "./serialize.ts";
import { MessageSigner, SignatureHistory } from "./signing.ts";

export type { PendingRequest } from "./pending-replies.ts";

/** The channels that take requests. Control is read while a cell runs; not every kernel answers there. */
export type RequestChannel = "shell" | "control";

type Channel = RequestChannel | "stdin" | "iopub";

/** What a client tells its owner. Handlers run while bytes are read: they must not throw, nor take long. */
export interface KernelClientEvents {
  /** Each valid IOPub message once the client is ready, also those of other clients' requests; never `iopub_welcome`. */
  onIopub(message: JupyterMessage): void;
  /** The kernel asks for input. Without this handler stdin is not connected, so requests must have `allow_stdin: false`. */
  onStdin?(message: JupyterMessage): void;
  /**
   * A connection of a ready client broke. Comes once; pending replies reject with the same error and
   * nothing can be sent any more. IOPub goes on until it ends too or the owner calls `close()`, so
   * that the last output of a dying kernel is not lost.
   */
  onLost(channel: string, error: Error): void;
  /** A message was malformed or badly signed; it was dropped and the connection goes on. */
  onDropped?(error: ProtocolError): void;
}

/** Limits of {@link KernelClient.connect}. */
export interface ConnectOptions {
  readonly signal?: AbortSignal;
  /** For the whole start; default 60 s. */
  readonly readyTimeoutMs?: number;
  /** How long the kernel may take to bind its sockets; default as long as the whole start. */
  readonly connectTimeoutMs?: number;
}

/** The parts of a message that few requests need. */
export interface SendOptions {
  readonly metadata?: Record<string, unknown>;
  readonly buffers?: readonly Uint8Array[];
  /** The message that this one answers. */
  readonly parent?: Header;
  /** JEP 91; only for kernels whose `supported_features` have "kernel subshells": others may not answer. */
  readonly subshellId?: string;
}

const READY_TIMEOUT_MS = 60_000;

/** See the head of this file. */
export class KernelClient {
  /** Our side's id in headers, and the routing id of our sockets; new for each client. */
  readonly session: string = crypto.randomUUID();
  readonly #events: KernelClientEvents;
  readonly #dealers: Partial<Record<Channel, DealerSocket>>;
  readonly #iopub: SubSocket;
  readonly #heartbeat: Heartbeat;
  readonly #signer: MessageSigner;
  readonly #pending = new PendingReplies();
  readonly #readiness = new Readiness();
  #kernelInfo: KernelInfoReply | undefined;
  #ended: Error | undefined;
  #sent = 0;
  #dropped = 0;

  /**
   * Connects to a kernel that has bound its sockets or will do so shortly. Resolves when it has answered
   * a `kernel_info_request` and a message on IOPub has proved that no output will be missed.
   *
   * @throws {KernelNotReadyError} it could not be connected, or is not ready in time.
   * @throws {AbortedError} the signal fired.
   */
  static async connect(
    info: ConnectionInfo,
    events: KernelClientEvents,
    options: ConnectOptions = {},
  ): Promise<KernelClient> {
    const { signal, readyTimeoutMs = READY_TIMEOUT_MS } = options;
    const client = new KernelClient(info, events, options.connectTimeoutMs ?? readyTimeoutMs);
    try {
      const answer = client.#readiness.prove((channel) =>
        client.request(channel, KERNEL_INFO_REQUEST, {}),
      );
      const kernelInfo = await raceWithAbort(within(answer, readyTimeoutMs), signal);
      if (kernelInfo === TIMED_OUT) throw client.#notReady(readyTimeoutMs);
      if (client.#ended) throw client.#ended;
      client.#kernelInfo = kernelInfo;
      return client;
    } catch (error) {
      client.close();
      throw error;
    }
  }

  private constructor(info: ConnectionInfo, events: KernelClientEvents, connectTimeoutMs: number) {
    this.#events = events;
    const identity = new TextEncoder().encode(this.session);
    const socket = (channel: Channel): SocketOptions => ({
      endpoint: channelEndpoint(info, channel),
      events: this.#socketEvents(channel),
      connectTimeoutMs,
      // A lost connection has lost replies and output with it, and what listens there later may be another kernel.
      reconnect: false,
    });
    // IOPub goes first, so that its subscription is likely to be there before the first answer is.
    this.#iopub = new SubSocket({ ...socket("iopub"), topics: [""] });
    // The kernel finds our stdin by the routing id of our shell.
    const dealer = (channel: Channel) => new DealerSocket({ ...socket(channel), identity });
    this.#dealers = { shell: dealer("shell"), control: dealer("control") };
    if (events.onStdin) this.#dealers.stdin = dealer("stdin");
    this.#heartbeat = new Heartbeat(channelEndpoint(info, "hb"));
    this.#signer = new MessageSigner(info.key);
  }

  /** What the kernel said about itself. */
  get kernelInfo(): KernelInfoReply {
    return this.#kernelInfo ?? {};
  }

  /** How many messages were malformed, badly signed or repeated. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Sends a request that has a reply. Never throws: what goes wrong rejects the reply. */
  request(
    channel: RequestChannel,
    msgType: string,
    content: object,
    options: SendOptions = {},
  ): PendingRequest {
    const msgId = this.#nextId();
    const pending = this.#pending.add(msgId);
    try {
      this.#transmit(
        channel,
        createHeader(msgType, msgId, this.session, options.subshellId),
        content,
        options,
      );
    } catch (error) {
      this.#pending.fail(msgId, error);
    }
    return pending;
  }

  /**
   * Sends a message that has no reply, and returns its id.
   *
   * @throws {ChannelClosedError | ChannelLostError} there is no connection any more.
   * @throws {SendQueueFullError} the kernel does not read.
   */
  send(
    channel: RequestChannel | "stdin",
    msgType: string,
    content: object,
    options: SendOptions = {},
  ): string {
    const header = createHeader(msgType, this.#nextId(), this.session, options.subshellId);
    this.#transmit(channel, header, content, options);
    return header.msg_id;
  }

  /** One heartbeat: whether the kernel's process echoed within the time. Never rejects. */
  async beat(timeoutMs: number): Promise<boolean> {
    return this.#ended === undefined && (await this.#heartbeat.beat(timeoutMs));
  }

  /** Closes all channels; pending replies reject with {@link ChannelClosedError} and no event follows. Idempotent. */
  close(): void {
    this.#end(new ChannelClosedError("kernel"));
    this.#iopub.close();
  }

  #nextId(): string {
    this.#sent += 1;
    return `${this.session}_${this.#sent}`;
  }

  #transmit(channel: Channel, header: Header, content: object, options: SendOptions): void {
    if (this.#ended) throw this.#ended;
    const socket = this.#dealers[channel];
    if (!socket) throw new ChannelClosedError(channel);
    const message: JupyterMessage<object> = {
      identities: [],
      header,
      parent_header: options.parent ?? {},
      metadata: options.metadata ?? {},
      content,
      buffers: [...(options.buffers ?? [])],
    };
    socket.send(serialize(message, this.#signer));
  }

  #socketEvents(channel: Channel): SocketEvents {
    // Of its own for each channel: kernels may publish a reply unchanged on IOPub.
    const history = new SignatureHistory();
    return {
      onMessage: (frames) => {
        const message = this.#accept(frames, history);
        if (message) this.#deliver(channel, message);
      },
      onFailure: (error) => this.#fail(channel, error),
    };
  }

  #accept(frames: Uint8Array[], history: SignatureHistory): JupyterMessage | undefined {
    try {
      return deserialize(frames, this.#signer, history);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#dropped += 1;
      debug("jupyter", "dropped a message", error);
      this.#events.onDropped?.(error);
      return undefined;
    }
  }

  #deliver(channel: Channel, message: JupyterMessage): void {
    if (channel === "stdin") return this.#events.onStdin?.(message);
    if (channel !== "iopub") return void this.#pending.settle(message);
    this.#readiness.noteIopub();
    // Nothing that was published before we were ready answers a request of our owner.
    if (!this.#kernelInfo || message.header.msg_type === "iopub_welcome") return;
    this.#events.onIopub(message);
  }

  #fail(channel: Channel, error: WireError): void {
    if (this.#ended) return;
    if (this.#kernelInfo) {
      const lost = new ChannelLostError(channel, error);
      this.#end(lost);
      this.#events.onLost(channel, lost);
    } else {
      const text = `the kernel's ${channel} channel cannot be used: ${error.message}`;
      this.#end(new KernelNotReadyError(channel, text, { hint: error.hint, cause: error }));
    }
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = error;
    for (const socket of Object.values(this.#dealers)) socket.close();
    this.#heartbeat.close();
    this.#pending.failAll(error);
    this.#readiness.fail(error);
  }

  #notReady(timeoutMs: number): KernelNotReadyError {
    const { missing } = this.#readiness;
    const dropped =
      this.#dropped > 0 ? `; ${this.#dropped} malformed or badly signed messages were dropped` : "";
    const text = `the kernel is not ready after ${timeoutMs} ms: no ${missing}${dropped}`;
    return new KernelNotReadyError(missing, text);
  }
}
