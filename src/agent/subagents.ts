/** The sub-agents of one agent: admitted, listed, deleted, waited for, ended with it. */

import { throwIfAborted, type Semaphore } from "../async.ts";
import { errorMessage, PrimeAgentError } from "../errors.ts";
import { HostRequestError } from "../kernel/host-bridge.ts";
import { debug } from "../log.ts";
import type { ToolCallBlock } from "../message.ts";
import { EFFORTS } from "../providers/provider.ts";
import type { EventSink } from "./events.ts";
import { findMember, type FamilyMember } from "./family.ts";
import type { Agent, ModelBinding } from "./loop.ts";
import type { RunLimits } from "./run-state.ts";
import { Session } from "./session.ts";
import { checkedName, defaultName } from "./subagent-name.ts";
import { recordSubagent } from "./subagent-records.ts";
import {
  Subagent,
  type Household,
  type SubagentBody,
  type SubagentSpec,
  type SubagentSummary,
} from "./subagent.ts";

/** What an agent's sub-agents are made with. */
export interface SubagentsOptions {
  /** The agent that spawns. */
  self: FamilyMember;
  session: Session;
  /** Its loop; asked for only once there is one. */
  agent(): Agent;
  /** How deep it is; 0 for the root. */
  depth: number;
  /** How deep sub-agents may nest. */
  maxDepth: number;
  /** Bounds how many of its sub-agents work at once. */
  permits: Semaphore;
  /** Binds the model that a selector names. @throws PrimeAgentError saying what is missing. */
  bindModel(selector: string): Promise<ModelBinding>;
  assemble(spec: SubagentSpec): SubagentBody;
  emit: EventSink;
}

/** A request for a sub-agent. */
export interface SpawnRequest {
  task: string;
  name: string | undefined;
  /** A model's selector; the agent's own model when absent. */
  model: string | undefined;
  thinking: string | undefined;
}

/** A sub-agent as cells see it, in the names of the host requests. */
export interface SubagentListing {
  rlm_child_id: string;
  active_session_id: string;
  session_id: string;
  session_name: string;
  /** Empty when nothing is saved. */
  session_dir: string;
  model: string;
  status: "running" | "completed" | "error";
}

/** Finished ones keep their kernels, since they can be asked again; that has to have an end. */
const MAX_MEMBERS = 100;
const ID_CHARS = 8;

/** See the head of this file. */
export class Subagents implements Household {
  readonly #options: SubagentsOptions;
  readonly #members: Subagent[] = [];
  /** Those that were deleted; their names stay reserved while they are in `#leaving`. */
  readonly #deleted: Subagent[] = [];
  readonly #leaving = new Map<Subagent, Promise<void>>();
  #closed = false;

  constructor(options: SubagentsOptions) {
    this.#options = options;
  }

  get members(): readonly Subagent[] {
    return this.#members;
  }

  /**
   * Admits a sub-agent; it works on its own from then on.
   *
   * @throws HostRequestError when it may not be or its options are wrong; AbortedError.
   */
  async spawn(request: SpawnRequest, signal: AbortSignal): Promise<Subagent> {
    this.#checkAdmission();
    const binding = await this.#bind(request);
    throwIfAborted(signal);
    this.#checkAdmission();
    const child = this.#admit(request, binding);
    this.#members.push(child);
    child.start(request.task);
    return child;
  }

  /** All that can be reached, in the order of their spawning. */
  list(): SubagentListing[] {
    return this.#members.map(listing);
  }

  /**
   * Ends and forgets a sub-agent. Returns at once: what it left running is ended in the background.
   *
   * @throws HostRequestError when `target` means none, or more than one.
   */
  delete(target: string): { subagent: SubagentListing; outcome: string } {
    const child = findMember(this.#members, target, "sub-agent");
    this.#members.splice(this.#members.indexOf(child), 1);
    this.#deleted.push(child);
    child.cancel("it was deleted");
    const subagent = listing(child);
    const leaving = this.#end(child).finally(() => this.#leaving.delete(child));
    this.#leaving.set(child, leaving);
    return { subagent, outcome: child.state };
  }

  settled(): Promise<void> | undefined {
    const working = this.#members
      .map((child) => child.working)
      .filter((work) => work !== undefined);
    const pending = [...working, ...this.#leaving.values()];
    return pending.length > 0 ? Promise.all(pending).then(() => undefined) : undefined;
  }

  cancelAll(reason: string): void {
    for (const child of this.#members) child.cancel(reason);
  }

  /** The same, and each that had not reported leaves its notice. */
  stopAll(reason: string): void {
    for (const child of this.#members.filter(({ working }) => working !== undefined)) {
      child.cancel(reason);
      this.#notify(child);
    }
  }

  async dispose(killAfterMs?: number): Promise<void> {
    this.#closed = true;
    this.cancelAll("its parent ended");
    const ends = this.#members.map((child) => disposeQuietly(child, killAfterMs));
    await Promise.all([...ends, ...this.#leaving.values()]);
  }

  summaries(): SubagentSummary[] {
    return [...this.#members, ...this.#deleted].flatMap((child) => child.summaries(null));
  }

  #checkAdmission(): void {
    const { depth, maxDepth } = this.#options;
    if (this.#closed) throw new HostRequestError("The program is ending; it starts no sub-agents.");
    if (depth >= maxDepth) {
      throw new HostRequestError(
        `No sub-agent can be started here: agents may nest ${maxDepth} deep (RLM_MAX_DEPTH), and this one is at depth ${depth}. Do the work yourself.`,
      );
    }
    if (this.#members.length >= MAX_MEMBERS) {
      throw new HostRequestError(
        `There are ${MAX_MEMBERS} sub-agents already, the most that may be; delete some with rlm.delete_subagent.`,
      );
    }
  }

  async #bind({ model, thinking }: SpawnRequest): Promise<ModelBinding> {
    const effort = EFFORTS.find((level) => level === thinking?.trim().toLowerCase());
    if (thinking !== undefined && !effort)
      throw new HostRequestError(`thinking is one of ${EFFORTS.join(", ")}, not "${thinking}".`);
    const binding =
      model === undefined ? this.#options.agent().binding : await this.#bindNamed(model);
    return effort ? { ...binding, effort } : binding;
  }

  async #bindNamed(model: string): Promise<ModelBinding> {
    try {
      return await this.#options.bindModel(model);
    } catch (error) {
      if (!(error instanceof PrimeAgentError)) throw error;
      throw new HostRequestError(`${error.message}. ${error.hint}`.trim(), { cause: error });
    }
  }

  #admit(request: SpawnRequest, binding: ModelBinding): Subagent {
    const { self, session: parentSession, depth, permits, assemble, emit } = this.#options;
    const taken = [...this.#members, ...this.#leaving.keys()].map(({ name }) => name);
    const sessionId = this.#newSessionId();
    const id = sessionId.slice(0, ID_CHARS);
    const name =
      request.name === undefined
        ? defaultName(request.task, id, taken)
        : checkedName(request.name, taken);
    const spawner = spawningReply(parentSession, this.#options.agent().currentCall);
    const session = childSession(parentSession, { id: sessionId, name, depth: depth + 1 });
    return new Subagent({
      id,
      name,
      depth: depth + 1,
      session,
      binding,
      parent: self,
      origin: { id, name, parentToolCallId: spawner?.callId },
      permits,
      assemble,
      emit,
      onUsage: (model, usage, priceKnown) =>
        this.#options.agent().state.addUsage(model, usage, priceKnown),
      charge: (usage) => {
        if (spawner) parentSession.attributeChildUsage(spawner.entryId, usage);
      },
      remember: (state) =>
        recordSubagent(parentSession, {
          id,
          sessionId,
          name,
          sessionFile: session.path ?? null,
          state,
        }),
    });
  }

  /** One whose beginning, which is the short id, is not in use. */
  #newSessionId(): string {
    const ids = new Set([...this.#members, ...this.#deleted].map((child) => child.id));
    for (;;) {
      const id = crypto.randomUUID();
      if (!ids.has(id.slice(0, ID_CHARS))) return id;
    }
  }

  async #end(child: Subagent): Promise<void> {
    await disposeQuietly(child, DELETED_KILL_AFTER_MS);
    if (!this.#closed) this.#notify(child);
  }

  #notify(child: Subagent): void {
    const notice = child.cancellationNotice();
    if (notice) this.#options.self.deliver(notice, child);
  }
}

/**
 * Stops the root's sub-agents when the whole run has passed its limits of tokens or cost. They are
 * charged to the root, which would learn only at its next turn that nothing is left.
 */
export function watchLimits(root: Agent, limits: RunLimits, subagents: Subagents): void {
  const { maxTokens, maxBudgetUsd } = limits;
  const shared = {
    ...(maxTokens !== undefined && { maxTokens }),
    ...(maxBudgetUsd !== undefined && { maxBudgetUsd }),
  };
  root.state.onUsage = () => {
    const passed = root.state.exceeded(shared, "");
    if (passed?.error) subagents.stopAll(passed.error.message);
  };
}

/** How long a deleted sub-agent's kernel may take to end in good order. */
const DELETED_KILL_AFTER_MS = 2_000;

/** One that can't be ended in good order must not keep the others from it. */
async function disposeQuietly(child: Subagent, killAfterMs: number | undefined): Promise<void> {
  try {
    await child.dispose(killAfterMs);
  } catch (error) {
    debug("subagents", `${child.name} could not be ended: ${errorMessage(error)}`, error);
  }
}

/** The session of a child, in the folder of its parent's artifacts; in memory when that one is. */
function childSession(
  parent: Session,
  child: { id: string; name: string; depth: number },
): Session {
  const options = { cwd: parent.cwd, ...child };
  const home = parent.artifactsDir;
  if (home === undefined || parent.path === undefined) return Session.inMemory(options);
  return Session.create({ ...options, home, parent: parent.path });
}

/** The reply whose call spawns, or spawned the task that does: the last one with a call. */
function spawningReply(
  session: Session,
  current: ToolCallBlock | undefined,
): { entryId: string; callId: string } | undefined {
  for (const entry of session.entries.toReversed()) {
    if (entry.type !== "message" || entry.message.role !== "assistant") continue;
    const call = entry.message.content.findLast((block) => block.type === "toolCall");
    if (call) return { entryId: entry.id, callId: current?.id ?? call.id };
  }
  return undefined;
}

function listing(child: Subagent): SubagentListing {
  const { id, sessionId, name, model, state } = child;
  return {
    rlm_child_id: id,
    active_session_id: sessionId,
    session_id: sessionId,
    session_name: name,
    session_dir: child.session.artifactsDir ?? "",
    model,
    status:
      state === "queued" || state === "running"
        ? "running"
        : state === "completed"
          ? "completed"
          : "error",
  };
}
