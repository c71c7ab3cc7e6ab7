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
import { ForkServerUnavailableError } from "./errors.ts";
import { ForkedKernel, StderrSocket, type ForkReply } from "./forked-kernel.ts";
import type { KernelProcess, LaunchConfig, ReadyLine } from "./process.ts";
import { signalName } from "./process.ts";
import { TextTail, drainInto } from "./text-tail.ts";

/** The first answer includes the template's own start; a loaded machine may need long. */
const FORK_TIMEOUT_MS = 30_000;
/** A signal that the template has not passed on by then is sent from here. */
const SIGNAL_TIMEOUT_MS = 2_000;
/** How long a template whose pipes are closed has to say why. */
const LAST_WORDS_MS = 2_000;

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
  readonly #stderrRead: Promise<void>;
  #nextId = 1;
  /** Set once the template has ended: what to tell whoever asks for something. */
  #failure: Promise<ForkServerUnavailableError> | undefined;
  #isStuck = false;

  /** Starts a template; it is usable at once, requests wait until it is up. */
  constructor(python: string, launcher: string, env: Record<string, string>) {
    const config = JSON.stringify({ fork_server: true, request_fd: 3, response_fd: 4 });
    try {
      this.#child = Bun.spawn([python, "-I", launcher, config], {
        cwd: "/",
        env: withLocale(env),
        detached: true,
        stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
        onExit: (_process, code, signal) => this.#end(howItEnded(code, signal)),
      });
    } catch (error) {
      throw new ForkServerUnavailableError(`${python} could not be started`, { cause: error });
    }
    this.#child.unref();
    this.#requestFd = this.#child.stdio[3] as unknown as number;
    this.#stderrRead = drainInto(this.#stderr, this.#child.stderr);
    void this.#readLines(this.#child.stdio[4] as unknown as number);
  }

  /** Whether forks can be asked for. */
  get alive(): boolean {
    return this.#failure === undefined && !this.#isStuck;
  }

  /** The template's own process id. */
  get pid(): number {
    return this.#child.pid;
  }

  /** Forks a kernel. `config` and `env` are the kernel's own; its stderr is kept like a spawned kernel's. */
  async fork(config: LaunchConfig, env: Record<string, string>): Promise<KernelProcess> {
    const stderr = new StderrSocket(join(config.kernel_dir, "stderr"));
    try {
      const reply = (await this.#request("fork", {
        config: { ...config, env: withLocale(env), stderr_socket: stderr.path },
      })) as ServerLine & ForkReply;
      const kernel = new ForkedKernel(reply, stderr, (op, fields) => this.#request(op, fields));
      this.#kernels.set(reply.fork_id, kernel);
      for (const line of this.#early.get(reply.fork_id) ?? []) this.#deliver(kernel, line);
      this.#early.delete(reply.fork_id);
      return kernel;
    } catch (error) {
      stderr.close();
      throw error;
    }
  }

  /** Ends the template and, with it, every kernel that it forked. */
  dispose(): void {
    // The template sees the end of its request pipe, ends its children and exits.
    const reason = "it was disposed of";
    this.#end(reason, Promise.resolve(new ForkServerUnavailableError(reason)));
  }

  async #request(op: string, fields: object): Promise<ServerLine> {
    if (this.#failure) throw await this.#failure;
    const id = this.#nextId++;
    const reply = defer<ServerLine>();
    this.#replies.set(id, reply);
    try {
      writeAll(this.#requestFd, `${JSON.stringify({ id, op, ...fields })}\n`);
    } catch (error) {
      debug("fork-server", "a request could not be written", error);
      this.#end("its request pipe is closed");
    }
    const timeoutMs = op === "fork" ? FORK_TIMEOUT_MS : SIGNAL_TIMEOUT_MS;
    const line = await within(reply.promise, timeoutMs);
    if (line === TIMED_OUT) {
      this.#replies.delete(id);
      // Not disposed of, which would end kernels that may do well; it only gets no more to fork.
      if (op === "fork") this.#isStuck = true;
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
      const reply = this.#replies.get(line.id);
      if (reply) reply.resolve(line);
      else this.#endUnwanted(line);
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
    if (line.event === "ready") kernel.onReady(line as ReadyLine);
    if (line.event === "exit") {
      kernel.onExit({ code: line.code ?? null, signal: signalName(line.signal) }, line.error);
      this.#kernels.delete(line.fork_id as string);
    }
  }

  /** A kernel that was forked after its request had been given up belongs to nobody. */
  #endUnwanted({ fork_id }: ServerLine): void {
    if (fork_id === undefined) return;
    this.#early.delete(fork_id);
    this.#request("signal", { fork_id, signal: "KILL", group: true }).catch((error) =>
      debug("fork-server", "a kernel that was forked too late could not be ended", error),
    );
  }

  #end(reason: string, known?: Promise<ForkServerUnavailableError>): void {
    if (this.#failure) return;
    const failure = known ?? this.#lastWords(reason);
    this.#failure = failure;
    for (const reply of this.#replies.values()) void failure.then(reply.reject);
    this.#replies.clear();
    // Its children watch the same pipe: without the template nobody can tell how they end.
    const exit = { code: null, signal: null, reason: `its fork server ended (${reason})` };
    for (const kernel of this.#kernels.values()) kernel.onExit(exit);
    this.#kernels.clear();
    closeSync(this.#requestFd);
  }

  /** Waits for the exit and for stderr, which come by other ways than the end of the pipes. */
  async #lastWords(reason: string): Promise<ForkServerUnavailableError> {
    await within(Promise.all([this.#child.exited, this.#stderrRead]), LAST_WORDS_MS);
    const { exitCode, signalCode } = this.#child;
    const hasEnded = exitCode !== null || signalCode !== null;
    const how = hasEnded ? howItEnded(exitCode, signalCode) : reason;
    const tail = this.#stderr.lines(5);
    return new ForkServerUnavailableError(tail ? `${how}: ${tail}` : how);
  }
}

function howItEnded(code: number | null, signal: number | string | null): string {
  return signal === null ? `it exited with code ${code}` : `it was killed by ${signalName(signal)}`;
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
