/**
 * One headless run: prompt in, answer on stdout, then nothing left behind. One
 * truth about the outcome: exit code, `is_error` and `subtype` come from the
 * same value, and a last `result` always comes.
 */

import { writeFileSync } from "node:fs";
import type { AgentEvent, RunOutcome } from "../agent/events.ts";
import type { AgentApp } from "../app.ts";
import { createApp } from "../app.ts";
import type { Config } from "../config.ts";
import { errorMessage, PrimeAgentError } from "../errors.ts";
import { debug } from "../log.ts";
import type { CommandContext } from "./context.ts";
import { wantsColor } from "./output.ts";
import { formatDuration, ProgressLines } from "./progress.ts";
import { readPrompt, type PromptInput } from "./prompt-input.ts";
import { readConfig } from "./read-config.ts";
import { describeError, EXIT_CODES, EXIT_READER_GONE, subtypeOf } from "./report-error.ts";
import { resultFields } from "./result.ts";
import { STREAM_SCHEMA, StreamJson, encodeLine } from "./stream-json.ts";

/** How long an aborted run may take to end its kernel in good order before it is killed. */
const ABORTED_CLEANUP_MS = 2_000;

/** Runs `prime-agent exec …`; the exit code tells how it ended. */
export async function runExec(context: CommandContext): Promise<number> {
  context.interruption.listen();
  const run = new HeadlessRun(context, readConfig(context.args.options));
  return await run.run(context.args.words);
}

/** The state of one headless run: who listens, and what is known so far. */
class HeadlessRun {
  readonly #context: CommandContext;
  readonly #config: Config;
  readonly #started = performance.now();
  readonly #warnings: string[] = [];
  #progress: ProgressLines | undefined;
  #json: StreamJson | undefined;
  #streamed = "";

  constructor(context: CommandContext, config: Config) {
    this.#context = context;
    this.#config = config;
  }

  async run(words: readonly string[]): Promise<number> {
    let app: AgentApp | undefined;
    let outcome: RunOutcome;
    try {
      const input = this.#readPrompt(words);
      // An empty prompt is told before anything else is looked at; one from stdin is read meanwhile.
      if (words.join("").trim() === "") await input;
      input.catch((error) => debug("exec", "there is no prompt", error));
      app = await this.#openApp();
      outcome = await this.#answer(app, input);
    } catch (error) {
      outcome = failedOutcome(error);
      if (!app && this.#config.output.format !== "text") this.#openJson("", (text) => text);
    }
    // What still works for a run that failed would only speak after its last line.
    app?.stopAgents("the run has ended");
    this.#report(outcome, app);
    await this.#cleanUp(app);
    return this.#exitCode(outcome);
  }

  #readPrompt(words: readonly string[]): Promise<PromptInput> {
    const file = this.#context.args.options.get("prompt-file");
    const { stdin, prompt } = this.#config;
    // A goal says what to do; a prompt beside it is not needed.
    const said = words.length === 0 && file === undefined && prompt.goal ? [prompt.goal] : words;
    return readPrompt({ words: said, stdin, ...(file !== undefined && { file }) });
  }

  async #openApp(): Promise<AgentApp> {
    const { limits, kernel } = this.#config;
    if (limits.timeoutMs !== undefined) this.#context.interruption.startTimeout(limits.timeoutMs);
    const pending: AgentEvent[] = [];
    let sink = (event: AgentEvent): void => {
      pending.push(event);
    };
    const app = await createApp(this.#config, {
      emit: (event) => sink(event),
      chooseWhenBusy: async () => kernel.onBusy,
    });
    this.#openOutputs(app);
    sink = (event) => this.#onEvent(event);
    pending.forEach(sink);
    return app;
  }

  #openOutputs(app: AgentApp): void {
    const { output } = this.#config;
    const { stderr } = this.#context.terminal;
    if (!output.quiet) {
      this.#progress = new ProgressLines({
        write: (text) => stderr.write(text),
        color: wantsColor(stderr, output.color, this.#config.environment.variables),
        redact: app.redact,
      });
      this.#progress.startHeartbeat((ms, activity) => this.#json?.heartbeat(ms, activity));
      this.#progress.line(
        `${app.modelName} · session ${app.session.path ? app.session.id : "not saved"}`,
      );
    }
    if (output.format === "text") return;
    this.#openJson(app.session.id, app.redact);
    this.#json?.send("system", {
      subtype: "init",
      schema: STREAM_SCHEMA,
      version: this.#context.version,
      ...app.initFields,
    });
  }

  #openJson(sessionId: string, redact: (text: string) => string): void {
    const { stdout } = this.#context.terminal;
    const streaming = this.#config.output.format === "stream-json";
    this.#json = new StreamJson({
      sessionId,
      partial: this.#config.output.includePartialMessages,
      redact,
      write: (line) => {
        if (streaming) stdout.write(line);
      },
    });
  }

  async #answer(app: AgentApp, reading: Promise<PromptInput>): Promise<RunOutcome> {
    app.provisioner.prewarm();
    const input = await reading;
    for (const warning of app.warnings) this.#onEvent({ type: "warning", message: warning });
    if (input.note) this.#onEvent({ type: "warning", message: input.note });
    const goal = this.#config.prompt.goal;
    const told = goal === undefined ? undefined : app.goals.set(goal);
    if (told !== undefined) app.agent.inbox.push({ source: "goal", content: told });
    const content = await app.promptContent(input.text, this.#config.prompt.images);
    const outcome = await app.agent.run(content, this.#context.interruption.signal);
    for (const warning of app.laterWarnings()) this.#onEvent({ type: "warning", message: warning });
    return outcome;
  }

  #onEvent(event: AgentEvent): void {
    if (event.type === "warning") this.#warnings.push(event.message);
    if (event.type === "text_delta" && !event.agent) this.#stream(event.text);
    this.#json?.onEvent(event);
    this.#progress?.onEvent(event);
  }

  /** With a terminal on stdout the answer streams there. */
  #stream(text: string): void {
    const { stdout } = this.#context.terminal;
    if (this.#config.output.format !== "text" || !stdout.isTerminal) return;
    this.#streamed += text;
    stdout.write(text);
  }

  #report(outcome: RunOutcome, app: AgentApp | undefined): void {
    this.#progress?.stop();
    const { stdout, stderr } = this.#context.terminal;
    const { format, lastMessageFile } = this.#config.output;
    const fields = resultFields(outcome, {
      exitCode: this.#exitCode(outcome),
      durationMs: Math.round(performance.now() - this.#started),
      warnings: this.#warnings,
      app,
    });
    if (format === "stream-json") this.#json?.send("result", fields);
    else if (format === "json")
      stdout.write(
        `${encodeLine({ type: "result", ...fields }, app?.redact ?? ((text) => text))}\n`,
      );
    else this.#writeAnswer(outcome);
    if (lastMessageFile !== undefined) this.#writeLastMessage(lastMessageFile, outcome.text);
    if (outcome.error)
      stderr.write(`prime-agent: ${app?.redact(outcome.error.message) ?? outcome.error.message}\n`);
    if (this.#progress && app) this.#progress.line(this.#summary(outcome, app));
  }

  /** The final answer and one line break; a streamed one only needs its end. */
  #writeAnswer(outcome: RunOutcome): void {
    const { stdout } = this.#context.terminal;
    if (this.#streamed) {
      stdout.write(this.#streamed.endsWith("\n") ? "" : "\n");
    } else if (outcome.subtype === "success") {
      stdout.write(outcome.text.endsWith("\n") ? outcome.text : `${outcome.text}\n`);
    }
  }

  #writeLastMessage(path: string, text: string): void {
    try {
      writeFileSync(path, text);
    } catch (error) {
      this.#context.terminal.stderr.write(
        `prime-agent: ${path} can't be written: ${errorMessage(error)}\n`,
      );
    }
  }

  #summary(outcome: RunOutcome, app: AgentApp): string {
    const { turns, toolCalls, usage, costKnown } = app.agent.state;
    const cost = costKnown && usage.cost.total > 0 ? ` · US$ ${usage.cost.total.toFixed(4)}` : "";
    const time = formatDuration(performance.now() - this.#started);
    return `${outcome.subtype} · ${turns} turns · ${toolCalls} cells · ${usage.totalTokens} tokens${cost} · ${time}`;
  }

  #exitCode(outcome: RunOutcome): number {
    if (this.#context.terminal.readerGone.aborted) return EXIT_READER_GONE;
    const interrupted =
      outcome.subtype === "error_interrupted" || outcome.subtype === "error_timeout";
    return (interrupted && this.#context.interruption.exitCode) || EXIT_CODES[outcome.subtype];
  }

  async #cleanUp(app: AgentApp | undefined): Promise<void> {
    this.#context.interruption.stop();
    await app?.dispose(this.#context.interruption.signal.aborted ? ABORTED_CLEANUP_MS : undefined);
  }
}

function failedOutcome(error: unknown): RunOutcome {
  const known = error instanceof PrimeAgentError;
  const message = describeError(error).replace(/^prime-agent: /, "");
  return {
    subtype: subtypeOf(error),
    text: "",
    error: { code: known ? error.code : "internal", message, retryable: false },
  };
}
