/**
 * The host's side of the fork server: a template Python process that has paid
 * the imports and forks ready kernels. Newline-delimited JSON over two
 * inherited pipes; a fork id, never a bare pid, names a child.
 *
 * Every failure is a {@link ForkServerUnavailableError}, on which the caller
 * starts the kernel directly instead.
 */

import { closeSync, writeSync } from "node:fs";
import { join } from "node:path";
import { defer, within, TIMED_OUT, type Deferred } from "../async.ts";
import { debug } from "../log.ts";
import { ForkServerUnavailableError, KernelStartError, type KernelExit } from "./errors.ts";
import type { KernelProcess, LaunchConfig, ReadyLine } from "./process.ts";
import { signalName } from "./process.ts";
import { TextTail, drainInto } from "./text-tail.ts";

/** The first answer includes the template's own start; a loaded machine may need long. */
const FORK_TIMEOUT_MS = 30_000;
/** A template that does not pass a signal on is disposed of, which ends its kernels. */
const SIGNAL_TIMEOUT_MS = 2_000;

interface ForkReply {
  fork_id: string;
  pid: number;
}

interface ServerLine extends Partial<ReadyLine> {
  id?: number;
  ok?: boolean;
  error?: string;
  event?: "ready" | "exit";
  fork_id?: string;
  code?: number | null;
  signal?: number | string | null;
}

/** One template process; it ends with {@link dispose}, or when this host ends. */
export class ForkServer {
  readonly #child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly #requestFd: number;
  readonly #replies = new Map<number, Deferred<ServerLine>>();
  readonly #kernels = new Map<string, ForkedKernel>();
  readonly #early = new Map<string, ServerLine[]>();
  readonly #stderr = new TextTail();
  #nextId = 1;
  #dead: string | undefined;

  /** Starts a template; it is usable at once, requests wait until it is up. */
  constructor(python: string, launcher: string, env: Record<string, string>) {
    const config = JSON.stringify({ fork_server: true, request_fd: 3, response_fd: 4 });
    try {
      this.#child = Bun.spawn([python, "-I", launcher, config], {
        cwd: "/",
        env: withLocale(env),
        detached: true,
        stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
        onExit: (_process, code, signal) =>
          this.#end(
            signal ? `it was killed by ${signalName(signal)}` : `it exited with code ${code}`,
          ),
      });
    } catch (error) {
      throw new ForkServerUnavailableError(`${python} could not be started`, { cause: error });
    }
    this.#child.unref();
    this.#requestFd = this.#child.stdio[3] as unknown as number;
    void drainInto(this.#stderr, this.#child.stderr);
    void this.#readLines(this.#child.stdio[4] as unknown as number);
  }

  /** Whether forks can be asked for. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** The template's own process id. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Forks a kernel. `config` and `env` are the kernel's own; its stderr is kept like a spawned kernel's. */
  async fork(config: LaunchConfig, env: Record<string, string>): Promise<KernelProcess> {
    const stderr = new TextTail();
    const stderrPath = join(config.kernel_dir, "stderr");
    const listener = listenForStderr(stderrPath, stderr);
    try {
      const reply = (await this.#request("fork", {
        config: { ...config, env: withLocale(env), stderr_socket: stderrPath },
      })) as ServerLine & ForkReply;
      const kernel = new ForkedKernel(reply, stderr, listener, (op, fields) =>
        this.#request(op, fields),
      );
      this.#kernels.set(reply.fork_id, kernel);
      for (const line of this.#early.get(reply.fork_id) ?? []) this.#deliver(kernel, line);
      this.#early.delete(reply.fork_id);
      return kernel;
    } catch (error) {
      listener.stop(true);
      throw error;
    }
  }

  /** Ends the template and, with it, every kernel that it forked. */
  dispose(): void {
    if (this.#dead !== undefined) return;
    // The template sees the end of its request pipe, ends its children and exits.
    this.#end("it was disposed of");
  }

  async #request(op: string, fields: object): Promise<ServerLine> {
    if (this.#dead !== undefined) throw new ForkServerUnavailableError(this.#dead);
    const id = this.#nextId++;
    const reply = defer<ServerLine>();
    this.#replies.set(id, reply);
    try {
      writeAll(this.#requestFd, `${JSON.stringify({ id, op, ...fields })}\n`);
    } catch (error) {
      this.#replies.delete(id);
      throw new ForkServerUnavailableError("its request pipe is closed", { cause: error });
    }
    const timeoutMs = op === "fork" ? FORK_TIMEOUT_MS : SIGNAL_TIMEOUT_MS;
    const line = await within(reply.promise, timeoutMs);
    if (line === TIMED_OUT) {
      this.dispose();
      throw new ForkServerUnavailableError(`no answer within ${timeoutMs / 1000} s`);
    }
    if (!line.ok) throw new ForkServerUnavailableError(line.error ?? "it refused the request");
    return line;
  }

  async #readLines(fd: number): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    try {
      for await (const chunk of Bun.file(fd).stream()) {
        text += decoder.decode(chunk, { stream: true });
        const lines = text.split("\n");
        text = lines.pop() ?? "";
        for (const line of lines) this.#onLine(JSON.parse(line) as ServerLine);
      }
    } catch (error) {
      debug("fork-server", "its responses can't be read", error);
    }
    this.#end("its response pipe closed");
  }

  #onLine(line: ServerLine): void {
    if (line.id !== undefined) {
      this.#replies.get(line.id)?.resolve(line);
      this.#replies.delete(line.id);
      return;
    }
    if (line.fork_id === undefined) return;
    const kernel = this.#kernels.get(line.fork_id);
    if (kernel) this.#deliver(kernel, line);
    // A child can be ready, or gone, before the answer to its fork request has been read.
    else this.#early.set(line.fork_id, [...(this.#early.get(line.fork_id) ?? []), line]);
  }

  #deliver(kernel: ForkedKernel, line: ServerLine): void {
    if (line.event === "ready") kernel.onReady(line);
    if (line.event === "exit") {
      kernel.onExit({ code: line.code ?? null, signal: signalName(line.signal) }, line.error);
      this.#kernels.delete(line.fork_id as string);
    }
  }

  #end(reason: string): void {
    if (this.#dead !== undefined) return;
    const tail = this.#stderr.lines(5);
    this.#dead = tail ? `${reason}: ${tail}` : reason;
    const error = new ForkServerUnavailableError(this.#dead);
    for (const reply of this.#replies.values()) reply.reject(error);
    this.#replies.clear();
    // Its children watch the same pipe: without the template nobody can tell how they end.
    const exit = { code: null, signal: null, reason: `its fork server ended (${reason})` };
    for (const kernel of this.#kernels.values()) kernel.onExit(exit);
    this.#kernels.clear();
    closeSync(this.#requestFd);
  }
}

class ForkedKernel implements KernelProcess {
  readonly pid: number;
  readonly #forkId: string;
  readonly #stderr: TextTail;
  readonly #listener: { stop(closeActive?: boolean): void };
  readonly #ready = defer<ReadyLine>();
  readonly #exit = defer<KernelExit>();
  readonly #request: (op: string, fields: object) => Promise<unknown>;
  #ended = false;

  constructor(
    reply: ForkReply,
    stderr: TextTail,
    listener: { stop(closeActive?: boolean): void },
    request: (op: string, fields: object) => Promise<unknown>,
  ) {
    this.pid = reply.pid;
    this.#forkId = reply.fork_id;
    this.#stderr = stderr;
    this.#listener = listener;
    this.#request = request;
  }

  get ready(): Promise<ReadyLine> {
    return this.#ready.promise;
  }

  get exited(): Promise<KernelExit> {
    return this.#exit.promise;
  }

  onReady(line: ServerLine): void {
    this.#ready.resolve(line as ReadyLine);
  }

  /** `failure` says why it never became ready. */
  onExit(exit: KernelExit, failure?: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#listener.stop(true);
    this.#exit.resolve(exit);
    this.#ready.reject(
      new KernelStartError(failure ?? "The forked kernel ended before it was ready.", {
        stderrTail: this.stderrTail(),
      }),
    );
  }

  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL", target: "process" | "group"): void {
    if (this.#ended) return;
    const fields = { fork_id: this.#forkId, signal: signal.slice(3), group: target === "group" };
    this.#request("signal", fields).catch((error) =>
      debug("fork-server", `could not send ${signal}`, error),
    );
  }

  stderrTail(): string {
    return this.#stderr.lines();
  }

  release(): void {
    this.#listener.stop(true);
  }
}

/**
 * Where no locale is set, Python sets one as it starts (PEP 538). A fork has the template's for good, so
 * it is set for both beforehand, as Python would do it.
 */
function withLocale(env: Record<string, string>): Record<string, string> {
  const { LC_ALL, LC_CTYPE, LANG } = env;
  const locale = LC_ALL || LC_CTYPE || LANG || "C";
  const isCoerced = !LC_ALL && (locale === "C" || locale === "POSIX");
  return isCoerced ? { ...env, LC_CTYPE: "C.UTF-8" } : env;
}

function listenForStderr(path: string, tail: TextTail): { stop(closeActive?: boolean): void } {
  const decoder = new TextDecoder();
  const listener = Bun.listen({
    unix: path,
    socket: {
      data: (_socket, chunk) => tail.push(decoder.decode(chunk, { stream: true })),
    },
  });
  listener.unref();
  return listener;
}

/** Writes all of a short text; the pipe is written to by nobody else, so order is kept. */
function writeAll(fd: number, text: string): void {
  const bytes = Buffer.from(text);
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      // The template reads on its own; a full pipe empties in microseconds.
      if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
      Bun.sleepSync(1);
    }
  }
}
