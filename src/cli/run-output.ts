/**
 * What a headless run writes: progress lines on stderr; on stdout the answer, or JSON and nothing
 * else. Everything is redacted on its way out.
 */

import { writeFileSync } from "node:fs";
import type { AgentEvent, RunOutcome } from "../agent/events.ts";
import type { OutputConfig } from "../config.ts";
import { errorMessage } from "../errors.ts";
import { setLogSink } from "../log.ts";
import { printable } from "../printable.ts";
import { wantsColor, type Terminal } from "./output.ts";
import { formatDuration, ProgressLines } from "./progress.ts";
import { resultFields, type RunParts } from "./result.ts";
import { STREAM_SCHEMA, StreamJson } from "./stream-json.ts";

/** What the output of a run needs to know. */
export interface RunOutputOptions {
  terminal: Terminal;
  config: OutputConfig;
  /** For NO_COLOR and its kind. */
  variables: Readonly<Record<string, string>>;
  version: string;
}

/** The part of an app that its output shows. */
export interface ShownApp extends RunParts {
  readonly modelName: string;
  redact(text: string): string;
}

/** See the head of this file. */
export class RunOutput {
  readonly #options: RunOutputOptions;
  readonly #started = performance.now();
  readonly #warnings: string[] = [];
  readonly #progress: ProgressLines;
  #app: ShownApp | undefined;
  #json: StreamJson | undefined;
  /** What of the present reply went to a terminal on stdout. */
  #streamed = "";

  constructor(options: RunOutputOptions) {
    this.#options = options;
    const { terminal, config, variables } = options;
    this.#progress = new ProgressLines({
      write: (text) => this.#writeProgress(text),
      color: wantsColor(terminal.stderr, config.color, variables),
      redact: (text) => this.#redact(text),
    });
  }

  /** The run has its parts: from now on it tells what it does. */
  open(app: ShownApp, initFields: object): void {
    this.#app = app;
    const { terminal, config } = this.#options;
    if (config.verbose) setLogSink((line) => terminal.stderr.write(`${this.#redact(line)}\n`));
    this.#progress.startHeartbeat((ms, activity) => this.#json?.heartbeat(ms, activity));
    const session = app.session.path ? app.session.id : "not saved";
    this.#progress.line(`${app.modelName} · session ${session}`);
    this.#openJson(app.session.id, initFields);
  }

  /** The run could not be built: its JSON begins and ends all the same. */
  openFailed(sessionId: string, initFields: object): void {
    this.#openJson(sessionId, initFields);
  }

  /** Shows an event. */
  onEvent(event: AgentEvent): void {
    if (event.type === "warning") this.#warnings.push(event.message);
    if (!event.agent) this.#stream(event);
    if (this.#options.config.format === "stream-json") this.#json?.onEvent(event);
    this.#progress.onEvent(event);
  }

  /** The last thing: the answer or the `result`, why it failed, what it took. */
  report(outcome: RunOutcome, exitCode: number): void {
    this.#progress.stop();
    const { config, terminal } = this.#options;
    const fields = resultFields(outcome, {
      exitCode,
      durationMs: Math.round(performance.now() - this.#started),
      warnings: this.#warnings,
      app: this.#app,
    });
    if (this.#json) this.#json.send("result", fields);
    else this.#writeAnswer(outcome);
    if (config.lastMessageFile !== undefined)
      this.#writeLastMessage(config.lastMessageFile, outcome.text);
    if (outcome.error) {
      const message = printable(this.#redact(outcome.error.message));
      terminal.stderr.write(`prime-agent: ${message}\n`);
    }
    if (this.#app) this.#progress.line(this.#summary(outcome, this.#app));
  }

  #openJson(sessionId: string, initFields: object): void {
    const { config, terminal, version } = this.#options;
    if (config.format === "text") return;
    this.#json = new StreamJson({
      sessionId,
      partial: config.includePartialMessages,
      redact: (text) => this.#redact(text),
      write: (line) => terminal.stdout.write(line),
    });
    if (config.format === "json") return;
    const own = { subtype: "init", schema: STREAM_SCHEMA, version };
    this.#json.send("system", { ...own, ...initFields });
  }

  /** With a terminal on stdout the answer streams there, each reply on lines of its own. */
  #stream(event: AgentEvent): void {
    const { config, terminal } = this.#options;
    if (config.format !== "text" || !terminal.stdout.isTerminal) return;
    if (event.type === "text_delta") {
      // A line end may come in two pieces; a bare carriage return would overwrite the line.
      const text = printable(event.text.replaceAll("\r", ""));
      this.#streamed += text;
      terminal.stdout.write(text);
    } else if (event.type === "request" || event.type === "reply_restart") {
      this.#endStreamedLine();
      this.#streamed = "";
    }
  }

  #endStreamedLine(): void {
    if (this.#streamed === "" || this.#streamed.endsWith("\n")) return;
    this.#streamed += "\n";
    this.#options.terminal.stdout.write("\n");
  }

  /** Lines on the terminal that the answer streams to begin on a line of their own. */
  #writeProgress(text: string): void {
    const { config, terminal } = this.#options;
    if (config.quiet) return;
    if (terminal.stderr.isTerminal) this.#endStreamedLine();
    terminal.stderr.write(text);
  }

  /** The final answer and one line break; a streamed one only needs its end. */
  #writeAnswer(outcome: RunOutcome): void {
    const { stdout } = this.#options.terminal;
    if (this.#streamed !== "") return this.#endStreamedLine();
    if (outcome.subtype !== "success") return;
    const text = this.#redact(outcome.text);
    // A pipe gets what the model wrote, byte for byte, but no escape byte.
    const shown = stdout.isTerminal ? printable(text) : text.replaceAll("\x1b", "\\x1b");
    stdout.write(shown.endsWith("\n") ? shown : `${shown}\n`);
  }

  #writeLastMessage(path: string, text: string): void {
    try {
      writeFileSync(path, this.#redact(text));
    } catch (error) {
      const { stderr } = this.#options.terminal;
      stderr.write(`prime-agent: ${path} can't be written: ${errorMessage(error)}\n`);
    }
  }

  #summary(outcome: RunOutcome, app: ShownApp): string {
    const { turns, toolCalls, usage, costKnown } = app.agent.state;
    const parts = [
      outcome.subtype,
      count(turns, "turn"),
      count(toolCalls, "cell"),
      count(usage.totalTokens, "token"),
      ...(costKnown && usage.cost.total > 0 ? [`US$ ${usage.cost.total.toFixed(4)}`] : []),
      formatDuration(performance.now() - this.#started),
    ];
    return parts.join(" · ");
  }

  #redact(text: string): string {
    return this.#app?.redact(text) ?? text;
  }
}

function count(number: number, noun: string): string {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}
