/** One HTTP request whose body streams in, with a limit on silence. The only file here that opens connections. */

import { abortReason } from "../async.ts";
import { isLoopback } from "./address.ts";
import type { TlsOptions } from "./provider.ts";

/** A POST to be sent. */
export interface HttpCall {
  url: string;
  headers: Record<string, string>;
  body: string;
}

/** How to send it. */
export interface HttpOptions {
  signal: AbortSignal;
  idleTimeoutMs: number;
  proxy?: string | false;
  tls?: TlsOptions;
}

/** Nothing arrived for longer than allowed. */
export class IdleError extends Error {
  readonly idleMs: number;

  constructor(idleMs: number) {
    super(`nothing arrived for ${Math.round(idleMs / 1_000)} s`);
    this.idleMs = idleMs;
  }
}

/** A server of this machine is no matter for `HTTP_PROXY`, whatever `NO_PROXY` forgets. */
function proxyOf(url: string, proxy: string | false | undefined): { proxy?: string | false } {
  if (proxy !== undefined) return { proxy };
  return url.startsWith("http:") && isLoopback(url) ? { proxy: false } : {};
}

/** An open response. Dispose of it to close the connection, whatever state it is in. */
export class HttpStream {
  readonly #response: Response;
  readonly #watch: Watch;

  private constructor(response: Response, watch: Watch) {
    this.#response = response;
    this.#watch = watch;
  }

  /**
   * Sends `call` and resolves when the response's headers are here. Rejects with {@link IdleError},
   * with `fetch`'s own errors, or with the reason of the signal.
   */
  static async open(call: HttpCall, options: HttpOptions): Promise<HttpStream> {
    const watch = new Watch(options.signal, options.idleTimeoutMs);
    try {
      const response = await watch.race(
        fetch(call.url, {
          method: "POST",
          headers: { "user-agent": "prime-agent", ...call.headers },
          body: call.body,
          signal: watch.signal,
          // A redirect would carry the key to another host.
          redirect: "manual",
          // The watch has its own limit; Bun's would end quiet streams after five minutes.
          timeout: false,
          ...proxyOf(call.url, options.proxy),
          ...(options.tls?.ca ? { tls: { ca: options.tls.ca } } : {}),
        }),
      );
      watch.touch();
      return new HttpStream(response, watch);
    } catch (error) {
      watch.close();
      throw error;
    }
  }

  get status(): number {
    return this.#response.status;
  }

  get headers(): Headers {
    return this.#response.headers;
  }

  /** Gives the whole rest of the body `ms` to arrive. */
  endWithin(ms: number): void {
    this.#watch.endWithin(ms);
  }

  /** The body in pieces as they arrive. Rejects as {@link HttpStream.open} does. */
  async *chunks(): AsyncGenerator<Uint8Array, void, void> {
    const reader = this.#response.body?.getReader();
    if (!reader) return;
    for (;;) {
      const { done, value } = await this.#watch.race(reader.read());
      if (done) return;
      this.#watch.touch();
      if (value) yield value;
    }
  }

  /** The body as text, as much of it as arrives within `maxBytes` and without a fault. */
  async text(maxBytes: number): Promise<string> {
    const decoder = new TextDecoder();
    let text = "";
    let bytes = 0;
    for await (const chunk of this.chunks()) {
      bytes += chunk.length;
      text += decoder.decode(chunk, { stream: true });
      if (bytes >= maxBytes) break;
    }
    return text;
  }

  /** Closes the connection unless the body has ended. */
  [Symbol.dispose](): void {
    this.#watch.close();
  }
}

/** Ends a request when the caller's signal fires or when nothing happens for too long. */
class Watch {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #onAbort = () => this.#controller.abort(abortReason(this.#outer));
  #timer: ReturnType<typeof setTimeout>;
  #final = false;

  constructor(outer: AbortSignal, idleMs: number) {
    this.#outer = outer;
    if (outer.aborted) this.#onAbort();
    else outer.addEventListener("abort", this.#onAbort, { once: true });
    this.#timer = this.#limit(idleMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** Something arrived, so the time starts again. */
  touch(): void {
    if (!this.#final) this.#timer.refresh();
  }

  endWithin(ms: number): void {
    clearTimeout(this.#timer);
    this.#final = true;
    this.#timer = this.#limit(ms);
  }

  /** Settles as `work` does, or rejects with the watch's reason when that comes first. */
  race<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#controller;
    return new Promise<T>((resolve, reject) => {
      const listener = () => reject(signal.reason);
      if (signal.aborted) listener();
      else signal.addEventListener("abort", listener, { once: true });
      work.then(resolve, reject).finally(() => signal.removeEventListener("abort", listener));
    });
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#outer.removeEventListener("abort", this.#onAbort);
    this.#controller.abort(new Error("the request is over"));
  }

  #limit(ms: number) {
    return setTimeout(() => this.#controller.abort(new IdleError(ms)), ms);
  }
}
