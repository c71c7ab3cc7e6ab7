/** Requests that wait for their reply. */

import { defer, type Deferred } from "../async.ts";
import type { JupyterMessage } from "./message.ts";

/** A request on its way. */
export interface PendingRequest {
  readonly msgId: string;
  /**
   * The reply, whatever its status. Rejects when it can't come any more (the connection was lost or
   * closed) or the request could not be sent; never reported as unhandled. Some kernels don't answer
   * some requests, so a caller that can't wait for ever needs a limit of its own.
   */
  readonly reply: Promise<JupyterMessage>;
  /** Drops the waiter: a later reply is ignored and `reply` never settles. */
  forget(): void;
}

/** The waiters of one client. Each settles once, or is forgotten. */
export class PendingReplies {
  readonly #waiters = new Map<string, Deferred<JupyterMessage>>();

  add(msgId: string): PendingRequest {
    const waiter = defer<JupyterMessage>();
    this.#waiters.set(msgId, waiter);
    return { msgId, reply: waiter.promise, forget: () => this.#waiters.delete(msgId) };
  }

  /** Gives a reply to its request. False if nobody waits for it: it was forgotten, answered before, or another client's. */
  settle(reply: JupyterMessage): boolean {
    const msgId = reply.parent_header.msg_id ?? "";
    const waiter = this.#waiters.get(msgId);
    if (!waiter) return false;
    this.#waiters.delete(msgId);
    waiter.resolve(reply);
    return true;
  }

  /** Rejects one request. */
  fail(msgId: string, error: unknown): void {
    this.#waiters.get(msgId)?.reject(error);
    this.#waiters.delete(msgId);
  }

  /** Rejects all requests. */
  failAll(error: unknown): void {
    for (const waiter of this.#waiters.values()) waiter.reject(error);
    this.#waiters.clear();
  }
}
