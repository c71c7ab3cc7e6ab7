/**
 * The chat's side towards the person: one screen, one prompt line, one keyboard. Either it waits
 * for a line, or work goes on; then what is entered, and Ctrl-C, are for the work.
 */

import { join } from "node:path";
import { ChatScreen } from "./chat-screen.ts";
import type { Key } from "./key-decoder.ts";
import type { OutputStream } from "./output.ts";
import { PromptHistory } from "./prompt-history.ts";
import { PromptLine } from "./prompt-line.ts";
import { RawTerminal } from "./raw-terminal.ts";

/** Work that goes on. */
export interface ConsoleWork {
  /** Hears what is entered meanwhile; without it, that waits for its turn. */
  onEnter?(text: string): void;
  /** Ctrl-C. */
  onInterrupt(): void;
}

/** What a console works with. */
export interface ConsoleOptions {
  stdout: OutputStream;
  color: boolean;
  /** The program's folder, for the history. */
  home: string;
  /** Fires when the program is told to end. */
  signal: AbortSignal;
  /** What Tab makes of the text before the cursor. */
  complete(text: string): string;
  /** Tells the person something in a line of its own. */
  say(text: string): void;
  /** The terminal is gone. */
  onHangup(): void;
}

/** How long output waits to be written above a prompt, so that a fast stream does not redraw it each time. */
const REDRAW_MS = 40;

/** A window that does not tell its size, such as a serial line. */
const DEFAULT_SIZE = { columns: 80, rows: 24 };

/** See the head of this file. Close it to give the terminal back. */
export class ChatConsole implements Disposable {
  readonly screen: ChatScreen;
  readonly #options: ConsoleOptions;
  readonly #prompt: PromptLine;
  readonly #terminal: RawTerminal;
  #work: ConsoleWork | undefined;
  /** What was entered before anybody waited for it. */
  readonly #entered: string[] = [];
  /** Waits for the next line. */
  #waiting: ((line: string | undefined) => void) | undefined;
  /** Whether nothing was pressed since a Ctrl-C that asks for a second one. */
  #mayLeave = false;

  constructor(options: ConsoleOptions) {
    this.#options = options;
    this.screen = new ChatScreen({
      write: (text) => options.stdout.write(text),
      size: windowSize,
      color: options.color,
      later: (callback) => void setTimeout(callback, REDRAW_MS),
    });
    this.#prompt = new PromptLine({
      screen: this.screen,
      history: new PromptHistory(join(options.home, "history")),
      complete: options.complete,
      warn: (message) => options.say(`warning: ${message}`),
      listener: {
        onEnter: (text) => this.#onEnter(text),
        onInterrupt: () => this.#onInterrupt(),
        onEnd: () => this.#onEnd(),
        onSuspend: () => this.#onSuspend(),
      },
    });
    this.#terminal = new RawTerminal({
      onKeys: (keys) => this.#onKeys(keys),
      onResize: () => this.#prompt.redraw(),
      onStop: () => this.#onSuspend(),
      onContinue: () => this.#onContinue(),
      onHangup: options.onHangup,
    });
  }

  /** The next line that is entered; undefined when the person leaves, or the program is to end. */
  async nextLine(): Promise<string | undefined> {
    const { signal } = this.#options;
    if (signal.aborted) return undefined;
    const entered = this.#entered.shift();
    if (entered !== undefined) return entered;
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    const onAbort = () => finish(undefined);
    const finish = (line: string | undefined) => {
      // At once: further keys of the same moment are for what comes next.
      this.#waiting = undefined;
      signal.removeEventListener("abort", onAbort);
      this.#prompt.setWorking(true);
      resolve(line);
    };
    signal.addEventListener("abort", onAbort, { once: true });
    this.#waiting = finish;
    this.#prompt.setWorking(false);
    return await promise;
  }

  /** Lets `work` hear the person while `run` goes on. */
  async during<T>(work: ConsoleWork, run: () => Promise<T>): Promise<T> {
    const before = this.#work;
    this.#work = work;
    try {
      return await run();
    } finally {
      this.#work = before;
    }
  }

  /** Asks a question; undefined at Ctrl-C, Ctrl-D, or when `signal` fires. */
  ask(label: string, signal: AbortSignal): Promise<string | undefined> {
    return this.#prompt.ask(label, AbortSignal.any([signal, this.#options.signal]));
  }

  /** Puts text that was entered back into the prompt line. */
  giveBack(text: string): void {
    this.#prompt.prepend(text);
  }

  [Symbol.dispose](): void {
    this.screen.leave();
    this.#terminal[Symbol.dispose]();
  }

  #onKeys(keys: readonly Key[]): void {
    if (keys.some((key) => key.type !== "key" || key.name !== "ctrl-c")) this.#mayLeave = false;
    this.#prompt.press(keys);
  }

  #onEnter(text: string): void {
    if (this.#waiting) {
      this.#waiting(text);
    } else if (this.#work?.onEnter) {
      this.#work.onEnter(text);
    } else {
      this.#entered.push(text);
      this.#options.say("That comes next.");
    }
  }

  #onInterrupt(): void {
    if (!this.#waiting) return this.#work?.onInterrupt();
    if (this.#prompt.hasText) return this.#prompt.abandon();
    if (this.#mayLeave) return this.#waiting(undefined);
    this.#mayLeave = true;
    this.#options.say("Nothing runs. Ctrl-C again leaves, and so does Ctrl-D.");
  }

  #onEnd(): void {
    this.#waiting?.(undefined);
  }

  #onSuspend(): void {
    this.screen.leave();
    this.#terminal.suspend();
  }

  #onContinue(): void {
    this.screen.takeBack();
    this.#prompt.redraw();
  }
}

function windowSize(): { columns: number; rows: number } {
  const { columns, rows } = process.stdout;
  return { columns: columns || DEFAULT_SIZE.columns, rows: rows || DEFAULT_SIZE.rows };
}
