/** Where a peer listens, and the byte stream to it: Bun's TCP and unix sockets, nothing of ZMTP. */

import { ConnectFailedError, EndpointError, type WireError } from "./errors.ts";

/**
 * An address that a peer has bound. `ipc` is a unix socket; as in libzmq, a path that starts with `@`
 * is a name in Linux's abstract namespace.
 */
export type Endpoint =
  | { readonly transport: "ipc"; readonly path: string }
  | { readonly transport: "tcp"; readonly host: string; readonly port: number };

/** An endpoint for people, in ZeroMQ's notation. */
export function describeEndpoint(endpoint: Endpoint): string {
  if (endpoint.transport === "ipc") return `ipc://${endpoint.path}`;
  const host = endpoint.host.includes(":") ? `[${endpoint.host}]` : endpoint.host;
  return `tcp://${host}:${endpoint.port}`;
}

/** What a transport reports: `onOpen` at most once, then at last `onFailed` or `onClosed`, once. */
export interface TransportEvents {
  onOpen(): void;
  /** Octets from the peer, in a buffer that is not used again. */
  onData(chunk: Uint8Array): void;
  /** The rest of the last {@link Transport.write} has been handed over. */
  onDrained(): void;
  /** The attempt to connect failed. */
  onFailed(error: WireError): void;
  /** The peer closed the stream; `cause` is the system's error, if it was not in order. */
  onClosed(cause: unknown): void;
}

type StreamSocket = Bun.Socket<undefined>;

/** A stream to one peer. It starts to connect at once and is never paused. */
export class Transport {
  readonly #endpoint: Endpoint;
  readonly #events: TransportEvents;
  #socket: StreamSocket | undefined;
  #rest: Uint8Array | undefined;
  #ended = false;

  constructor(endpoint: Endpoint, events: TransportEvents) {
    this.#endpoint = endpoint;
    this.#events = events;
    void this.#connect();
  }

  /** Connected, and everything written so far has been handed to the operating system. */
  get writable(): boolean {
    return this.#socket !== undefined && this.#rest === undefined;
  }

  /**
   * Hands `bytes` to the operating system. False if it has not taken all: the rest follows by itself and
   * `onDrained` tells when. Only while {@link writable}.
   */
  write(bytes: Uint8Array): boolean {
    // Bun takes what fits into the socket's buffer, and does not keep the rest.
    const written = this.#socket?.write(bytes) ?? 0;
    if (written === bytes.length) return true;
    this.#rest = bytes.subarray(Math.max(written, 0));
    return false;
  }

  /** Closes at once; what has been handed over still reaches the peer. No event follows. */
  close(): void {
    this.#ended = true;
    this.#rest = undefined;
    this.#socket?.end();
    this.#socket = undefined;
  }

  async #connect(): Promise<void> {
    const socket: Bun.SocketHandler<undefined> = {
      open: (opened) => this.#onOpen(opened),
      data: (_, chunk) => this.#onData(chunk),
      drain: () => this.#onDrain(),
      error: (_, error) => this.#onClosed(error),
      close: (_, error) => this.#onClosed(error),
    };
    try {
      await null; // So that not even a bad port is reported before the constructor has returned.
      if (this.#ended) return;
      if (this.#endpoint.transport === "ipc") {
        await Bun.connect({ unix: this.#endpoint.path.replace(/^@/, "\0"), socket });
      } else {
        const { host, port } = this.#endpoint;
        await Bun.connect({ hostname: host, port, socket });
      }
    } catch (error) {
      this.#onConnectError(error);
    }
  }

  #onOpen(socket: StreamSocket): void {
    if (this.#ended) {
      socket.terminate();
      return;
    }
    if (this.#endpoint.transport === "tcp") socket.setNoDelay(true);
    this.#socket = socket;
    this.#events.onOpen();
  }

  #onData(chunk: Buffer): void {
    if (this.#ended) return;
    // As a plain array: `slice` of a Buffer would be a view, not a copy.
    this.#events.onData(new Uint8Array(chunk.buffer, chunk.byteOffset, chunk.length));
  }

  #onDrain(): void {
    const rest = this.#rest;
    if (!rest) return;
    this.#rest = undefined;
    if (this.write(rest)) this.#events.onDrained();
  }

  #onConnectError(error: unknown): void {
    if (this.#ended) return;
    this.#ended = true;
    const where = describeEndpoint(this.#endpoint);
    const code = systemCode(error);
    // The kernel's limit for socket paths is 104 to 108 octets, and it reports no more than this.
    const tooLong = this.#endpoint.transport === "ipc" && /^(EINVAL|ENAMETOOLONG)$/.test(code);
    this.#events.onFailed(
      tooLong
        ? new EndpointError(where, `the path has ${Buffer.byteLength(where.slice(6))} bytes`)
        : new ConnectFailedError(where, code, error),
    );
  }

  #onClosed(cause: unknown): void {
    if (this.#ended) return;
    this.close();
    this.#events.onClosed(cause);
  }
}

function systemCode(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  return typeof code === "string" ? code : String(error);
}
