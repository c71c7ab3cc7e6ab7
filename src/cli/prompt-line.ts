/**
 * The prompt line of the chat: keys go to an editor, its text to the screen, what is entered to
 * whoever listens. While there is work, it shows only once something is typed.
 */

import type { ChatScreen, Prompt } from "./chat-screen.ts";
import type { Key } from "./key-decoder.ts";
import { LineEditor, type EditorAction } from "./line-editor.ts";
import type { PromptHistory } from "./prompt-history.ts";

/** Who hears what a person enters. */
export interface PromptListener {
  onEnter(text: string): void;
  /** Ctrl-C, except to a question. */
  onInterrupt(): void;
  /** Ctrl-D with nothing typed. */
  onEnd(): void;
  onSuspend(): void;
}

/** What a prompt line works with. */
export interface PromptLineOptions {
  screen: ChatScreen;
  history: PromptHistory;
  complete(text: string): string;
  listener: PromptListener;
  /** Told once when the history can't be saved. */
  warn(message: string): void;
}

/** A question that waits for its answer. */
interface Question {
  label: string;
  editor: LineEditor;
  answer(text: string | undefined): void;
}

const PROMPT_LABEL = "> ";
const STEERING_LABEL = "steer> ";

/** See the head of this file. */
export class PromptLine {
  readonly #options: PromptLineOptions;
  readonly #editor: LineEditor;
  #question: Question | undefined;
  #isWorking = true;
  #hasWarned = false;

  constructor(options: PromptLineOptions) {
    this.#options = options;
    this.#editor = new LineEditor({
      history: () => options.history.entries,
      complete: (text) => options.complete(text),
    });
  }

  /** Whether something is typed that was not entered. */
  get hasText(): boolean {
    return !this.#current.isEmpty;
  }

  /** Waits for a prompt (false), or lets the output have the screen until something is typed (true). */
  setWorking(isWorking: boolean): void {
    this.#isWorking = isWorking;
    this.#show();
  }

  /** Puts text before what is typed. */
  prepend(text: string): void {
    const { text: typed } = this.#editor.line;
    this.#editor.setText(typed === "" ? text : `${text}\n${typed}`);
    this.#show();
  }

  /** Leaves what is typed in the output, marked as not entered, and starts anew. */
  abandon(): void {
    const prompt = this.#prompt();
    this.#editor.setText("");
    this.#options.screen.enterPrompt({ ...prompt, text: `${prompt.text} ^C` });
    this.#show();
  }

  /** Asks something else for once; undefined at Ctrl-C, Ctrl-D, or when `signal` fires. One at a time. */
  ask(label: string, signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const finish = (text: string | undefined) => {
        signal.removeEventListener("abort", onAbort);
        this.#question = undefined;
        this.#show();
        resolve(text);
      };
      const onAbort = () => finish(undefined);
      if (signal.aborted) return resolve(undefined);
      signal.addEventListener("abort", onAbort, { once: true });
      this.#question = { label, editor: new LineEditor({ history: () => [] }), answer: finish };
      this.#show();
    });
  }

  /** Takes keys. */
  press(keys: readonly Key[]): void {
    for (const key of keys) {
      const action = this.#current.press(key);
      if (action) this.#act(action);
    }
    this.#show();
  }

  /** Draws the prompt, where one is due. */
  redraw(): void {
    this.#show();
  }

  get #current(): LineEditor {
    return this.#question?.editor ?? this.#editor;
  }

  #act(action: EditorAction): void {
    const { listener, screen } = this.#options;
    switch (action.type) {
      case "submit":
        return this.#enter(action.text);
      case "interrupt":
        return this.#question ? this.#question.answer(undefined) : listener.onInterrupt();
      case "end":
        return this.#question ? this.#question.answer(undefined) : listener.onEnd();
      case "suspend":
        return listener.onSuspend();
      case "clear-screen":
        return screen.clear();
    }
  }

  #enter(text: string): void {
    const { screen, history, listener } = this.#options;
    if (this.#question) {
      screen.enterPrompt({ label: this.#question.label, text, cursor: 0 });
      this.#question.answer(text);
      return;
    }
    if (text.trim() === "") return;
    screen.enterPrompt({ label: this.#label, text, cursor: 0 });
    const problem = history.add(text);
    if (problem !== undefined && !this.#hasWarned) {
      this.#hasWarned = true;
      this.#options.warn(problem);
    }
    listener.onEnter(text);
  }

  #show(): void {
    const { screen } = this.#options;
    const isNeeded = !this.#isWorking || this.#question !== undefined || !this.#editor.isEmpty;
    if (isNeeded) screen.showPrompt(this.#prompt());
    else screen.hidePrompt();
  }

  #prompt(): Prompt {
    const { line, searchQuery } = this.#current;
    const label = this.#question?.label ?? this.#label;
    return { ...line, label: searchQuery === undefined ? label : `search "${searchQuery}": ` };
  }

  get #label(): string {
    return this.#isWorking ? STEERING_LABEL : PROMPT_LABEL;
  }
}
