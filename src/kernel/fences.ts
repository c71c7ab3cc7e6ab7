/**
 * Fences: harmless requests on shell. A kernel answers its shell in order and
 * publishes in order, so a fence that has come back proves that what was
 * missing before it will never come. A fence also makes the kernel's loop turn.
 */

import { within } from "../async.ts";
import type { KernelClient } from "../jupyter/channels.ts";
import { KERNEL_INFO_REQUEST, type JupyterMessage } from "../jupyter/message.ts";

/** One fence on its way. */
export interface Fence {
  /** Resolves when the kernel has answered; rejects when the connection is lost. */
  readonly replied: Promise<void>;
  /** Resolves when the kernel has published that it is done with it. */
  readonly idle: Promise<void>;
  /** Stops waiting for it. */
  drop(): void;
}

/** See the head of this file. */
export class Fences {
  readonly #client: KernelClient;
  readonly #waiting = new Map<string, () => void>();

  constructor(client: KernelClient) {
    this.#client = client;
  }

  /** Sends a fence; whoever sends it drops it. */
  send(): Fence {
    const request = this.#client.request("shell", KERNEL_INFO_REQUEST, {});
    const replied = request.reply.then(() => undefined);
    replied.catch(() => undefined);
    const idle = new Promise<void>((resolve) => this.#waiting.set(request.msgId, resolve));
    const drop = () => {
      request.forget();
      this.#waiting.delete(request.msgId);
    };
    return { replied, idle, drop };
  }

  /** Sends a fence only to wake the kernel: a parked `await` notices an interrupt when its loop turns. */
  nudge(patienceMs: number): void {
    const fence = this.send();
    const answered = fence.replied.catch(() => undefined);
    void within(answered, patienceMs).then(() => fence.drop());
  }

  /** Takes an iopub message; false when no fence waits for it. */
  onIopub(parentId: string, message: JupyterMessage): boolean {
    const resolve = this.#waiting.get(parentId);
    if (!resolve) return false;
    const isStatus = message.header.msg_type === "status";
    if (isStatus && message.content["execution_state"] === "idle") resolve();
    return true;
  }
}
