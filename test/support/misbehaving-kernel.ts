/**
 * A kernel in this process that does what a test tells it to. Left alone it
 * answers `kernel_info_request` as ipykernel does (busy, reply, idle), echoes
 * heartbeats, and keeps all other requests for the test to answer.
 */

import { createIpcConnection, type ConnectionInfo } from "../../src/jupyter/connection-file.ts";
import { createHeader, type Header, type JupyterMessage } from "../../src/jupyter/message.ts";
import { deserialize, serialize } from "../../src/jupyter/serialize.ts";
import { MessageSigner } from "../../src/jupyter/signing.ts";
import { listen, type SocketPeer } from "./misbehaving-kernel-socket.ts";
import { TempDir } from "./temp-dir.ts";

export type KernelChannel = "shell" | "control" | "stdin" | "iopub" | "hb";

/** A message that a client sent, and where an answer goes. */
export interface KernelRequest extends JupyterMessage {
  readonly channel: KernelChannel;
  readonly peer: SocketPeer;
}

/** How a scripted kernel differs from a well-behaved one. */
export interface Misbehaviour {
  /** Takes over a request; return true if that was all. */
  onRequest?(request: KernelRequest, kernel: MisbehavingKernel): boolean | void;
  /** Takes over a heartbeat. */
  onBeat?(peer: SocketPeer, frames: Uint8Array[]): void;
  /** Decides when subscriptions take effect; until then IOPub messages are dropped, as by a PUB. */
  subscribed?(kernel: MisbehavingKernel): boolean;
  /** Socket types that differ from ROUTER, and PUB for IOPub. */
  socketTypes?: Partial<Record<KernelChannel, string>>;
  /** Channels that {@link MisbehavingKernel.bind} binds later. */
  unbound?: readonly KernelChannel[];
}

const CHANNELS: readonly KernelChannel[] = ["shell", "control", "stdin", "iopub", "hb"];

/** Changes to a message that is sent. */
export interface Extras {
  parent?: Partial<Header>;
  identities?: Uint8Array[];
  buffers?: Uint8Array[];
  header?: Partial<Header>;
}

/** See the head of this file. */
export class MisbehavingKernel implements Disposable {
  readonly info: ConnectionInfo;
  /** All requests so far, in order, over all channels. */
  readonly requests: KernelRequest[] = [];
  readonly #misbehaviour: Misbehaviour;
  readonly #directory = new TempDir();
  readonly #signer: MessageSigner;
  readonly #peers = new Map<KernelChannel, Set<SocketPeer>>();
  readonly #listeners: Disposable[] = [];
  #changed = Promise.withResolvers<void>();
  #subscribers = 0;
  #sent = 0;

  constructor(misbehaviour: Misbehaviour = {}) {
    this.#misbehaviour = misbehaviour;
    this.info = createIpcConnection(this.#directory.path);
    this.#signer = new MessageSigner(this.info.key);
    for (const channel of CHANNELS) {
      if (!misbehaviour.unbound?.includes(channel)) this.bind(channel);
    }
  }

  bind(channel: KernelChannel): void {
    const peers = new Set<SocketPeer>();
    this.#peers.set(channel, peers);
    const usual = channel === "iopub" ? "PUB" : "ROUTER";
    const socketType = () => this.#misbehaviour.socketTypes?.[channel] ?? usual;
    const path = `${this.info.ip}-${this.info[`${channel}_port`]}`;
    this.#listeners.push(
      listen(path, socketType, {
        onOpen: (peer) => this.#note(() => peers.add(peer)),
        onClose: (peer) => this.#note(() => peers.delete(peer)),
        onMessage: (peer, frames) => this.#note(() => this.#receive(channel, peer, frames)),
      }),
    );
  }

  /** The routing ids of the clients that are connected to a channel now. */
  clients(channel: KernelChannel): Uint8Array[] {
    return [...(this.#peers.get(channel) ?? [])].map((peer) => peer.identity);
  }

  /** Resolves when `condition` holds; looked at after whatever clients do. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await this.#changed.promise;
  }

  /** The first request of this type so far or to come. */
  async request(msgType: string, channel: KernelChannel = "shell"): Promise<KernelRequest> {
    const find = () =>
      this.requests.find((one) => one.channel === channel && one.header.msg_type === msgType);
    await this.until(() => find() !== undefined);
    return find() as KernelRequest;
  }

  /** Answers a request on its channel. */
  reply(request: KernelRequest, msgType: string, content: object, extras: Extras = {}): void {
    request.peer.send(this.frames(msgType, content, { parent: request.header, ...extras }));
  }

  /** Publishes on IOPub. */
  publish(msgType: string, content: object, extras: Extras = {}): void {
    this.sendRaw("iopub", this.frames(msgType, content, extras));
  }

  /** The signed frames of a message of this kernel. */
  frames(msgType: string, content: object, extras: Extras = {}): Uint8Array[] {
    this.#sent += 1;
    const message: JupyterMessage<object> = {
      identities: extras.identities ?? [],
      header: { ...createHeader(msgType, `kernel-${this.#sent}`, "kernel"), ...extras.header },
      parent_header: extras.parent ?? {},
      metadata: {},
      content,
      buffers: extras.buffers ?? [],
    };
    return serialize(message, this.#signer);
  }

  /** Sends frames as they are to all clients of a channel. */
  sendRaw(channel: KernelChannel, frames: readonly Uint8Array[]): void {
    if (channel === "iopub" && !this.#isSubscribed()) return;
    for (const peer of this.#peers.get(channel) ?? []) peer.send(frames);
  }

  /** Breaks the connections of a channel. */
  cut(channel: KernelChannel, how: "cut" | "halfClose" = "cut"): void {
    for (const peer of [...(this.#peers.get(channel) ?? [])]) peer[how]();
  }

  /** Answers a `kernel_info_request` the way ipykernel does. */
  answerKernelInfo(request: KernelRequest): void {
    this.publish("status", { execution_state: "busy" }, { parent: request.header });
    this.reply(request, "kernel_info_reply", { status: "ok", implementation: "misbehaving" });
    this.publish("status", { execution_state: "idle" }, { parent: request.header });
  }

  [Symbol.dispose](): void {
    for (const listener of this.#listeners) listener[Symbol.dispose]();
    this.#directory[Symbol.dispose]();
  }

  #isSubscribed(): boolean {
    return this.#subscribers > 0 && (this.#misbehaviour.subscribed?.(this) ?? true);
  }

  #note(change: () => void): void {
    change();
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  #receive(channel: KernelChannel, peer: SocketPeer, frames: Uint8Array[]): void {
    if (channel === "iopub") return void (this.#subscribers += 1);
    if (channel === "hb") {
      const { onBeat } = this.#misbehaviour;
      return onBeat ? onBeat(peer, frames) : peer.send(frames);
    }
    const request = { ...deserialize(frames, this.#signer), channel, peer };
    this.requests.push(request);
    if (this.#misbehaviour.onRequest?.(request, this)) return;
    if (request.header.msg_type === "kernel_info_request") this.answerKernelInfo(request);
  }
}
