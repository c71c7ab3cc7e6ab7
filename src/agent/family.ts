/**
 * The agents of one run as a tree: the root, its sub-agents, theirs. An agent's family is its parent,
 * its siblings and its children; others it neither sees nor reaches.
 */

import { HostRequestError } from "../kernel/host-bridge.ts";
import type { InboxMessage } from "./inbox.ts";

/** What a relative is, seen from an agent. */
export type Role = "parent" | "sibling" | "child";

/** Every {@link Role}. */
export const ROLES: readonly Role[] = ["parent", "sibling", "child"];

/** What an agent does, or how its last task ended. */
export type MemberState = "queued" | "running" | "completed" | "error" | "cancelled";

/** `delivered`: it is read at once; `queued`: between two turns, or when the receiver has started. */
export type DeliveryStatus = "delivered" | "queued";

/** One agent of the tree. */
export interface FamilyMember {
  /** Short, unique in the run. */
  readonly id: string;
  readonly sessionId: string;
  /** Unique among siblings, by letter case too. */
  readonly name: string;
  readonly parent: FamilyMember | undefined;
  /** The sub-agents that can be reached; those that were deleted are not among them. */
  readonly children: readonly FamilyMember[];
  readonly state: MemberState;
  /** Puts a message before the agent; a finished one goes on with it. @throws HostRequestError when it has ended for good. */
  deliver(message: InboxMessage, sender: FamilyMember): DeliveryStatus;
  /** Its parent has heard from it. */
  markReplied(): void;
}

/** A member of the family, and what it is to the one who looks. */
export interface Relative {
  role: Role;
  member: FamilyMember;
}

/** The family of `self`, parent first. */
export function relativesOf(self: FamilyMember): Relative[] {
  const { parent } = self;
  const siblings = parent?.children.filter((member) => member !== self) ?? [];
  return [
    ...(parent ? [{ role: "parent" as const, member: parent }] : []),
    ...siblings.map((member) => ({ role: "sibling" as const, member })),
    ...self.children.map((member) => ({ role: "child" as const, member })),
  ];
}

/** What `receiver` would call `sender`. */
export function roleOf(sender: FamilyMember, receiver: FamilyMember): Role {
  if (receiver.parent === sender) return "parent";
  return sender.parent === receiver ? "child" : "sibling";
}

/**
 * The one of `members` that `target` means: a name, an id, a session's id, or the beginning of an id.
 * `kind` says what they are, for the error.
 *
 * @throws HostRequestError that names who exists, or all that match.
 */
export function findMember<M extends FamilyMember>(
  members: readonly M[],
  target: string,
  kind: string,
): M {
  const exact = members.filter((member) => isNamed(member, target.trim()));
  const found =
    exact.length > 0 ? exact : members.filter((member) => hasPrefix(member, target.trim()));
  const [first] = found;
  if (first && found.length === 1) return first;
  if (first)
    throw new HostRequestError(`"${target}" means more than one ${kind}: ${named(found)}.`);
  const known = members.length > 0 ? `there are: ${named(members)}` : "there is none";
  throw new HostRequestError(`There is no ${kind} "${target}"; ${known}.`);
}

/** Names with ids and states, as errors list them. */
export function named(members: readonly FamilyMember[]): string {
  const shown = members
    .slice(0, MAX_LISTED)
    .map(({ name, id, state }) => `${name} (${id}, ${state})`);
  const more = members.length - shown.length;
  return more > 0 ? `${shown.join(", ")} and ${more} more` : shown.join(", ");
}

const MAX_LISTED = 20;
/** Shorter beginnings of an id are more likely a slip. */
const MIN_PREFIX_CHARS = 3;

function isNamed(member: FamilyMember, target: string): boolean {
  const key = target.toLowerCase();
  return [member.name.toLowerCase(), member.id, member.sessionId].includes(key);
}

function hasPrefix(member: FamilyMember, target: string): boolean {
  return target.length >= MIN_PREFIX_CHARS && member.sessionId.startsWith(target.toLowerCase());
}
