/**
 * The two test Pythons (built by `scripts/test-env`) and the scripted Python
 * peers in `test/support/*.py`.
 */

import { describe } from "bun:test";
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";

/** `newest` and `oldest` end of the supported range; see `requirements-*.txt`. */
export type PythonName = "newest" | "oldest";

const PROJECT_ROOT = resolve(import.meta.dir, "../..");

/** Absolute path of a test interpreter, whether or not it has been built. */
export function pythonFor(name: PythonName): string {
  return join(PROJECT_ROOT, ".cache/python", name, "bin/python");
}

/**
 * `describe` for tests that need a test Python. Without it they are skipped with a printed reason,
 * and under `CI=true` they fail: a suite that silently runs nothing proves nothing.
 */
export function describeWithPython(name: PythonName, title: string, body: () => void): void {
  if (existsSync(pythonFor(name))) return describe(title, body);
  const reason = `${title}: ${pythonFor(name)} is missing; run scripts/test-env`;
  if (process.env.CI === "true") throw new Error(reason);
  console.warn(`skipped: ${reason}`);
  describe.skip(title, body);
}

/**
 * A Python script of `test/support/` that talks in lines: it prints lines, we read them in order with
 * {@link PythonPeer.line}, and write lines to its stdin. A script ends when its stdin does, so that
 * nothing outlives a killed test run.
 */
export class PythonPeer implements AsyncDisposable {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "pipe">;
  readonly #lines: AsyncIterator<string>;
  readonly #stderr: Promise<string>;

  constructor(script: string, args: readonly string[] = [], name: PythonName = "newest") {
    this.#process = Bun.spawn(
      [pythonFor(name), "-u", join(PROJECT_ROOT, "test/support", script), ...args],
      { stdin: "pipe", stdout: "pipe", stderr: "pipe" },
    );
    this.#lines = linesOf(this.#process.stdout);
    this.#stderr = new Response(this.#process.stderr).text();
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** The next line of its stdout, without the line break; rejects with its stderr when there is none. */
  async line(): Promise<string> {
    const next = await this.#lines.next();
    if (!next.done) return next.value;
    throw new Error(`the Python peer ended (${await this.exited()}): ${await this.#stderr}`);
  }

  /** The next line, parsed as JSON. */
  async json<T>(): Promise<T> {
    return JSON.parse(await this.line()) as T;
  }

  /** Writes one line to its stdin. */
  tell(line: string): void {
    this.#process.stdin.write(`${line}\n`);
    this.#process.stdin.flush();
  }

  kill(signal: NodeJS.Signals = "SIGKILL"): void {
    this.#process.kill(signal);
  }

  /** Its exit code, or 128 + signal number, once it has ended. */
  exited(): Promise<number> {
    return this.#process.exited;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill();
    await this.exited();
  }
}

async function* linesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    yield* lines;
  }
  if (rest) yield rest;
}
