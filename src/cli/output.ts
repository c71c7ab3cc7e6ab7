/**
 * stdout and stderr of this program. Writes are kept in order and drained
 * before the program ends; a reader that went away ends the run.
 */

import { debug } from "../log.ts";

/** A byte sink with its terminal facts. */
export interface OutputStream {
  readonly isTerminal: boolean;
  /** Queues text. Never throws; text for a reader that is gone is dropped. */
  write(text: string): void;
  /** Resolves when everything queued has been handed to the system, or the reader is gone. */
  drain(): Promise<void>;
}

/** Both streams, and the news that stdout's reader is gone. */
export interface Terminal {
  readonly stdout: OutputStream;
  readonly stderr: OutputStream;
  /** Fires when the reader of stdout closed its end, or stdout can't be written. */
  readonly readerGone: AbortSignal;
}

/** The process's own streams. */
export function openTerminal(): Terminal {
  const gone = new AbortController();
  return {
    stdout: new ProcessStream(process.stdout, () => gone.abort()),
    stderr: new ProcessStream(process.stderr, () => undefined),
    readerGone: gone.signal,
  };
}

class ProcessStream implements OutputStream {
  readonly isTerminal: boolean;
  readonly #stream: NodeJS.WriteStream;
  #pending: Promise<void> = Promise.resolve();
  #broken = false;

  constructor(stream: NodeJS.WriteStream, onBroken: () => void) {
    this.#stream = stream;
    this.isTerminal = stream.isTTY === true;
    stream.on("error", (error: NodeJS.ErrnoException) => {
      debug("cli", "an output stream failed", error);
      if (this.#broken) return;
      this.#broken = true;
      onBroken();
    });
  }

  write(text: string): void {
    if (this.#broken || text === "") return;
    const written = new Promise<void>((resolve) => this.#stream.write(text, () => resolve()));
    this.#pending = Promise.all([this.#pending, written]).then(() => undefined);
  }

  async drain(): Promise<void> {
    if (!this.#broken) await Promise.race([this.#pending, this.#untilBroken()]);
  }

  #untilBroken(): Promise<void> {
    return new Promise((resolve) => this.#stream.once("error", () => resolve()));
  }
}

/** Whether to colour a stream: flag, then NO_COLOR, CI and TERM=dumb, then whether it is a terminal. */
export function wantsColor(
  stream: OutputStream,
  choice: "auto" | "always" | "never",
  variables: Readonly<Record<string, string>>,
): boolean {
  if (choice !== "auto") return choice === "always";
  if (variables["NO_COLOR"] || variables["CI"] || variables["TERM"] === "dumb") return false;
  return stream.isTerminal;
}
