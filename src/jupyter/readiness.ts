/**
 * When a kernel counts as ready: it has answered a `kernel_info_request`, and a
 * message has come in on IOPub. A publisher takes a subscription up some time
 * after we sent it and drops without a word what it publishes before, so only
 * a message that arrived proves that no output of the first cell will be lost.
 */

import { defer, within, TIMED_OUT } from "../async.ts";
import type { KernelInfoReply } from "./message.ts";
import type { PendingRequest } from "./pending-replies.ts";

/** How long the kernel may take to answer before it is asked on control too, which a busy kernel still reads. */
const ANSWER_WAIT_MS = 250;
/** First wait for an IOPub message after an answer; doubles up to {@link ANSWER_WAIT_MS}. */
const STATUS_WAIT_MS = 10;

/** One start: the owner reports what happens, {@link Readiness.prove} asks. */
export class Readiness {
  readonly #answered = defer<KernelInfoReply>();
  readonly #live = defer<void>();
  #missing = new Set(["kernel_info_reply", "iopub"]);

  /** A message came in on IOPub; whose does not matter, since we subscribe to all. */
  noteIopub(): void {
    this.#missing.delete("iopub");
    this.#live.resolve();
  }

  /** The kernel can't become ready; {@link Readiness.prove} rejects with `error`. */
  fail(error: Error): void {
    this.#answered.reject(error);
    this.#live.reject(error);
  }

  /** What has not been seen so far. */
  get missing(): string {
    return [...this.#missing].join(" and ");
  }

  /** Asks through `probe` until both proofs are there; has no time limit of its own. */
  async prove(probe: (channel: "shell" | "control") => PendingRequest): Promise<KernelInfoReply> {
    const probes: PendingRequest[] = [];
    const ask = (channel: "shell" | "control") => {
      const request = probe(channel);
      probes.push(request);
      request.reply.then((reply) => this.#noteAnswer(reply.content), this.#answered.reject);
    };
    try {
      for (let round = 0; ; round += 1) {
        ask("shell");
        if (round > 0) ask("control");
        await within(this.#answered.promise, ANSWER_WAIT_MS);
        const wait = Math.min(STATUS_WAIT_MS * 2 ** round, ANSWER_WAIT_MS);
        const both = Promise.all([this.#answered.promise, this.#live.promise]);
        const proof = await within(both, wait);
        if (proof !== TIMED_OUT) return proof[0];
      }
    } finally {
      for (const request of probes) request.forget();
    }
  }

  #noteAnswer(content: KernelInfoReply): void {
    this.#missing.delete("kernel_info_reply");
    this.#answered.resolve(content);
  }
}
