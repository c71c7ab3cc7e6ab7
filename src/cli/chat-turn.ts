/** One prompt in the chat: the answer, what is typed meanwhile, and Ctrl-C in its three stages. */

import type { RunOutcome } from "../agent/events.ts";
import type { AgentApp } from "../app.ts";
import { TIMED_OUT, within } from "../async.ts";
import { AbortedError } from "../errors.ts";
import type { ImageBlock, TextBlock } from "../message.ts";
import type { ConsoleWork } from "./chat-console.ts";

/** What a turn works with. */
export interface TurnOptions {
  app: AgentApp;
  /** Fires when the program is told to end. */
  signal: AbortSignal;
  /** Limit of the turn in milliseconds. */
  timeoutMs?: number;
  say(text: string): void;
  /** What is entered meanwhile and is no steering, such as a command; true when it was taken. */
  onCommand(text: string): boolean;
  /** Leaves the chat at once. */
  leave(): void;
}

/** The source of messages that a person types while the model works. */
const STEERING = "steering";

/** How long an aborted run may take to write what happened when the program is to end. */
const ENDING_MS = 1_500;

/** See the head of this file. */
export class ChatTurn implements ConsoleWork {
  readonly #options: TurnOptions;
  readonly #abort = new AbortController();

  constructor(options: TurnOptions) {
    this.#options = options;
  }

  /** Fires when this turn is given up, or the program is to end. */
  get signal(): AbortSignal {
    return AbortSignal.any([this.#abort.signal, this.#options.signal]);
  }

  /**
   * Answers a prompt, or what waits in the inbox. Undefined when the program is to end and the run
   * takes too long to see it.
   */
  async run(
    prompt: string | Array<TextBlock | ImageBlock> | undefined,
  ): Promise<RunOutcome | undefined> {
    const { app, timeoutMs } = this.#options;
    const timer =
      timeoutMs === undefined
        ? undefined
        : setTimeout(() => this.#abort.abort(new AbortedError("timeout")), timeoutMs);
    try {
      let outcome = await this.#untilEnd(app.agent.run(prompt, this.signal));
      // Typed when the run was as good as over.
      while (outcome?.subtype === "success" && app.agent.inbox.size > 0) {
        outcome = await this.#untilEnd(app.agent.run(undefined, this.signal));
      }
      return outcome;
    } finally {
      clearTimeout(timer);
    }
  }

  /** What was typed and never reached the model. */
  takeUndelivered(): string {
    const { inbox } = this.#options.app.agent;
    return inbox
      .withdraw(STEERING)
      .map(({ content }) => String(content))
      .join("\n");
  }

  /** Queues a message for the model, or runs a command. */
  onEnter(text: string): void {
    const { app, say, onCommand } = this.#options;
    if (onCommand(text)) return;
    app.agent.inbox.push({ source: STEERING, content: text });
    say("Queued: the model reads it before its next step.");
  }

  /** Interrupts the cell; where none runs, or it is interrupted already, aborts the turn with its sub-agents; then leaves. */
  onInterrupt(): void {
    const { app, say, leave } = this.#options;
    if (this.#abort.signal.aborted) {
      leave();
    } else if (app.agent.interruptCell()) {
      say("Interrupting the cell. Ctrl-C again aborts the turn.");
    } else {
      this.#abort.abort(new AbortedError("user"));
      app.stopAgents("the user aborted the turn");
      say("Aborting the turn. Ctrl-C again leaves.");
    }
  }

  /** Waits for the run; once the program is to end, not for long. */
  async #untilEnd(run: Promise<RunOutcome>): Promise<RunOutcome | undefined> {
    const { signal } = this.#options;
    const { promise: told, resolve } = Promise.withResolvers<undefined>();
    const onAbort = () => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    if (signal.aborted) onAbort();
    try {
      const outcome = await Promise.race([run, told]);
      if (outcome) return outcome;
      const late = await within(run, ENDING_MS);
      return late === TIMED_OUT ? undefined : late;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }
}
