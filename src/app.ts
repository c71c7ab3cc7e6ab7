/**
 * Builds the parts of a run once and ties them together: model, session,
 * skills, prompt, kernel, agent. What is built here is owned here: `dispose`
 * ends all of it.
 */

import type { EventSink } from "./agent/events.ts";
import type { SessionContextKeeper } from "./agent/context-keeper.ts";
import type { Agent } from "./agent/loop.ts";
import type { Session } from "./agent/session.ts";
import type { Skill } from "./agent/skill.ts";
import type { SubagentSummary } from "./agent/subagent.ts";
import type { SharedParts } from "./app-agent.ts";
import {
  createModelSwitch,
  modelName,
  redacted,
  withSavedEffort,
  type ModelSwitch,
} from "./app-binding.ts";
import { runChecks } from "./app-checks.ts";
import { assembleRoot } from "./app-family.ts";
import { redactDeltas } from "./app-deltas.ts";
import { readImages } from "./app-images.ts";
import { initFields } from "./app-init.ts";
import { createKernelHost } from "./app-kernel.ts";
import { bindModel, bindScript, readScript, rebindModel, type ModelChoice } from "./app-model.ts";
import { readProject } from "./app-project.ts";
import { createRedactor } from "./app-redact.ts";
import { openSession } from "./app-session.ts";
import type { Config } from "./config.ts";
import type { IpythonKernelProvisioner } from "./kernel/provisioner.ts";
import type { ImageBlock, TextBlock } from "./message.ts";

/** What a run is told from outside while it goes on. */
export interface AppHooks {
  emit: EventSink;
  chooseWhenBusy: SharedParts["chooseWhenBusy"];
  /** Binds another model than the configured one: the demo's script. */
  bind?(): Promise<ModelChoice>;
}

/** A run's parts. Owns the kernel and the session. */
export interface AgentApp {
  agent: Agent;
  session: Session;
  provisioner: IpythonKernelProvisioner;
  skills: Skill[];
  /** Of everything read at the start. */
  warnings: string[];
  /** `provider/id` of the model that answers now. */
  readonly modelName: string;
  model: ModelSwitch;
  /** How full the context is, and a compaction on demand. */
  context: Pick<SessionContextKeeper, "status" | "compactNow">;
  goals: GoalControl;
  /** The facts that `system/init` sends beside its own. */
  initFields: object;
  /** Milliseconds from the program's start until this was built. */
  startupMs: number;
  redact(text: string): string;
  /** A prompt with images, as message content. @throws UsageError for an unusable file. */
  promptContent(
    text: string,
    images: readonly string[],
  ): Promise<string | Array<TextBlock | ImageBlock>>;
  /** Warnings of the session since the last call, such as that it can't be saved. */
  laterWarnings(): string[];
  /** Every sub-agent of this run, in the order of spawning, each followed by its own. */
  agents(): SubagentSummary[];
  /** Ends the work of all sub-agents; what they did counts, and the model learns of it at its next turn. */
  stopAgents(reason: string): void;
  /** Ends kernel, helpers and session; with `killAfterMs`, by force when it takes longer. */
  dispose(killAfterMs?: number): Promise<void>;
}

/** The goal of the session, for a person to see, to set and to take back. */
export interface GoalControl {
  /** The goal that was set last, unless it was taken back. */
  current(): { objective: string; status: string; tokensUsed: number } | undefined;
  /** Sets a goal, or takes it back; returns what the agent must be told, undefined when nothing changed. */
  set(objective: string | undefined): string | undefined;
}

/** Builds everything that one run needs. Nothing is sent and no kernel is started yet. */
export async function createApp(config: Config, hooks: AppHooks): Promise<AgentApp> {
  const session = openSession(config);
  try {
    const choice = await (hooks.bind?.() ?? bindConfigured(config, session));
    return await assemble(config, hooks, choice, session);
  } catch (error) {
    session.close();
    throw error;
  }
}

async function bindConfigured(config: Config, session: Session): Promise<ModelChoice> {
  if (config.script !== undefined) return await bindScript(readScript(config.cwd, config.script));
  const saved = session.model && `${session.model.provider}/${session.model.modelId}`;
  return await bindModel(config, saved);
}

async function assemble(
  config: Config,
  hooks: AppHooks,
  choice: ModelChoice,
  session: Session,
): Promise<AgentApp> {
  const { chooseWhenBusy } = hooks;
  const redactor = createRedactor(config, choice.binding.apiKey);
  const emit = redactDeltas(redactor, hooks.emit);
  const binding = redacted(withSavedEffort(config, choice.binding, session), redactor);
  const host = createKernelHost(config, redactor.variables);
  const reading = await readProject(config, host);
  const { unit, subagents, goals } = assembleRoot(
    {
      config,
      host,
      reading,
      emit,
      chooseWhenBusy,
      bindModel: async (selector) =>
        redacted((await rebindModel(config, selector)).binding, redactor),
      findModels: async (query, limit) =>
        (await import("./app-models.ts")).usableModels(config, query, limit),
    },
    {
      session,
      binding,
      ...(config.checks.length > 0 && {
        runChecks: (signal) => runChecks(config, host.env, emit, signal),
      }),
    },
  );
  const { agent, provisioner } = unit;
  let warned = session.warnings.length;
  return {
    agent,
    session,
    provisioner,
    skills: reading.skills,
    warnings: [...choice.warnings, ...reading.warnings, ...session.warnings],
    get modelName() {
      return modelName(agent.binding);
    },
    model: createModelSwitch(config, agent, session, redactor),
    context: unit.context,
    goals,
    initFields: initFields(config, { binding, session, reading }),
    startupMs: performance.now(),
    redact: redactor.redact,
    promptContent: (text, images) => readImages(text, images),
    laterWarnings: () => session.warnings.slice(warned, (warned = session.warnings.length)),
    agents: () => subagents.summaries(),
    stopAgents: (reason) => subagents.stopAll(reason),
    async dispose(killAfterMs) {
      await Promise.all([subagents.dispose(killAfterMs), unit.dispose(killAfterMs)]);
      host.forkServers.dispose();
    },
  };
}
