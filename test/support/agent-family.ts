/**
 * A family of agents without kernels: real loops, sessions and handlers, a scripted model, and a tool
 * whose cells are lists of host requests.
 */

import type { AgentEvent, EventSink, RunOutcome } from "../../src/agent/events.ts";
import type { FamilyMember } from "../../src/agent/family.ts";
import { Goals } from "../../src/agent/goals.ts";
import { createHostHandlers } from "../../src/agent/host-handlers.ts";
import { SessionContextKeeper } from "../../src/agent/context-keeper.ts";
import { Agent, type ModelBinding } from "../../src/agent/loop.ts";
import { RootMember } from "../../src/agent/root-member.ts";
import type { RunLimits } from "../../src/agent/run-state.ts";
import { Session } from "../../src/agent/session.ts";
import type { SubagentSpec } from "../../src/agent/subagent.ts";
import { Subagents, watchLimits } from "../../src/agent/subagents.ts";
import { raceWithAbort, Semaphore } from "../../src/async.ts";
import { errorMessage, UsageError } from "../../src/errors.ts";
import type { HostHandlers } from "../../src/kernel/host-bridge.ts";
import { messageText } from "../../src/message.ts";
import {
  SCRIPTED_MODEL,
  ScriptedProvider,
  type ScriptedReply,
} from "../../src/providers/scripted.ts";
import type { IpythonResult, IpythonTool } from "../../src/tool/ipython.ts";

/** What a test may want otherwise. */
export interface TestFamilyOptions {
  /** Promises that replies (`gate`) and cells (`["gate", name]`) wait for. */
  gates?: Record<string, PromiseLike<unknown>>;
  maxDepth?: number;
  maxWorking?: number;
  limits?: RunLimits;
  session?: Session;
  /** Hears of each event as it comes. */
  onEvent?(event: AgentEvent): void;
  /** The summary of a compaction; throws when it must fail. */
  summarize?(): string;
  /** Kernels that sub-agents of these names report as lost with their first cell. */
  losesKernel?: string[];
}

/** One agent with what belongs to it. */
export interface TestMember {
  agent: Agent;
  subagents: Subagents;
  goals: Goals;
  handlers: HostHandlers;
  disposed: number;
}

/** A cell that makes host requests, one after the other; `["gate", name]` waits. */
export function requests(...list: Array<[type: string, payload?: unknown]>): ScriptedReply {
  return { toolCalls: [{ name: "ipython", arguments: { code: JSON.stringify(list) } }] };
}

/** The request for a sub-agent. */
export function spawning(name: string, task = `task of ${name}`): [string, unknown] {
  return ["rlm.run", { prompt: task, kwargs: { name } }];
}

/** The request that tells the parent something. */
export function telling(message: string): [string, unknown] {
  return ["agent_message.send", { message, receiver_role: "parent" }];
}

/** See the head of this file. */
export class TestFamily {
  readonly events: AgentEvent[] = [];
  readonly provider: ScriptedProvider;
  readonly session: Session;
  readonly root: TestMember;
  /** Every sub-agent that was assembled, by name. */
  readonly members = new Map<string, TestMember>();
  readonly #options: TestFamilyOptions;
  readonly #permits: Semaphore;
  #waiting: Array<() => void> = [];

  constructor(replies: readonly ScriptedReply[], options: TestFamilyOptions = {}) {
    this.#options = options;
    this.#permits = new Semaphore(options.maxWorking ?? 8);
    this.provider = new ScriptedProvider(replies, { gates: options.gates ?? {} });
    this.session = options.session ?? Session.inMemory({ cwd: "/work" });
    const root = new RootMember(this.session, () => this.root);
    this.root = this.#assemble(root, this.session, 0, this.#take);
    watchLimits(this.root.agent, options.limits ?? {}, this.root.subagents);
  }

  /** Answers a prompt as the root. */
  run(prompt: string | undefined, signal = new AbortController().signal): Promise<RunOutcome> {
    return this.root.agent.run(prompt, signal);
  }

  /** Resolves when `condition` holds; it is looked at again with each event. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  /** Resolves when a sub-agent runs a cell. */
  async inCell(name: string): Promise<void> {
    await this.until(() => this.members.get(name)?.agent.currentCall !== undefined);
  }

  /** The texts that an agent's model read last; the root's without a name. */
  lastContext(sessionId = this.session.id): string[] {
    const request = this.provider.requests.findLast((made) => made.sessionId === sessionId);
    return (request?.messages ?? []).map(messageText);
  }

  /** The messages and notices that reached the root. */
  received(): string[] {
    return this.session.entries.flatMap((entry) =>
      entry.type === "custom_message" ? [String(entry.content)] : [],
    );
  }

  /** The life of a sub-agent as its events tell it. */
  states(name: string): string[] {
    return this.events.flatMap((event) =>
      event.type === "child" && event.agent?.name === name ? [event.state] : [],
    );
  }

  readonly #take = (event: AgentEvent): void => {
    this.events.push(event);
    this.#options.onEvent?.(event);
    for (const wake of this.#waiting.splice(0)) wake();
  };

  #assemble(self: FamilyMember, session: Session, depth: number, emit: EventSink): TestMember {
    const { maxDepth = 1, limits = {} } = this.#options;
    const origin = depth > 0 ? { agent: { id: self.id, name: self.name } } : {};
    const warn = (message: string) => emit({ type: "warning", message, ...origin } as AgentEvent);
    const goals = new Goals(session, warn);
    const subagents: Subagents = new Subagents({
      self,
      session,
      agent: () => agent,
      depth,
      maxDepth,
      permits: this.#permits,
      bindModel: async (selector) => this.#bind(selector),
      assemble: (spec) => this.#assembleChild(spec),
      emit: this.#take,
    });
    const context = new SessionContextKeeper({
      session,
      window: () => SCRIPTED_MODEL,
      fixedTokens: 100,
      summarize: async () => this.#options.summarize?.() ?? "a summary",
      emit,
    });
    const handlers = createHostHandlers({
      self,
      subagents,
      goals,
      context: () => context,
      findModels: async (query, limit) =>
        [{ provider: "p", id: query, name: "n", selector: `p/${query}` }].slice(0, limit),
    });
    const agent = new Agent({
      session,
      binding: this.#bind("scripted/script"),
      tool: this.#tool(handlers, self.name, emit),
      systemPrompt: `You are ${self.name}.`,
      limits: depth === 0 ? limits : {},
      emit,
      prewarm: () => undefined,
      context,
      sideWork: subagents,
      nextPrompt: () => goals.nextPrompt(),
    });
    return { agent, subagents, goals, handlers, disposed: 0 };
  }

  #assembleChild({ member, session, depth, origin, emit, binding }: SubagentSpec) {
    if (member.name === "unstartable") throw new UsageError("the disk is full");
    const made = this.#assemble(member, session, depth, (event) =>
      emit({ ...event, agent: origin }),
    );
    made.agent.binding = binding;
    this.members.set(member.name, made);
    return {
      agent: made.agent,
      household: made.subagents,
      async dispose() {
        made.disposed += 1;
        await made.subagents.dispose();
        session.close();
      },
    };
  }

  #bind(selector: string): ModelBinding {
    const id = selector.replace("scripted/", "");
    if (id === "unknown") throw new UsageError("there is no such model", { hint: "Try another." });
    const model = { ...SCRIPTED_MODEL, id, ...(id === "unpriced" && { cost: undefined }) };
    return { model, provider: this.provider, apiKey: undefined, request: { maxRetries: 0 } };
  }

  #tool(handlers: HostHandlers, name: string, emit: EventSink): IpythonTool {
    let cells = 0;
    return {
      run: async (code, { signal = new AbortController().signal } = {}) => {
        cells += 1;
        if (cells === 1 && this.#options.losesKernel?.includes(name))
          emit({ type: "kernel", state: "lost", reason: "killed by SIGKILL" });
        const answers: unknown[] = [];
        for (const [type, payload] of JSON.parse(code) as Array<
          [string, Record<string, unknown>]
        >) {
          if (type === "gate")
            await raceWithAbort(Promise.resolve(this.#options.gates?.[String(payload)]), signal);
          else answers.push(await answer(handlers, type, payload ?? {}, signal));
        }
        return resultOf(answers);
      },
    };
  }
}

/** What a host request is answered with, an error as Python would show it. */
export async function answer(
  handlers: HostHandlers,
  type: string,
  payload: Record<string, unknown>,
  signal: AbortSignal = new AbortController().signal,
): Promise<any> {
  try {
    return await handlers[type]?.(payload, { signal, cellId: undefined });
  } catch (error) {
    return { error: errorMessage(error) };
  }
}

function resultOf(answers: unknown[]): IpythonResult {
  return {
    content: [{ type: "text", text: `answers: ${JSON.stringify(answers)}` }],
    details: {} as IpythonResult["details"],
    isError: false,
  };
}
