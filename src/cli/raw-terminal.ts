/**
 * The keyboard of the terminal in raw mode. Whatever happens, the terminal gets its own mode
 * back: when this is closed, when the program ends or crashes, and while it is stopped.
 */

import { writeSync } from "node:fs";
import { debug } from "../log.ts";
import { KeyDecoder, type Key } from "./key-decoder.ts";

/** Who hears of what happens at the terminal. */
export interface TerminalListener {
  onKeys(keys: Key[]): void;
  /** The window has another size. */
  onResize(): void;
  /** The program is told to stop, as by Ctrl-Z: clear up, then {@link RawTerminal.suspend}. */
  onStop(): void;
  /** The program was stopped and goes on: the screen may hold anything. */
  onContinue(): void;
  /** Nobody is there any more. */
  onHangup(): void;
}

const PASTE_ON = "\x1b[?2004h";
const PASTE_OFF = "\x1b[?2004l";

/** After such a silence an escape byte is the Escape key. */
const ESCAPE_WAIT_MS = 50;

/** When a stopped program that was not stopped after all takes the terminal back. */
const STOP_WAIT_MS = 200;

/** See the head of this file. Close it to give the terminal back. */
export class RawTerminal implements Disposable {
  readonly #listener: TerminalListener;
  readonly #decoder = new KeyDecoder();
  readonly #handlers: Array<() => void> = [];
  readonly #onStop = () => this.#listener.onStop();
  #isRaw = false;
  #escapeTimer: ReturnType<typeof setTimeout> | undefined;
  #stopTimer: ReturnType<typeof setTimeout> | undefined;

  /** Takes the terminal. stdin and stdout must be one. */
  constructor(listener: TerminalListener) {
    this.#listener = listener;
    this.#listen(process.stdin, "data", (bytes: Buffer) => this.#onData(bytes));
    this.#listen(process.stdin, "end", () => listener.onHangup());
    this.#listen(process.stdout, "resize", () => listener.onResize());
    process.on("SIGTSTP", this.#onStop);
    this.#listen(process, "SIGCONT", () => this.#onContinue());
    this.#listen(process, "exit", () => this.#giveBack());
    this.#take();
    process.stdin.resume();
  }

  /** Gives the terminal back and stops the program, and those that were started with it, until `fg`. */
  suspend(): void {
    this.#giveBack();
    process.removeListener("SIGTSTP", this.#onStop);
    process.kill(0, "SIGTSTP");
    // Where nobody can let it go on, the system does not stop it.
    this.#stopTimer = setTimeout(() => this.#onContinue(), STOP_WAIT_MS);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#escapeTimer);
    clearTimeout(this.#stopTimer);
    this.#giveBack();
    process.removeListener("SIGTSTP", this.#onStop);
    for (const remove of this.#handlers.splice(0)) remove();
    process.stdin.pause();
  }

  #onContinue(): void {
    clearTimeout(this.#stopTimer);
    process.removeListener("SIGTSTP", this.#onStop);
    process.on("SIGTSTP", this.#onStop);
    // The shell may have changed the mode meanwhile: set it whatever we believe.
    this.#isRaw = false;
    process.stdin.setRawMode(false);
    this.#take();
    this.#listener.onContinue();
  }

  #onData(bytes: Buffer): void {
    clearTimeout(this.#escapeTimer);
    this.#tell(this.#decoder.push(bytes));
    if (!this.#decoder.isWaiting) return;
    this.#escapeTimer = setTimeout(() => this.#tell(this.#decoder.flush()), ESCAPE_WAIT_MS);
  }

  #tell(keys: Key[]): void {
    if (keys.length > 0) this.#listener.onKeys(keys);
  }

  #take(): void {
    if (this.#isRaw) return;
    process.stdin.setRawMode(true);
    this.#isRaw = true;
    writeNow(PASTE_ON);
  }

  #giveBack(): void {
    if (!this.#isRaw) return;
    this.#isRaw = false;
    writeNow(PASTE_OFF);
    try {
      process.stdin.setRawMode(false);
    } catch (error) {
      debug("terminal", "the terminal is gone", error);
    }
  }

  #listen(source: NodeJS.EventEmitter, event: string, handler: (...args: any[]) => void): void {
    source.on(event, handler);
    this.#handlers.push(() => source.removeListener(event, handler));
  }
}

/** Writes to the terminal before anything else happens, also while the program ends. */
function writeNow(text: string): void {
  try {
    writeSync(1, text);
  } catch (error) {
    debug("terminal", "the terminal is gone", error);
  }
}
