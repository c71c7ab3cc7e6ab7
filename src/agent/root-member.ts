/** The root of a family, as its sub-agents see it. */

import type { DeliveryStatus, FamilyMember, MemberState } from "./family.ts";
import type { InboxMessage } from "./inbox.ts";
import type { Agent } from "./loop.ts";
import type { Session } from "./session.ts";

const ID_CHARS = 8;

/** See the head of this file. */
export class RootMember implements FamilyMember {
  readonly parent = undefined;
  readonly #session: Session;
  readonly #parts: () => RootParts;

  /** `parts` are asked for only once the root is put together. */
  constructor(session: Session, parts: () => RootParts) {
    this.#session = session;
    this.#parts = parts;
  }

  get id(): string {
    return this.#session.id.slice(0, ID_CHARS);
  }

  get sessionId(): string {
    return this.#session.id;
  }

  get name(): string {
    return this.#session.name ?? "main";
  }

  get children(): readonly FamilyMember[] {
    return this.#parts().subagents.members;
  }

  get state(): MemberState {
    return this.#parts().agent.idle ? "completed" : "running";
  }

  deliver(message: InboxMessage): DeliveryStatus {
    const { agent } = this.#parts();
    const reads = agent.idle;
    agent.inbox.push(message);
    return reads ? "delivered" : "queued";
  }

  markReplied(): void {
    // It has no parent that could wait for a reply.
  }
}

/** The root's loop and its sub-agents. */
export interface RootParts {
  agent: Agent;
  subagents: { readonly members: readonly FamilyMember[] };
}
