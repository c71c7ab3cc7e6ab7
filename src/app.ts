/**
 * Builds the parts of a run once and ties them together: model, session,
 * skills, prompt, kernel, agent. What is built here is owned here: `dispose`
 * ends all of it.
 */

import { join } from "node:path";
import { currentBranch, findRepositoryRoot, readContextFiles } from "./agent/context-files.ts";
import type { EventSink } from "./agent/events.ts";
import { Agent, type ModelBinding } from "./agent/loop.ts";
import { buildSystemPrompt } from "./agent/prompt.ts";
import { findSession, forkSession, latestSession, listSessions } from "./agent/session-store.ts";
import { Session } from "./agent/session.ts";
import type { Skill } from "./agent/skill.ts";
import { discoverSkills } from "./agent/skills.ts";
import {
  createKernelHost,
  createKernelParts,
  type KernelHost,
  type KernelPartsOptions,
} from "./app-kernel.ts";
import { bindModel, type ModelChoice } from "./app-model.ts";
import { readImages } from "./app-images.ts";
import { createRedactor } from "./app-redact.ts";
import { delay } from "./async.ts";
import type { Config } from "./config.ts";
import { UsageError } from "./errors.ts";
import type { KernelReadyEvent, IpythonKernelProvisioner } from "./kernel/provisioner.ts";
import type { ImageBlock, TextBlock } from "./message.ts";
import { IPYTHON_TOOL } from "./tool/ipython.ts";

/** What a run is told from outside while it goes on. */
export interface AppHooks {
  emit: EventSink;
  chooseWhenBusy: KernelPartsOptions["chooseWhenBusy"];
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
  /** `provider/id`. */
  modelName: string;
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
  /** Ends kernel, helpers and session; with `killAfterMs`, by force when it takes longer. */
  dispose(killAfterMs?: number): Promise<void>;
}

/** Builds everything that one run needs. Nothing is sent and no kernel is started yet. */
export async function createApp(config: Config, hooks: AppHooks): Promise<AgentApp> {
  const choice = await (hooks.bind?.() ?? bindModel(config));
  const session = openSession(config);
  try {
    return await assemble(config, hooks, choice, session);
  } catch (error) {
    session.close();
    throw error;
  }
}

async function assemble(
  config: Config,
  hooks: AppHooks,
  choice: ModelChoice,
  session: Session,
): Promise<AgentApp> {
  const { binding } = choice;
  const redact = createRedactor(config, binding.apiKey);
  const host = createKernelHost(config, redact.variables);
  const reading = await readProject(config, host);
  const warnings = [...choice.warnings, ...reading.warnings, ...session.warnings];
  const parts = createKernelParts(host, {
    handlers: {},
    skills: pythonSkills(reading.skills),
    depth: session.depth ?? 0,
    artifactsDir: () => session.artifactsDir,
    chooseWhenBusy: hooks.chooseWhenBusy,
    onReady: (event) => hooks.emit(kernelEvent(event)),
    onLost: (error) => hooks.emit({ type: "kernel", state: "lost", reason: error.message }),
  });
  const agent = new Agent({
    session,
    binding,
    tool: parts.tool,
    systemPrompt: reading.systemPrompt,
    limits: config.limits,
    emit: hooks.emit,
    prewarm: () => parts.provisioner.prewarm(),
  });
  let warned = session.warnings.length;
  return {
    agent,
    session,
    provisioner: parts.provisioner,
    skills: reading.skills,
    warnings,
    modelName: modelName(binding),
    initFields: initFields(config, binding, session, reading),
    startupMs: performance.now(),
    redact: redact.redact,
    promptContent: (text, images) => readImages(text, images),
    laterWarnings: () => session.warnings.slice(warned, (warned = session.warnings.length)),
    async dispose(killAfterMs) {
      const ended = parts.provisioner.dispose();
      if (killAfterMs === undefined) await ended;
      else
        await Promise.race([
          ended,
          delay(killAfterMs).then(() => parts.provisioner.kill("the run was ended")),
        ]);
      host.forkServers.dispose();
      session.close();
    },
  };
}

/** What the project and the person's folders say: skills, context files, and the prompt made of them. */
interface ProjectReading {
  skills: Skill[];
  contextFiles: string[];
  systemPrompt: string;
  warnings: string[];
}

async function readProject(config: Config, host: KernelHost): Promise<ProjectReading> {
  const { prompt, cwd, environment } = config;
  const repositoryRoot = findRepositoryRoot(cwd);
  const context = prompt.contextFiles
    ? readContextFiles({ cwd, home: environment.home, repositoryRoot })
    : { files: [], warnings: [] };
  const assets = await host.assets();
  const found = discoverSkills({
    cwd,
    home: environment.home,
    userHome: environment.userHome,
    repositoryRoot,
    paths: prompt.skillPaths,
    builtinDir: config.bare ? undefined : join(assets.root, "skills"),
    discover: prompt.skills,
    trustProject: prompt.trustProject,
  });
  const branch = repositoryRoot && currentBranch(repositoryRoot);
  const systemPrompt = buildSystemPrompt({
    ...(prompt.systemPrompt !== undefined && { base: prompt.systemPrompt }),
    ...(prompt.appendSystemPrompt !== undefined && { append: prompt.appendSystemPrompt }),
    maySpawn: config.maxDepth > 0,
    skills: found.skills,
    contextFiles: context.files,
    facts: {
      cwd,
      date: new Date().toISOString().slice(0, 10),
      platform: `${process.platform} ${process.arch}`,
      ...(branch && { gitBranch: branch }),
    },
  });
  return {
    skills: found.skills,
    contextFiles: context.files.map((file) => file.path),
    systemPrompt,
    warnings: [...context.warnings, ...found.warnings],
  };
}

/** The session that the flags ask for. @throws UsageError, SessionLockedError, SessionUnreadableError. */
export function openSession(config: Config): Session {
  const { session, cwd, environment } = config;
  const options = {
    cwd,
    ...(session.id !== undefined && { id: session.id }),
    ...(session.name !== undefined && { name: session.name }),
  };
  const path = savedSession(config);
  if (path !== undefined && session.fork)
    return forkSession(path, { ...options, home: environment.home });
  if (path !== undefined) return Session.open(path);
  return session.save
    ? Session.create({ ...options, home: environment.home })
    : Session.inMemory(options);
}

/** The file of the session to go on with; undefined for a new one. */
function savedSession({ session, cwd, environment }: Config): string | undefined {
  if (session.resume) return findSession(environment.home, session.resume, cwd);
  const latest = session.resume === "" ? listSessions(environment.home)[0] : undefined;
  if (session.resume === "" && !latest) throw new UsageError("there is no saved session yet");
  if (latest) return latest.path;
  if (!session.continueLatest) return undefined;
  // Like the tools that people know: nothing to go on with means a new session.
  return latestSession(environment.home, cwd)?.path;
}

function pythonSkills(skills: readonly Skill[]): KernelPartsOptions["skills"] {
  return skills.flatMap(({ name, python }) =>
    python ? [{ name, import_name: python.importName, path: python.sourceDir }] : [],
  );
}

function kernelEvent(event: KernelReadyEvent): Parameters<EventSink>[0] {
  return {
    type: "kernel",
    state: event.restarted ? "restarted" : "ready",
    bootMs: event.bootMs,
    ...(event.ready && { python: event.ready.python }),
    ...(event.reason !== undefined && { reason: event.reason }),
  };
}

function modelName({ model }: ModelBinding): string {
  return `${model.provider}/${model.id}`;
}

function initFields(
  config: Config,
  binding: ModelBinding,
  session: Session,
  reading: ProjectReading,
): object {
  return {
    cwd: config.cwd,
    model: modelName(binding),
    tools: [IPYTHON_TOOL.name],
    skills: reading.skills.filter((skill) => !skill.hidden).map((skill) => skill.name),
    context_files: reading.contextFiles,
    session_file: session.path ?? null,
    resumed: session.entries.some((entry) => entry.type === "message"),
    limits: {
      timeout_ms: config.limits.timeoutMs ?? null,
      cell_timeout_ms: config.kernel.cellTimeoutMs ?? null,
      max_turns: config.limits.maxTurns ?? null,
      max_tokens: config.limits.maxTokens ?? null,
      max_budget_usd: config.limits.maxBudgetUsd ?? null,
      max_retries: config.limits.maxRetries,
    },
  };
}
