/**
 * One headless run: prompt in, answer on stdout, then nothing left behind. One
 * truth about the outcome: exit code, `is_error` and `subtype` come from the
 * same value, and a last `result` always comes.
 */

import { resolve } from "node:path";
import type { AgentEvent, RunOutcome } from "../agent/events.ts";
import type { AgentApp } from "../app.ts";
import { createApp } from "../app.ts";
import { initFields } from "../app-init.ts";
import { raceWithAbort } from "../async.ts";
import type { Config } from "../config.ts";
import { debug } from "../log.ts";
import type { CommandContext } from "./context.ts";
import { readPrompt, type PromptInput } from "./prompt-input.ts";
import { readConfig } from "./read-config.ts";
import { EXIT_CODES, EXIT_READER_GONE, outcomeOf } from "./report-error.ts";
import { resultFields } from "./result.ts";
import { RunOutput } from "./run-output.ts";
import { ABORTED_CLEANUP_MS } from "./signals.ts";
import { StreamJson } from "./stream-json.ts";

/** Runs `prime-agent exec …`; the exit code tells how it ended. */
export async function runExec(context: CommandContext): Promise<number> {
  context.interruption.listen();
  let config: Config;
  try {
    config = readConfig(context.args.options);
  } catch (error) {
    sendResultAlone(context, outcomeOf(error));
    throw error;
  }
  return await new HeadlessRun(context, config).run(context.args.words);
}

/** Who asked for JSON gets a `result`, also for flags or files that can't be used. */
function sendResultAlone({ args, terminal }: CommandContext, outcome: RunOutcome): void {
  const { options } = args;
  if (!options.has("json") && !/json/.test(options.get("output-format") ?? "")) return;
  const json = new StreamJson({
    sessionId: options.get("session-id") ?? crypto.randomUUID(),
    partial: false,
    redact: (text) => text,
    write: (line) => terminal.stdout.write(line),
  });
  const exitCode = EXIT_CODES[outcome.subtype];
  json.send(
    "result",
    resultFields(outcome, { exitCode, durationMs: 0, warnings: [], app: undefined }),
  );
}

/** The flow of one headless run. */
class HeadlessRun {
  readonly #context: CommandContext;
  readonly #config: Config;
  readonly #output: RunOutput;

  constructor(context: CommandContext, config: Config) {
    this.#context = context;
    this.#config = config;
    this.#output = new RunOutput({
      terminal: context.terminal,
      config: config.output,
      variables: config.environment.variables,
      version: context.version,
    });
  }

  async run(words: readonly string[]): Promise<number> {
    const { interruption } = this.#context;
    const { timeoutMs } = this.#config.limits;
    if (timeoutMs !== undefined) interruption.startTimeout(timeoutMs);
    let app: AgentApp | undefined;
    let outcome: RunOutcome;
    try {
      const input = raceWithAbort(this.#readPrompt(words), interruption.signal);
      // An empty prompt is told before anything else is looked at; one from stdin is read meanwhile.
      if (words.join("").trim() === "") await input;
      input.catch((error) => debug("exec", "there is no prompt", error));
      app = await this.#openApp();
      outcome = await this.#answer(app, input);
    } catch (error) {
      outcome = outcomeOf(error);
      if (!app) this.#openFailed();
    }
    // What still works for a run that is over would only speak after its last line.
    app?.stopAgents("the run has ended");
    const exitCode = this.#exitCode(outcome);
    this.#output.report(outcome, exitCode);
    interruption.stop();
    await app?.dispose(interruption.signal.aborted ? ABORTED_CLEANUP_MS : undefined);
    return exitCode;
  }

  #readPrompt(words: readonly string[]): Promise<PromptInput> {
    const file = this.#context.args.options.get("prompt-file");
    const { stdin, prompt, cwd } = this.#config;
    // A goal says what to do; a prompt beside it is not needed.
    const said = words.length === 0 && file === undefined && prompt.goal ? [prompt.goal] : words;
    return readPrompt({ words: said, stdin, ...(file && { file: resolve(cwd, file) }) });
  }

  async #openApp(): Promise<AgentApp> {
    const pending: AgentEvent[] = [];
    let sink = (event: AgentEvent): void => {
      pending.push(event);
    };
    const app = await createApp(this.#config, {
      emit: (event) => sink(event),
      chooseWhenBusy: async () => this.#config.kernel.onBusy,
    });
    this.#output.open(app, app.initFields);
    sink = (event) => this.#output.onEvent(event);
    pending.forEach(sink);
    return app;
  }

  #openFailed(): void {
    const sessionId = this.#config.session.id ?? crypto.randomUUID();
    this.#output.openFailed(sessionId, initFields(this.#config));
  }

  async #answer(app: AgentApp, reading: Promise<PromptInput>): Promise<RunOutcome> {
    app.provisioner.prewarm();
    for (const warning of app.warnings) this.#warn(warning);
    const input = await reading;
    if (input.note) this.#warn(input.note);
    const { goal, images } = this.#config.prompt;
    const told = goal === undefined ? undefined : app.goals.set(goal);
    if (told !== undefined) app.agent.inbox.push({ source: "goal", content: told });
    const content = await app.promptContent(input.text, images);
    const outcome = await app.agent.run(content, this.#context.interruption.signal);
    for (const warning of app.laterWarnings()) this.#warn(warning);
    return outcome;
  }

  #warn(message: string): void {
    this.#output.onEvent({ type: "warning", message });
  }

  #exitCode({ subtype }: RunOutcome): number {
    const { terminal, interruption } = this.#context;
    if (terminal.readerGone.aborted) return EXIT_READER_GONE;
    const interrupted = subtype === "error_interrupted" || subtype === "error_timeout";
    return (interrupted && interruption.exitCode) || EXIT_CODES[subtype];
  }
}
