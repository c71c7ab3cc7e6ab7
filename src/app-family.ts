/**
 * Assembles the agents of a run as one family: the root now, each sub-agent when it first works. All are
 * made by the same steps, from what the run shares and what is their own.
 */

import type { EventSink } from "./agent/events.ts";
import type { FamilyMember } from "./agent/family.ts";
import { Goals } from "./agent/goals.ts";
import { createHostHandlers, type FoundModel } from "./agent/host-handlers.ts";
import type { ModelBinding } from "./agent/loop.ts";
import { RootMember } from "./agent/root-member.ts";
import type { Session } from "./agent/session.ts";
import { unreportedNotice } from "./agent/subagent-records.ts";
import type { SubagentSpec } from "./agent/subagent.ts";
import { Subagents, watchLimits } from "./agent/subagents.ts";
import { assembleAgent, type AgentSpec, type AgentUnit, type SharedParts } from "./app-agent.ts";
import { Semaphore } from "./async.ts";

/** What the family shares beside what every agent needs. */
export interface FamilyParts extends SharedParts {
  /** Binds the model that a selector names. @throws PrimeAgentError. */
  bindModel(selector: string): Promise<ModelBinding>;
  findModels(query: string, limit: number): Promise<FoundModel[]>;
}

/** What the root is made from. */
export interface RootSpec {
  session: Session;
  binding: ModelBinding;
  runChecks?(signal: AbortSignal): Promise<string | undefined>;
}

/** The root with its family. */
export interface RootAgent {
  unit: AgentUnit;
  subagents: Subagents;
  goals: Goals;
}

/** So many sub-agents of one depth work at once; the others wait for a place. */
const MAX_WORKING = 8;

/** Assembles the root. No kernel is started yet. */
export function assembleRoot(parts: FamilyParts, spec: RootSpec): RootAgent {
  const family = new Family(parts);
  const root = new RootMember(spec.session, () => ({ ...made, agent: made.unit.agent }));
  const made: RootAgent = family.assemble(
    root,
    { ...spec, depth: spec.session.depth ?? 0 },
    parts.emit,
  );
  const lost = unreportedNotice(spec.session.entries);
  if (lost) made.unit.agent.inbox.push(lost);
  watchLimits(made.unit.agent, parts.config.limits, made.subagents);
  return made;
}

/** Assembles members, with what they have in common. */
class Family {
  readonly #parts: FamilyParts;
  readonly #permits: Semaphore[] = [];

  constructor(parts: FamilyParts) {
    this.#parts = parts;
  }

  assemble(
    self: FamilyMember,
    spec: Pick<AgentSpec, "session" | "binding" | "depth" | "origin" | "runChecks">,
    emit: EventSink,
  ): RootAgent {
    const parts = this.#parts;
    const { maxDepth } = parts.config;
    const { session, depth, origin } = spec;
    const own = (message: string) =>
      emit({ type: "warning", message, ...(origin && { agent: origin }) });
    const goals = new Goals(session, own);
    const subagents: Subagents = new Subagents({
      self,
      session,
      agent: () => unit.agent,
      depth,
      maxDepth,
      permits: this.#permitsBelow(depth),
      bindModel: parts.bindModel,
      assemble: (child) => this.#assembleChild(child),
      emit: parts.emit,
    });
    const unit: AgentUnit = assembleAgent(
      {
        ...parts,
        emit,
        // A person is asked about the kernel that they talk to, not about those behind it.
        ...(origin && { chooseWhenBusy: async () => parts.config.kernel.onBusy }),
      },
      {
        ...spec,
        systemPrompt: parts.reading.promptFor({
          // A kernel that somebody else started has no way to ask for sub-agents.
          maySpawn: depth < maxDepth && parts.config.kernel.existing === undefined,
          ...(origin && { subagentName: self.name }),
        }),
        handlers: () =>
          createHostHandlers({
            self,
            subagents,
            goals,
            context: () => unit.context,
            findModels: parts.findModels,
          }),
        sideWork: subagents,
        nextPrompt: () => goals.nextPrompt(),
        onLateReceipt: (data) =>
          session.append({ type: "custom", customType: "agent_message_receipt", data }),
      },
    );
    return { unit, subagents, goals };
  }

  #assembleChild(spec: SubagentSpec) {
    const { unit, subagents } = this.assemble(spec.member, spec, spec.emit);
    return {
      agent: unit.agent,
      household: subagents,
      async dispose(killAfterMs?: number) {
        await Promise.all([subagents.dispose(killAfterMs), unit.dispose(killAfterMs)]);
      },
    };
  }

  /** One bound for each depth: a parent that waits for its own must not take a place from them. */
  #permitsBelow(depth: number): Semaphore {
    return (this.#permits[depth] ??= new Semaphore(MAX_WORKING));
  }
}
