/** What a run tells, as the chat shows it: the answer as it streams, everything else as lines. */

import pc from "picocolors";
import type { AgentEvent, RunOutcome } from "../agent/events.ts";
import type { AgentApp } from "../app.ts";
import { printable } from "../printable.ts";
import { formatDuration, ProgressLines, type ProgressOptions } from "./progress.ts";

/** What a view writes with. */
export interface ChatViewOptions extends Omit<ProgressOptions, "detail"> {
  /** Writes whole lines above a line that is still open. */
  insert(lines: string): void;
}

/** See the head of this file. */
export class ChatView {
  readonly #lines: ProgressLines;
  readonly #insert: (lines: string) => void;
  readonly #color: ReturnType<typeof pc.createColors>;
  /** What the present reply has shown so far. */
  #shown: "nothing" | "thinking" | "text" = "nothing";
  #started = 0;

  constructor(options: ChatViewOptions) {
    this.#insert = (text) => options.insert(options.redact(text));
    this.#lines = new ProgressLines({ ...options, detail: "full" });
    this.#color = pc.createColors(options.color);
  }

  /** Lines about what the person asked for; a line of the answer that is still open goes on below. */
  show(text: string): void {
    this.#insert(`${text}\n`);
  }

  /** A line of the program's own, in the same place. */
  say(text: string): void {
    this.show(this.#color.dim(text));
  }

  /** One line about what went wrong. */
  fail(text: string): void {
    this.#lines.line(this.#color.red(text));
  }

  /** A turn begins: silence is told from now on. */
  startTurn(): void {
    this.#started = performance.now();
    this.#lines.startHeartbeat();
  }

  /** A turn is over; tells what it took. */
  endTurn(outcome: RunOutcome | undefined, app: AgentApp): void {
    this.#lines.stop();
    this.#lines.endLine();
    // The result of the call that found no kernel has said so.
    if (outcome?.error && outcome.subtype !== "error_kernel") {
      const message = printable(app.redact(outcome.error.message));
      if (outcome.subtype === "error_interrupted") this.say(message);
      else this.fail(message);
    }
    const { percent } = app.context.status();
    const time = formatDuration(performance.now() - this.#started);
    this.say(`${time} · context ${percent} % full`);
    this.show("");
  }

  /** Shows what an event means. */
  onEvent(event: AgentEvent): void {
    if (event.agent) return this.#lines.onEvent(event);
    switch (event.type) {
      case "request":
        this.#shown = "nothing";
        return this.#lines.onEvent(event);
      case "thinking_delta":
        if (this.#shown === "nothing") this.#aside("thinking…");
        if (this.#shown === "nothing") this.#shown = "thinking";
        return;
      case "text_delta":
        this.#shown = "text";
        return this.#lines.text(printable(event.text.replaceAll("\r", "")));
      case "reply_restart":
        if (this.#shown === "text") this.#aside("(the reply broke off here and starts over)");
        this.#shown = "nothing";
        return;
      default:
        return this.#lines.onEvent(event);
    }
  }

  /** A line of the program's own, after what was shown so far. */
  #aside(text: string): void {
    this.#lines.line(this.#color.dim(text));
  }
}
