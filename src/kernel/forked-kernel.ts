/**
 * A kernel that the fork server's template has forked: the template sends its
 * signals and tells how it ends, and its stderr comes over a socket.
 */

import { defer, within } from "../async.ts";
import { debug } from "../log.ts";
import { isSameProcess, processStartTime } from "../process-identity.ts";
import {
  describeExit,
  ForkServerUnavailableError,
  KernelStartError,
  withLastWords,
  type KernelExit,
} from "./errors.ts";
import { DRAIN_MS, type KernelProcess, type ReadyLine } from "./process.ts";
import { TextTail } from "./text-tail.ts";

/** The template's answer to a request to fork. */
export interface ForkReply {
  fork_id: string;
  pid: number;
}

/** Sends a request to the template; rejects with {@link ForkServerUnavailableError}. */
export type ForkServerRequest = (op: string, fields: object) => Promise<unknown>;

/** One forked kernel. */
export class ForkedKernel implements KernelProcess {
  readonly pid: number;
  readonly #startTime: string | undefined;
  readonly #forkId: string;
  readonly #stderr: StderrSocket;
  readonly #ready = defer<ReadyLine>();
  readonly #exit = defer<KernelExit>();
  readonly #request: ForkServerRequest;
  #ended = false;

  constructor(reply: ForkReply, stderr: StderrSocket, request: ForkServerRequest) {
    this.pid = reply.pid;
    this.#startTime = processStartTime(reply.pid);
    this.#forkId = reply.fork_id;
    this.#stderr = stderr;
    this.#request = request;
  }

  get ready(): Promise<ReadyLine> {
    return this.#ready.promise;
  }

  get exited(): Promise<KernelExit> {
    return this.#exit.promise;
  }

  /** Takes the template's word that the kernel can be used. */
  onReady(line: ReadyLine): void {
    this.#ready.resolve(line);
  }

  /** Takes the template's word that the kernel has ended; `failure` says why it never became ready. */
  onExit(exit: KernelExit, failure?: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#exit.resolve(exit);
    void this.#onLastWords(exit, failure);
  }

  async #onLastWords(exit: KernelExit, failure: string | undefined): Promise<void> {
    const stderrTail = await this.stderrTail();
    this.#stderr.close();
    const unexplained = `The kernel ended before it was ready: ${describeExit(exit)}.`;
    const message = failure ?? withLastWords(unexplained, stderrTail);
    this.#ready.reject(new KernelStartError(message, { stderrTail }));
  }

  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL", target: "process" | "group"): void {
    if (this.#ended) return;
    const fields = { fork_id: this.#forkId, signal: signal.slice(3), group: target === "group" };
    this.#request("signal", fields).catch((error) => {
      debug("fork-server", `the template did not send ${signal}`, error);
      this.#signalDirectly(signal, target);
    });
  }

  /** Without the template, which alone knows for sure whose the pid is. */
  #signalDirectly(signal: NodeJS.Signals, target: "process" | "group"): void {
    if (this.#startTime === undefined || !isSameProcess(this.pid, this.#startTime)) return;
    try {
      process.kill(target === "group" ? -this.pid : this.pid, signal);
    } catch (error) {
      debug("fork-server", `could not send ${signal} to ${this.pid}`, error);
    }
  }

  async stderrTail(): Promise<string> {
    if (this.#ended) await within(this.#stderr.ended, DRAIN_MS);
    return this.#stderr.text.trimEnd();
  }

  release(): void {
    this.#stderr.close();
  }
}

/** Where one kernel connects its stderr to; keeps the end of what comes. */
export class StderrSocket {
  readonly path: string;
  readonly #tail = new TextTail();
  readonly #ended = defer<void>();
  readonly #listener: { stop(closeActive?: boolean): void };

  /** @throws ForkServerUnavailableError when `path` can't be listened on. */
  constructor(path: string) {
    this.path = path;
    const decoder = new TextDecoder();
    try {
      const listener = Bun.listen({
        unix: path,
        socket: {
          data: (_socket, chunk) => this.#tail.push(decoder.decode(chunk, { stream: true })),
          close: () => this.#ended.resolve(),
        },
      });
      listener.unref();
      this.#listener = listener;
    } catch (error) {
      throw new ForkServerUnavailableError("no socket for a kernel's stderr", { cause: error });
    }
  }

  /** Resolves when the kernel has closed its side, and all of it has been read. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /** The end of what has come. */
  get text(): string {
    return this.#tail.text;
  }

  close(): void {
    this.#listener.stop(true);
  }
}
