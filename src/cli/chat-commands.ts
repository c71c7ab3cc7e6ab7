/** The commands of the chat, as a table: what `/help` shows and what each one does. */

import { sessionUsage } from "../agent/usage.ts";
import { findSession } from "../agent/session-store.ts";
import type { AgentApp } from "../app.ts";
import { availableModels } from "../app-models.ts";
import type { Config, SessionConfig } from "../config.ts";
import { printable } from "../printable.ts";
import type { ChatApp } from "./chat-app.ts";
import { runSessions } from "./sessions.ts";
import { runSkills } from "./skills.ts";

/** What a command can do with the chat. */
export interface CommandHost {
  readonly config: Config;
  readonly chat: ChatApp;
  /** Shows plain text. */
  show(text: string): void;
  /** Says something in the program's own voice. */
  say(text: string): void;
  /** Answers a prompt; without one, what waits in the inbox. */
  answer(prompt: string | undefined): Promise<void>;
  /** Puts another session in place of the present one. */
  open(session: SessionConfig): Promise<void>;
  /** Does something that Ctrl-C aborts. */
  interruptible(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Ends the chat. */
  leave(): void;
}

/** One command. */
export interface ChatCommand {
  /** Its name with what can follow it. */
  usage: string;
  help: string;
  /** Whether it can be used while the model works. */
  anytime?: boolean;
  /** Not worth a line of `/help`. */
  hidden?: boolean;
  /** @throws PrimeAgentError saying what is wrong; the chat goes on. */
  run(host: CommandHost, words: string): Promise<void> | void;
}

/** Models that `/model` lists. */
const MAX_MODELS = 30;

/** The commands in the order of `/help`. */
export const CHAT_COMMANDS: Readonly<Record<string, ChatCommand>> = {
  help: {
    usage: "/help",
    help: "this list",
    anytime: true,
    run: (host) => host.show(helpText()),
  },
  model: {
    usage: "/model [NAME]",
    help: "list models, or take another, such as anthropic/opus",
    run: runModel,
  },
  effort: {
    usage: "/effort [LEVEL]",
    help: "how hard the model thinks: off, minimal, low … xhigh",
    run: runEffort,
  },
  new: {
    usage: "/new",
    help: "a new session with a fresh kernel",
    run: (host) =>
      host.open({ continueLatest: false, fork: false, save: host.config.session.save }),
  },
  resume: {
    usage: "/resume [ID]",
    help: "list this folder's sessions, or go on with one",
    run: runResume,
  },
  compact: {
    usage: "/compact [WORDS]",
    help: "summarise what is old; the words say what to keep",
    run: runCompact,
  },
  goal: {
    usage: "/goal [WORDS]",
    help: "work until the goal is reached; clear takes it back",
    run: runGoal,
  },
  skills: {
    usage: "/skills",
    help: "the skills found here",
    anytime: true,
    run: (host) => host.show(runSkills([], { skills: host.chat.skills, warnings: [] }, false)),
  },
  "skill:NAME": {
    usage: "/skill:NAME [WORDS]",
    help: "a prompt that begins with a skill's text",
    run: (host) => host.say("Say which skill: /skills lists them."),
  },
  restart: {
    usage: "/restart",
    help: "end the kernel, start one from the last snapshot",
    anytime: true,
    run: runRestart,
  },
  usage: {
    usage: "/usage",
    help: "tokens, cost, and how full the context is",
    anytime: true,
    run: (host) => host.show(usageText(host.chat.app)),
  },
  quit: {
    usage: "/quit",
    help: "leave, as do /exit and Ctrl-D",
    anytime: true,
    run: (host) => host.leave(),
  },
  exit: { usage: "/exit", help: "", anytime: true, hidden: true, run: (host) => host.leave() },
};

function helpText(): string {
  const rows = Object.values(CHAT_COMMANDS).filter(({ hidden }) => hidden !== true);
  const width = Math.max(...rows.map(({ usage }) => usage.length));
  const commands = rows.map(({ usage, help }) => `  ${usage.padEnd(width)}  ${help}`).join("\n");
  return `${commands}\n${KEYS}`;
}

const KEYS = `
  Everything else is a prompt, also a line that begins with a path (/usr/bin,
  /tmp) or with a space. What you type while the model works is given to it
  before its next step.

  Enter              send; with a backslash before it, begin a new line
  Ctrl-J, Alt-Enter  begin a new line; pasted lines stay together
  Up, Down, Ctrl-R   go through what was entered before
  Ctrl-C             interrupt the cell; again, abort the turn; again, leave
  Ctrl-D, Ctrl-Z     leave; stop the program until fg
  Ctrl-A E B F U K W Y, Alt-B F D, Ctrl-L edit as in a shell; Tab completes`;

async function runModel(host: CommandHost, words: string): Promise<void> {
  const { config, chat } = host;
  if (words !== "") {
    for (const warning of await chat.changeModel(words)) host.say(`warning: ${warning}`);
    host.say(`model: ${chat.app.model.name}`);
    return;
  }
  const models = await availableModels(config, "");
  const usable = models.filter((model) => model.usable).map(({ selector }) => selector);
  const others = usable.filter((selector) => selector !== chat.app.model.name);
  const rest = others.length - MAX_MODELS;
  host.show(`${chat.app.model.name} answers now.`);
  if (others.length === 0) return;
  host.show(
    `/model takes another:\n${others
      .slice(0, MAX_MODELS)
      .map((name) => `  ${name}`)
      .join("\n")}`,
  );
  if (rest > 0) host.say(`  … ${rest} more: prime-agent models`);
}

function runEffort(host: CommandHost, words: string): void {
  if (words !== "") host.chat.changeEffort(words);
  host.say(`effort: ${host.chat.app.model.effort ?? "the model's default"}`);
}

async function runRestart(host: CommandHost): Promise<void> {
  const { provisioner } = host.chat.app;
  await provisioner.kill("the user restarted it");
  provisioner.prewarm();
  host.say("The kernel is ended; a fresh one starts with what the last snapshot holds.");
}

async function runResume(host: CommandHost, words: string): Promise<void> {
  const { cwd, environment, session } = host.config;
  if (words === "") {
    const options = { home: environment.home, cwd, all: false, format: undefined, json: false };
    host.show(runSessions(["list"], options).trimEnd());
    host.say("/resume ID goes on with one, also of another folder (sessions list --all).");
    return;
  }
  const path = findSession(environment.home, words, cwd);
  if (path === host.chat.app.session.path) {
    host.say("This is the session that you are in.");
    return;
  }
  await host.open({ continueLatest: false, fork: false, save: session.save, resume: path });
}

async function runCompact(host: CommandHost, words: string): Promise<void> {
  host.say("Compacting… Ctrl-C aborts it.");
  const { context } = host.chat.app;
  await host.interruptible((signal) =>
    context.compactNow(signal, words === "" ? undefined : words),
  );
}

async function runGoal(host: CommandHost, words: string): Promise<void> {
  const { goals, agent } = host.chat.app;
  if (words === "") {
    const goal = goals.current();
    host.say(goal ? goalLine(goal) : "There is no goal. /goal OBJECTIVE sets one.");
    return;
  }
  const isClear = words === "clear";
  const message = goals.set(isClear ? undefined : words);
  if (message !== undefined) agent.inbox.push({ source: "goal", content: message });
  if (isClear) host.say(message === undefined ? "There was no goal." : "The goal is taken back.");
  else await host.answer(undefined);
}

function goalLine(goal: { objective: string; status: string; tokensUsed: number }): string {
  const tokens = goal.tokensUsed.toLocaleString("en");
  return `goal (${goal.status}, ${tokens} tokens used): ${printable(goal.objective)}`;
}

function usageText(app: AgentApp): string {
  const { total, children, models } = sessionUsage(app.session.entries);
  const { tokens, contextWindow, percent } = app.context.status();
  const count = (value: number) => value.toLocaleString("en");
  const lines = models.map(({ model, usage, replies }) => {
    const cached = usage.cacheRead > 0 ? `, ${count(usage.cacheRead)} read from the cache` : "";
    return `  ${printable(model)}: ${count(usage.input + usage.cacheWrite)} in${cached}, ${count(usage.output)} out, ${replies} replies`;
  });
  if (children.totalTokens > 0) lines.push(`  sub-agents: ${count(children.totalTokens)} tokens`);
  const cost = total.cost.total > 0 ? `, US$ ${total.cost.total.toFixed(4)}` : "";
  return [
    `session: ${count(total.totalTokens)} tokens${cost}`,
    ...lines,
    `context: about ${count(tokens)} of ${count(contextWindow)} tokens, ${percent} %`,
  ].join("\n");
}
