/** The heartbeat channel: the kernel echoes what it gets, from a thread of its own. */

import { debug } from "../log.ts";
import { RequestTimeoutError } from "../wire/errors.ts";
import { ReqSocket } from "../wire/sockets.ts";
import type { Endpoint } from "../wire/transport.ts";

/** Beats of one kernel. Connects with the first beat: the kernel binds this socket last, and many clients never ask. */
export class Heartbeat {
  readonly #endpoint: Endpoint;
  #socket: ReqSocket | undefined;
  #count = 0;

  constructor(endpoint: Endpoint) {
    this.#endpoint = endpoint;
  }

  /** Whether the kernel's process echoed in time. Says nothing about its interpreter, which may be stuck. Never rejects. */
  async beat(timeoutMs: number): Promise<boolean> {
    const socket = (this.#socket ??= new ReqSocket({ endpoint: this.#endpoint }));
    this.#count += 1;
    try {
      await socket.request(new TextEncoder().encode(`beat ${this.#count}`), timeoutMs);
      return true;
    } catch (error) {
      debug("jupyter", "no heartbeat", error);
      if (!(error instanceof RequestTimeoutError) && this.#socket === socket) this.close();
      return false;
    }
  }

  /** Ends beats in flight; they report false. */
  close(): void {
    this.#socket?.close();
    this.#socket = undefined;
  }
}
