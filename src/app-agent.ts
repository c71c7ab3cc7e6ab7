/**
 * Assembles one agent: its kernel, its context keeper, its loop. The root and
 * every sub-agent are made here, from what they share and what is their own.
 */

import { compactionSummary } from "./app-summary.ts";
import type { AgentEventBody, AgentOrigin, EventSink } from "./agent/events.ts";
import { namespaceNote } from "./agent/compaction-text.ts";
import { SessionContextKeeper } from "./agent/context-keeper.ts";
import type { InboxMessage } from "./agent/inbox.ts";
import { Agent, type ModelBinding, type SideWork } from "./agent/loop.ts";
import type { Session } from "./agent/session.ts";
import { textTokens } from "./agent/tokens.ts";
import {
  createKernelParts,
  endKernel,
  type KernelHost,
  type KernelPartsOptions,
} from "./app-kernel.ts";
import type { ProjectReading } from "./app-project.ts";
import { pythonSkills } from "./app-project.ts";
import { within } from "./async.ts";
import type { Config } from "./config.ts";
import type { HostHandlers } from "./kernel/host-bridge.ts";
import type { IpythonKernelProvisioner, KernelReadyEvent } from "./kernel/provisioner.ts";
import type { RestoreReport } from "./kernel/snapshot.ts";
import { debug } from "./log.ts";
import { IPYTHON_TOOL } from "./tool/ipython.ts";

/** How long the first request of a resumed session waits for its kernel. */
const REVIVAL_WAIT_MS = 5_000;

/** What all agents of a run share. */
export interface SharedParts {
  config: Config;
  host: KernelHost;
  reading: ProjectReading;
  emit: EventSink;
  chooseWhenBusy: KernelPartsOptions["chooseWhenBusy"];
}

/** What is an agent's own. */
export interface AgentSpec {
  session: Session;
  binding: ModelBinding;
  systemPrompt: string;
  depth: number;
  /** Absent for the root. */
  origin?: AgentOrigin;
  /** Answers what this agent's cells ask of the host. */
  handlers(): HostHandlers;
  sideWork?: SideWork;
  runChecks?(signal: AbortSignal): Promise<string | undefined>;
  nextPrompt?(): string | undefined;
  onLateReceipt?(receipt: unknown): void;
}

/** One agent with what it owns. */
export interface AgentUnit {
  agent: Agent;
  session: Session;
  provisioner: IpythonKernelProvisioner;
  context: SessionContextKeeper;
  /** Flushes the snapshot, ends the kernel and closes the session; by force after `killAfterMs`. */
  dispose(killAfterMs?: number): Promise<void>;
}

/** Assembles an agent. No kernel is started yet. */
export function assembleAgent(shared: SharedParts, spec: AgentSpec): AgentUnit {
  const emit = (event: AgentEventBody) =>
    shared.emit(spec.origin ? { ...event, agent: spec.origin } : event);
  const isResumed = shared.config.kernel.existing === undefined && hasCells(spec.session);
  const parts = createKernelParts(shared.host, {
    handlers: spec.handlers(),
    skills: pythonSkills(shared.reading.skills),
    depth: spec.depth,
    artifactsDir: () => spec.session.artifactsDir,
    chooseWhenBusy: shared.chooseWhenBusy,
    vision: () => agent.binding.model.input.includes("image"),
    onReady: (event) => {
      emit(kernelEvent(event));
      // After a restart the next result says what is back; after a resume only this does.
      if (!event.restarted && isResumed) agent.inbox.push(resumeNote(event.restore));
    },
    onLost: (error) => emit({ type: "kernel", state: "lost", reason: error.message }),
    ...(spec.onLateReceipt && { onLateReceipt: spec.onLateReceipt }),
  });
  const { provisioner, tool } = parts;
  const context = new SessionContextKeeper({
    session: spec.session,
    window: () => agent.binding.model,
    fixedTokens: textTokens(spec.systemPrompt) + textTokens(JSON.stringify(IPYTHON_TOOL)),
    summarize: (messages, instructions, signal) =>
      compactionSummary(agent, { messages, instructions, signal }),
    pruneNamespace: () => pruneNamespace(provisioner),
    emit,
  });
  const agent = new Agent({
    session: spec.session,
    binding: spec.binding,
    tool,
    systemPrompt: spec.systemPrompt,
    limits: shared.config.limits,
    emit,
    prewarm: () => provisioner.prewarm(),
    ...(isResumed && { revival: (signal) => kernelReady(provisioner, signal) }),
    context,
    ...(spec.sideWork && { sideWork: spec.sideWork }),
    ...(spec.runChecks && { runChecks: spec.runChecks }),
    ...(spec.nextPrompt && { nextPrompt: spec.nextPrompt }),
  });
  return {
    agent,
    session: spec.session,
    provisioner,
    context,
    async dispose(killAfterMs) {
      await endKernel(provisioner, killAfterMs);
      spec.session.close();
    },
  };
}

/** Whether cells ran in a kernel that is no more. */
function hasCells(session: Session): boolean {
  return session.entries.some(
    (entry) => entry.type === "message" && entry.message.role === "toolResult",
  );
}

/** Until the kernel can say what it holds; one that takes long says so later. */
async function kernelReady(
  provisioner: IpythonKernelProvisioner,
  signal: AbortSignal,
): Promise<void> {
  const started = provisioner.ensure(undefined, signal).then(
    () => undefined,
    (error) => debug("agent", "the kernel did not start", error),
  );
  await within(started, REVIVAL_WAIT_MS);
}

/** Tells the model which names a resumed session's kernel has again, and which not. */
function resumeNote(report: RestoreReport = { restored: [], failed: [] }): InboxMessage {
  return {
    source: "kernel-state",
    content: namespaceNote("resume", { names: report.restored, gone: report.failed }),
  };
}

/** Saves and prunes, then says which names exist and which are gone. */
async function pruneNamespace(provisioner: IpythonKernelProvisioner) {
  const report = await provisioner.prune();
  const names = await provisioner.listNamespaceNames();
  if (!names) return undefined;
  const gone = (report?.pruned ?? []).map((name) => ({ name, reason: "too large to keep" }));
  return { names: names.map(({ name }) => name), gone };
}

function kernelEvent(event: KernelReadyEvent): AgentEventBody {
  return {
    type: "kernel",
    state: event.restarted ? "restarted" : "ready",
    bootMs: event.bootMs,
    ...(event.ready && { python: event.ready.python }),
    ...(event.reason !== undefined && { reason: event.reason }),
  };
}
