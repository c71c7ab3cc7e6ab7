/**
 * The terminal chat: a prompt line, the answer as it streams, cells with their output. Plain lines
 * in the terminal's own scrollback. chat-console.ts has the person's side, chat-turn.ts one prompt,
 * chat-commands.ts what begins with a slash.
 */

import { nearest } from "../nearest.ts";
import { skillPrompt } from "../agent/skill.ts";
import type { AgentApp } from "../app.ts";
import type { Config, SessionConfig } from "../config.ts";
import { AbortedError, PrimeAgentError } from "../errors.ts";
import { ChatApp } from "./chat-app.ts";
import { CHAT_COMMANDS, type CommandHost } from "./chat-commands.ts";
import { ChatConsole } from "./chat-console.ts";
import { completeCommand, readLine, type ChatLine } from "./chat-line.ts";
import { askWhenBusy } from "./chat-question.ts";
import { recapLines } from "./chat-recap.ts";
import { ChatTurn } from "./chat-turn.ts";
import { ChatView } from "./chat-view.ts";
import type { CommandContext } from "./context.ts";
import { wantsColor } from "./output.ts";
import { readConfig } from "./read-config.ts";
import { describeError, EXIT_CODES } from "./report-error.ts";

/** How long leaving may take before it says what it waits for. */
const SLOW_ENDING_MS = 700;
/** How long the kernel may take to end in good order when the program was told to end. */
const ABORTED_CLEANUP_MS = 2_000;

const COMMAND_NAMES = Object.keys(CHAT_COMMANDS);

/** Runs the chat until the person leaves; the exit code is 0, or that of a signal. */
export async function runChat(context: CommandContext): Promise<number> {
  context.interruption.listen();
  const chat = new TerminalChat(context, readConfig(context.args.options));
  const ending = await chat.run(context.args.words.join(" "));
  if (ending !== "demo") return ending;
  const { runDemo } = await import("./demo.ts");
  return await runDemo(context);
}

/** See the head of this file. */
class TerminalChat implements CommandHost {
  readonly config: Config;
  readonly chat: ChatApp;
  readonly #context: CommandContext;
  readonly #console: ChatConsole;
  readonly #view: ChatView;
  #turn: ChatTurn | undefined;
  #images: string[];
  #isLeaving = false;
  /** Aborts the command that runs. */
  #command = new AbortController();

  constructor(context: CommandContext, config: Config) {
    this.#context = context;
    this.config = config;
    this.#images = config.prompt.images;
    const { stdout } = context.terminal;
    const color = wantsColor(stdout, config.output.color, config.environment.variables);
    this.#console = new ChatConsole({
      stdout,
      color,
      home: config.environment.home,
      signal: context.interruption.signal,
      complete: (text) => completeCommand(text, this.#completions()),
      say: (text) => this.say(text),
      onHangup: () => context.interruption.abort("signal", 129),
    });
    this.#view = new ChatView({
      write: (text) => this.#console.screen.write(text),
      insert: (lines) => this.#console.screen.insert(lines),
      color,
      redact: (text) => this.chat.redact(text),
    });
    this.chat = new ChatApp(config, {
      emit: (event) => this.#view.onEvent(event),
      chooseWhenBusy: askWhenBusy({
        say: (text) => this.say(text),
        ask: (label) => this.#console.ask(label, this.#turn?.signal ?? this.#command.signal),
        always: config.kernel.onBusy === "restart" ? "restart" : undefined,
      }),
    });
  }

  /** Talks until the person leaves. "demo": there is no model, and the person wants to see the demo. */
  async run(words: string): Promise<number | "demo"> {
    const { interruption } = this.#context;
    try {
      using console = this.#console;
      const work = { onInterrupt: () => this.#interruptCommand() };
      const instead = await console.during(work, () => this.#begin());
      if (instead !== undefined) return instead;
      await this.#answerFirst(words);
      while (!this.#isLeaving) {
        const line = await console.nextLine();
        if (line === undefined) break;
        await this.#obey(line);
      }
    } finally {
      await this.#end();
    }
    return interruption.exitCode ?? 0;
  }

  show(text: string): void {
    this.#view.show(text);
  }

  say(text: string): void {
    this.#view.say(text);
  }

  leave(): void {
    if (this.#turn) this.#context.interruption.abort("user", EXIT_CODES.error_interrupted);
    this.#isLeaving = true;
  }

  async answer(prompt: string | undefined): Promise<void> {
    const { app } = this.chat;
    const { timeoutMs } = this.config.limits;
    const content =
      prompt === undefined ? undefined : await app.promptContent(prompt, this.#images);
    this.#images = [];
    const turn = new ChatTurn({
      app,
      signal: this.#context.interruption.signal,
      ...(timeoutMs !== undefined && { timeoutMs }),
      say: (text) => this.say(text),
      onCommand: (text) => this.#takeCommand(text),
      leave: () => this.leave(),
    });
    this.#turn = turn;
    this.#view.startTurn();
    const outcome = await this.#console.during(turn, () => turn.run(content));
    this.#turn = undefined;
    this.#view.endTurn(outcome, app);
    this.#warn(app.laterWarnings());
    const undelivered = turn.takeUndelivered();
    if (undelivered === "") return;
    this.say("What was queued has not reached the model; it is back in the prompt line.");
    this.#console.giveBack(undelivered);
  }

  async open(session: SessionConfig): Promise<void> {
    this.#announce(await this.chat.open(session));
  }

  async interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void> {
    await work(AbortSignal.any([this.#command.signal, this.#context.interruption.signal]));
  }

  /** Opens the session that was asked for; what comes instead of a chat when there is no model. */
  async #begin(): Promise<number | "demo" | undefined> {
    this.say(`prime-agent ${this.#context.version} · /help lists the commands`);
    try {
      this.#announce(await this.chat.open(this.config.session));
      return undefined;
    } catch (error) {
      if (!(error instanceof PrimeAgentError) || error.code !== "auth") throw error;
      this.#view.fail(describeError(error));
      const answer = await this.#console.ask("See the demo now? [y/N] ", this.#command.signal);
      return /^\s*y/i.test(answer ?? "") ? "demo" : EXIT_CODES.error_auth;
    }
  }

  /** Answers what the command line says: a prompt, a goal, or both. Nothing that goes wrong ends the chat. */
  async #answerFirst(words: string): Promise<void> {
    const { goal } = this.config.prompt;
    const { app } = this.chat;
    const told = goal === undefined ? undefined : app.goals.set(goal);
    if (told !== undefined) app.agent.inbox.push({ source: "goal", content: told });
    if (words.trim() === "" && told === undefined) return;
    try {
      await this.answer(words.trim() === "" ? undefined : words);
    } catch (error) {
      this.#report(error);
    }
  }

  #announce({ modelName, session, warnings }: AgentApp): void {
    const messages = session.entries.filter(({ type }) => type === "message").length;
    const name = session.path === undefined ? "not saved" : session.id;
    const resumed = messages === 0 ? "" : `, ${messages} messages so far`;
    this.say(`${modelName} · session ${name}${resumed}`);
    this.#warn(warnings);
    for (const line of recapLines(session.entries)) this.say(line);
  }

  #warn(warnings: readonly string[]): void {
    for (const message of warnings) this.#view.onEvent({ type: "warning", message });
  }

  /** Does what a line means; nothing that goes wrong ends the chat. */
  async #obey(line: string): Promise<void> {
    try {
      const meant = readLine(line, COMMAND_NAMES);
      if (meant.kind === "prompt") await this.answer(meant.text);
      else if (meant.kind === "skill") await this.#answerWithSkill(meant);
      else if (meant.kind === "unknown") this.#refuse(meant);
      else await this.#runCommand(meant);
    } catch (error) {
      this.#report(error);
    }
  }

  async #answerWithSkill({ name, words }: { name: string; words: string }): Promise<void> {
    const { skills } = this.chat.app;
    const skill = skills.find((candidate) => candidate.name === name);
    if (skill) return await this.answer(skillPrompt(skill, words));
    const [near] = nearest(
      name,
      skills.map((candidate) => candidate.name),
    );
    this.say(
      `There is no skill "${name}". ${near ? `Did you mean /skill:${near}?` : "/skills lists them."}`,
    );
  }

  #refuse({ name, near }: Extract<ChatLine, { kind: "unknown" }>): void {
    const hint = near.length > 0 ? `Did you mean ${near.join(" or ")}?` : "/help lists them.";
    this.say(`There is no command /${name}. ${hint} With a space before it, it is a prompt.`);
  }

  /** Runs a command to its end; what is entered meanwhile comes after it. */
  async #runCommand({ name, words }: { name: string; words: string }): Promise<void> {
    this.#command = new AbortController();
    const work = { onInterrupt: () => this.#interruptCommand() };
    await this.#console.during(work, async () => await CHAT_COMMANDS[name]?.run(this, words));
  }

  #interruptCommand(): void {
    const { interruption } = this.#context;
    if (this.#command.signal.aborted)
      return interruption.abort("user", EXIT_CODES.error_interrupted);
    this.#command.abort(new AbortedError("user"));
    this.say("Aborting. Ctrl-C again leaves.");
  }

  /** While the model works: runs a command that may run now; false for what is for the model. */
  #takeCommand(text: string): boolean {
    const meant = readLine(text, COMMAND_NAMES);
    if (meant.kind === "prompt") return false;
    if (meant.kind === "unknown") this.#refuse(meant);
    else if (meant.kind === "command" && CHAT_COMMANDS[meant.name]?.anytime) {
      void Promise.try(async () => await CHAT_COMMANDS[meant.name]?.run(this, meant.words)).catch(
        (error) => this.#report(error),
      );
    } else this.say("That has to wait for the end of the turn. Ctrl-C aborts it.");
    return true;
  }

  #report(error: unknown): void {
    if (error instanceof AbortedError) this.say("aborted");
    else this.#view.fail(this.chat.redact(describeError(error).replace(/^prime-agent: /, "")));
  }

  #completions(): string[] {
    const commands = COMMAND_NAMES.filter((name) => !name.startsWith("skill:"));
    return [...commands, ...this.chat.skills.map(({ name }) => `skill:${name}`)];
  }

  /** Ends the app, and says how to go on with its session. */
  async #end(): Promise<void> {
    const { interruption } = this.#context;
    const slow = setTimeout(
      () => this.say("Saving the kernel's state and ending it… Ctrl-C does not wait for it."),
      SLOW_ENDING_MS,
    );
    const session = this.chat.session;
    await this.chat.dispose(interruption.signal, ABORTED_CLEANUP_MS);
    clearTimeout(slow);
    if (session?.path === undefined || !session.entries.some(({ type }) => type === "message"))
      return;
    this.say(`The session is saved. Go on with it:\n  prime-agent resume ${session.id}`);
  }
}
