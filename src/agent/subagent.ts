/**
 * One sub-agent over its life: queued, at work, done, woken again by a message, ended. Its parent holds
 * it (subagents.ts); the program puts its loop and kernel together when it first works.
 */

import { defer, TIMED_OUT, within, type Semaphore } from "../async.ts";
import { AbortedError, errorMessage } from "../errors.ts";
import { HostRequestError } from "../kernel/host-bridge.ts";
import { debug } from "../log.ts";
import { addUsage, emptyUsage, type Usage } from "../message.ts";
import type { AgentEventBody, AgentOrigin, EventSink, RunOutcome } from "./events.ts";
import type { DeliveryStatus, FamilyMember, MemberState } from "./family.ts";
import { Inbox, type InboxMessage } from "./inbox.ts";
import type { Agent, ModelBinding } from "./loop.ts";
import { renderMessage } from "./messages.ts";
import type { Session } from "./session.ts";
import { endingNotice, lastText, type Ending } from "./subagent-notice.ts";

/** The sub-agents of an agent, as far as others need them. */
export interface Household {
  readonly members: readonly FamilyMember[];
  /** Resolves when none works; undefined when none does now. */
  settled(): Promise<void> | undefined;
  /** Ends all work at once, without waiting for it. */
  cancelAll(reason: string): void;
  /** Ends everything, by force after `killAfterMs`. */
  dispose(killAfterMs?: number): Promise<void>;
  summaries(): SubagentSummary[];
}

/** The working parts of a sub-agent. */
export interface SubagentBody {
  readonly agent: Agent;
  readonly household: Household;
  /** Ends the kernel, by force after `killAfterMs`, and closes the session. */
  dispose(killAfterMs?: number): Promise<void>;
}

/** What the program puts a {@link SubagentBody} together from. */
export interface SubagentSpec {
  member: FamilyMember;
  session: Session;
  binding: ModelBinding;
  depth: number;
  origin: AgentOrigin;
  /** Takes the sub-agent's own events, which already name their origin. */
  emit: EventSink;
}

/** What a sub-agent is made with. */
export interface SubagentParts {
  id: string;
  name: string;
  depth: number;
  session: Session;
  binding: ModelBinding;
  parent: FamilyMember;
  origin: AgentOrigin;
  /** Bounds how many sub-agents of this depth work at once. */
  permits: Semaphore;
  assemble(spec: SubagentSpec): SubagentBody;
  emit: EventSink;
  /** Counts usage in the parent, as it arises. */
  onUsage(model: string, usage: Usage, priceKnown: boolean): void;
  /** Stores what a piece of work used. */
  charge(usage: Usage): void;
  /** Stores that a piece of work has begun, or ended with nothing left to report. */
  remember(state: "working" | "settled"): void;
}

/** What a run's result says about one sub-agent. */
export interface SubagentSummary {
  id: string;
  name: string;
  /** The id of the sub-agent that spawned it; null for the root's. */
  parentId: string | null;
  state: MemberState;
  model: string;
  turns: number;
  toolCalls: number;
  usage: Usage;
  /** Whether `usage.cost` holds all that it cost. */
  costKnown: boolean;
  sessionFile: string | null;
  error: string | null;
}

/** What one piece of work, from a task or message to its end, has led to so far. */
interface Work {
  /** Index of its first entry in the session. */
  since: number;
  askedByParent: boolean;
  replied: boolean;
  kernelLoss?: string;
}

/** How long work that was cancelled may take to end before its kernel is taken away. */
const UNWIND_MS = 1_500;

/** See the head of this file. */
export class Subagent implements FamilyMember {
  readonly #parts: SubagentParts;
  /** What waits while there is no loop to take it. */
  readonly #early = new Inbox();
  readonly #abort = new AbortController();
  readonly #usage = emptyUsage();
  #uncharged = emptyUsage();
  #body: SubagentBody | undefined;
  #working: Promise<void> | undefined;
  #work: Work = { since: 0, askedByParent: false, replied: false };
  #state: MemberState = "queued";
  #error: string | undefined;
  #costKnown = true;

  constructor(parts: SubagentParts) {
    this.#parts = parts;
  }

  get id(): string {
    return this.#parts.id;
  }

  get name(): string {
    return this.#parts.name;
  }

  get parent(): FamilyMember {
    return this.#parts.parent;
  }

  get sessionId(): string {
    return this.#parts.session.id;
  }

  get session(): Session {
    return this.#parts.session;
  }

  get children(): readonly FamilyMember[] {
    return this.#body?.household.members ?? [];
  }

  get state(): MemberState {
    return this.#state;
  }

  /** `provider/id`. */
  get model(): string {
    const { provider, id } = this.#parts.binding.model;
    return `${provider}/${id}`;
  }

  /** Resolves when no work is under way. */
  get working(): Promise<void> | undefined {
    return this.#working;
  }

  /** Starts on its task, as soon as there is a place. */
  start(task: string): void {
    this.#begin(renderMessage(this.parent, this, task));
    this.#work.askedByParent = true;
  }

  deliver(message: InboxMessage, sender: FamilyMember): DeliveryStatus {
    if (this.#abort.signal.aborted)
      throw new HostRequestError(`The sub-agent "${this.name}" was cancelled.`);
    const reads = this.#working
      ? this.#state === "running" && this.#body?.agent.idle === true
      : this.#parts.permits.available;
    if (!this.#working) this.#begin();
    (this.#body?.agent.inbox ?? this.#early).push({
      ...message,
      onDelivered: () => {
        if (sender === this.parent) this.#work.askedByParent = true;
        message.onDelivered?.();
      },
    });
    return reads ? "delivered" : "queued";
  }

  markReplied(): void {
    this.#work.replied = true;
  }

  /** Ends all work, its own sub-agents' too. Returns at once; nothing more is heard of it. */
  cancel(reason: string): void {
    if (this.#abort.signal.aborted) return;
    this.#body?.household.cancelAll(`its parent "${this.name}" was cancelled`);
    this.#abort.abort(new AbortedError("shutdown", reason));
    this.#chargeUsage();
    if (!this.#working) return;
    this.#error = reason;
    this.#enter("cancelled");
  }

  /** The notice that its parent is owed when its work was cancelled before it had sent anything. */
  cancellationNotice(): InboxMessage | undefined {
    if (this.#state !== "cancelled" || this.#work.replied) return undefined;
    return endingNotice(this, this.#ending({ outcome: "cancelled", reason: this.#error ?? "" }));
  }

  /** Ends its kernel and closes its session, after a moment for work to unwind; all of it in about `killAfterMs`. */
  async dispose(killAfterMs = Number.POSITIVE_INFINITY): Promise<void> {
    const begin = performance.now();
    this.cancel("the program ended it");
    const unwindMs = Math.min(UNWIND_MS, killAfterMs / 2);
    if (this.#working && (await within(this.#working, unwindMs)) === TIMED_OUT)
      debug("subagent", `${this.name} did not unwind in time`);
    const leftMs = Math.max(killAfterMs - (performance.now() - begin), 0);
    if (this.#body) await this.#body.dispose(Number.isFinite(leftMs) ? leftMs : undefined);
    else this.session.close();
  }

  /** What it has done and used so far; with its own sub-agents' after it. */
  summaries(parentId: string | null): SubagentSummary[] {
    const state = this.#body?.agent.state;
    const own: SubagentSummary = {
      id: this.id,
      name: this.name,
      parentId,
      state: this.#state,
      model: this.model,
      turns: state?.turns ?? 0,
      toolCalls: state?.toolCalls ?? 0,
      usage: this.#usage,
      costKnown: this.#costKnown,
      sessionFile: this.session.path ?? null,
      error: this.#error ?? null,
    };
    const below = this.#body?.household.summaries() ?? [];
    return [own, ...below.map((child) => ({ ...child, parentId: child.parentId ?? this.id }))];
  }

  #begin(prompt?: string): void {
    this.#enter("queued");
    const { promise, resolve } = defer<void>();
    this.#working = promise;
    this.#startWork();
    void this.#workThrough(prompt).then(() => {
      this.#working = undefined;
      resolve();
    });
  }

  #startWork(): void {
    const since = this.session.entries.length;
    this.#work = { since, askedByParent: false, replied: false };
    this.#parts.remember("working");
  }

  /** Works until nothing waits. Never throws. */
  async #workThrough(prompt: string | undefined): Promise<void> {
    let release: (() => void) | undefined;
    try {
      release = await this.#parts.permits.acquire(this.#abort.signal);
      await this.#workOnce(prompt);
      // A message that came at the last moment starts another piece of work.
      while (this.#body && this.#body.agent.inbox.size > 0 && !this.#abort.signal.aborted) {
        this.#startWork();
        await this.#workOnce(undefined);
      }
    } catch (error) {
      if (this.#abort.signal.aborted) debug("subagent", `${this.name} ended early`, error);
      else
        this.#end({ outcome: "error", reason: `it could not be started: ${errorMessage(error)}` });
    } finally {
      release?.();
      this.#chargeUsage();
    }
  }

  async #workOnce(prompt: string | undefined): Promise<void> {
    this.#enter("running");
    const { agent, household } = (this.#body ??= this.#assemble());
    const outcome = await agent.run(prompt, this.#abort.signal);
    if (this.#abort.signal.aborted) return;
    if (outcome.subtype !== "success") household.cancelAll(`its parent "${this.name}" failed`);
    this.#end(endingOf(outcome));
  }

  #assemble(): SubagentBody {
    const { session, binding, depth, origin } = this.#parts;
    for (const message of session.warnings) this.#emit({ type: "warning", message });
    const body = this.#parts.assemble({
      member: this,
      session,
      binding,
      depth,
      origin,
      emit: (event) => this.#onEvent(event),
    });
    body.agent.state.onUsage = (model, usage, priceKnown) => {
      addUsage(this.#usage, usage);
      addUsage(this.#uncharged, usage);
      this.#costKnown &&= priceKnown;
      this.#parts.onUsage(model, usage, priceKnown);
    };
    for (const message of this.#early.take()) body.agent.inbox.push(message);
    return body;
  }

  /** Ends a piece of work: the parent learns of it here unless it has heard from the sub-agent. */
  #end({ outcome, reason }: Pick<Ending, "outcome" | "reason">): void {
    this.#error = reason;
    const { replied, askedByParent } = this.#work;
    if (!replied && (askedByParent || outcome === "error")) {
      const ending = this.#ending({ outcome, ...(reason !== undefined && { reason }) });
      this.parent.deliver(endingNotice(this, ending), this);
    } else if (!replied) {
      // Nobody waits for more; after a reply it is the reply that must arrive.
      this.#parts.remember("settled");
    }
    this.#enter(outcome);
  }

  #ending(known: Pick<Ending, "outcome" | "reason">): Ending {
    const { kernelLoss, since } = this.#work;
    return {
      ...known,
      ...(kernelLoss !== undefined && { kernelLoss }),
      lastText: lastText(this.session.entries, since),
    };
  }

  #chargeUsage(): void {
    if (this.#uncharged.totalTokens === 0) return;
    this.#parts.charge(this.#uncharged);
    this.#uncharged = emptyUsage();
  }

  #enter(state: MemberState): void {
    this.#state = state;
    const ended = state !== "queued" && state !== "running";
    this.#send({ type: "child", state, ...(ended && { usage: structuredClone(this.#usage) }) });
  }

  #onEvent(event: Parameters<EventSink>[0]): void {
    if (event.type === "kernel" && event.state === "lost")
      this.#work.kernelLoss = event.reason ?? "for an unknown reason";
    // Nobody waits for more of what was cancelled, and its end was told already.
    if (!this.#abort.signal.aborted) this.#parts.emit(event);
  }

  #emit(event: AgentEventBody): void {
    this.#onEvent({ ...event, agent: this.#parts.origin });
  }

  #send(event: AgentEventBody): void {
    this.#parts.emit({ ...event, agent: this.#parts.origin });
  }
}

function endingOf({ subtype, error }: RunOutcome): Pick<Ending, "outcome" | "reason"> {
  if (subtype === "success") return { outcome: "completed" };
  return { outcome: "error", reason: error?.message ?? subtype };
}
