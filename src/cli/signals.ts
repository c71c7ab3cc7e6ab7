/** Signals from outside: the first aborts the run, a second one ends the program at once. */

import { AbortedError, type AbortCause } from "../errors.ts";

/** How long an aborted run may take to end its kernel in good order before it is killed. */
export const ABORTED_CLEANUP_MS = 2_000;

/** Exit codes by signal: 128 and the signal's number. */
const CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/** The run's abort signal, and which exit code the reason for it stands for. */
export class Interruption {
  readonly #controller = new AbortController();
  #exitCode: number | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isListening = false;

  /** Fires with an AbortedError that says why. */
  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  /** The exit code of what aborted the run; undefined when nothing did. */
  get exitCode(): number | undefined {
    return this.#exitCode;
  }

  /** Aborts the run; the first cause wins. */
  abort(cause: AbortCause, exitCode: number): void {
    if (this.#exitCode !== undefined) return;
    this.#exitCode = exitCode;
    this.#controller.abort(new AbortedError(cause));
  }

  /** Aborts the run when its time is over. */
  startTimeout(ms: number): void {
    this.#timer = setTimeout(() => this.abort("timeout", 124), ms);
  }

  /** Listens for SIGINT, SIGTERM and SIGHUP. The program ends at once on the second. Harmless when repeated. */
  listen(): void {
    if (this.#isListening) return;
    this.#isListening = true;
    for (const [name, code] of Object.entries(CODES)) {
      process.on(name as NodeJS.Signals, () => {
        if (this.#exitCode !== undefined) process.exit(code);
        this.abort(name === "SIGINT" ? "user" : "signal", code);
      });
    }
  }

  /** Lets go of the timer. */
  stop(): void {
    clearTimeout(this.#timer);
  }
}
