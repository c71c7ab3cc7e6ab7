/**
 * A kernel's operating-system process: how it is started directly, when it is
 * ready, how it ends, and what it said last. The fork server offers the same
 * {@link KernelProcess} for forked kernels.
 */

import { closeSync } from "node:fs";
import { constants } from "node:os";
import { defer, delay, within } from "../async.ts";
import { debug } from "../log.ts";
import type { BootstrapOptions } from "./bootstrap.ts";
import { KernelStartError, withLastWords, type KernelExit } from "./errors.ts";
import { KernelGuard } from "./guard.ts";
import { drainInto, TextTail } from "./text-tail.ts";

/** After the exit, how long what is still in the pipes is waited for. */
export const DRAIN_MS = 200;

/** What `kernel/launcher.py` is told, as its one JSON argument. */
export interface LaunchConfig {
  connection_file: string;
  /** The folder to work in; a missing one is replaced and reported in the ready line. */
  cwd: string;
  /** Entries that go last on `sys.path`. */
  paths: string[];
  /** The private folder, which the launcher removes when the host has died. */
  kernel_dir: string;
  /** What the launcher may install before it is ready, which saves a cell; absent when something is restored first. */
  bootstrap?: BootstrapOptions;
}

/** What the launcher reports once its sockets are bound. */
export interface ReadyLine {
  pid: number;
  /** When the process started, on a clock that only the kernel's own Python side reads. */
  start_time: number;
  cwd: string;
  cwd_missing?: string;
  python: string;
  ipykernel: string;
  ipython: string;
  boot_ms: number;
  /** Whether `bootstrap` has been installed; else a cell does it. */
  bootstrapped?: boolean;
}

/** A running kernel process, started directly or forked. */
export interface KernelProcess {
  readonly pid: number;
  /** Resolves when the sockets are bound; rejects with {@link KernelStartError} when that can't happen any more. */
  readonly ready: Promise<ReadyLine>;
  /** Resolves once, when the process has ended. Never rejects. */
  readonly exited: Promise<KernelExit>;
  /** Signals the process, or its whole group; harmless when it has ended. */
  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL", target: "process" | "group"): void;
  /** The end of what the process wrote to stderr; once it has ended, of all of that. */
  stderrTail(): Promise<string>;
  /** Releases what ties the process to this host: a kernel that still lives ends by itself. */
  release(): void;
}

/** What is started, and with which environment. */
export interface SpawnOptions {
  python: string;
  launcher: string;
  config: LaunchConfig;
  env: Record<string, string>;
}

/** Starts `python launcher config` as leader of its own session, with pipes for "ready" and "host died". */
export function spawnKernel(options: SpawnOptions): KernelProcess {
  const exit = defer<KernelExit>();
  const config = { ...options.config, ready_fd: 3, parent_fd: 4 };
  let child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  try {
    child = Bun.spawn([options.python, "-I", options.launcher, JSON.stringify(config)], {
      // The launcher itself changes into the wanted folder: one that is gone must not look like a missing program.
      cwd: "/",
      env: options.env,
      detached: true,
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"],
      onExit: (_process, code, signal) => exit.resolve({ code, signal: signalName(signal) }),
    });
  } catch (error) {
    throw new KernelStartError(`The Python at ${options.python} could not be started.`, {
      cause: error,
    });
  }
  return new SpawnedKernel(child, exit.promise, options);
}

class SpawnedKernel implements KernelProcess {
  readonly pid: number;
  readonly ready: Promise<ReadyLine>;
  readonly exited: Promise<KernelExit>;
  readonly #child: Bun.Subprocess<"ignore", "ignore", "pipe">;
  readonly #stderr = new TextTail();
  readonly #stderrDrained: Promise<void>;
  readonly #options: SpawnOptions;
  #guard: KernelGuard | undefined;
  #parentFd: number | undefined;
  #ended = false;

  constructor(
    child: Bun.Subprocess<"ignore", "ignore", "pipe">,
    exited: Promise<KernelExit>,
    options: SpawnOptions,
  ) {
    this.pid = child.pid;
    this.#child = child;
    this.#options = options;
    this.exited = exited.then((exit) => this.#end(exit));
    this.#parentFd = child.stdio[4] as unknown as number;
    this.#stderrDrained = drainInto(this.#stderr, child.stderr);
    this.ready = this.#awaitReady(child.stdio[3] as unknown as number);
    this.ready.then(
      (line) => setImmediate(() => this.#startGuard(line.start_time)),
      () => undefined,
    );
  }

  /** After `ready`, so that it takes no time from the start. */
  #startGuard(startTime: number): void {
    if (this.#ended || this.#parentFd === undefined) return;
    const kernel_dir = this.#options.config.kernel_dir;
    this.#guard = new KernelGuard(this.#options, {
      pid: this.pid,
      start_time: startTime,
      kernel_dir,
    });
  }

  async #end(exit: KernelExit): Promise<KernelExit> {
    this.#ended = true;
    this.release();
    await this.#guard?.release();
    return exit;
  }

  async #awaitReady(fd: number): Promise<ReadyLine> {
    // A background child of a broken interpreter could hold the pipe open, so the exit ends the wait too.
    const ended = this.exited.then(() => delay(DRAIN_MS)).then(() => "");
    const line = await Promise.race([readLine(fd), ended]);
    const ready = parseReadyLine(line);
    if (typeof ready !== "string") return ready;
    const exit = await this.exited;
    const stderrTail = await this.stderrTail();
    const how = exit.signal ? `was killed by ${exit.signal}` : `exited with code ${exit.code}`;
    const unexplained = `The kernel process ${how} before it was ready.`;
    throw new KernelStartError(ready || withLastWords(unexplained, stderrTail), { stderrTail });
  }

  signal(signal: "SIGINT" | "SIGTERM" | "SIGKILL", target: "process" | "group"): void {
    if (this.#ended) return;
    try {
      process.kill(target === "group" ? -this.pid : this.pid, signal);
    } catch (error) {
      debug("kernel", `could not send ${signal} to ${this.pid}`, error);
    }
  }

  async stderrTail(): Promise<string> {
    if (this.#ended) await within(this.#stderrDrained, DRAIN_MS);
    return this.#stderr.text.trimEnd();
  }

  release(): void {
    this.#child.unref();
    if (this.#parentFd === undefined) return;
    closeSync(this.#parentFd);
    this.#parentFd = undefined;
  }
}

/** The parsed ready line, or the error text it carries ("" when there is none). */
export function parseReadyLine(line: string): ReadyLine | string {
  if (!line.trim()) return "";
  try {
    const value = JSON.parse(line) as { ready?: boolean; error?: string } & ReadyLine;
    return value.ready ? value : (value.error ?? "");
  } catch (error) {
    debug("kernel", "the ready line is not JSON", error);
    return "";
  }
}

async function readLine(fd: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  try {
    for await (const chunk of Bun.file(fd).stream()) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes("\n") || text.length > 65_536) break;
    }
  } catch (error) {
    debug("kernel", "the ready pipe could not be read", error);
  }
  return text.split("\n", 1)[0] ?? "";
}

/** The name of a signal, which Bun gives as a name or as a number. */
export function signalName(signal: number | string | null | undefined): string | null {
  if (signal === null || signal === undefined) return null;
  if (typeof signal === "string") return signal;
  return (
    Object.entries(constants.signals).find(([, number]) => number === signal)?.[0] ??
    `signal ${signal}`
  );
}
