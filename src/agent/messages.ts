/**
 * Messages between agents. Who asks is known by the kernel that asks, so a sender can't be made up;
 * a message reaches the receiver's transcript between two of its turns.
 */

import { errorMessage } from "../errors.ts";
import { HostRequestError } from "../kernel/host-bridge.ts";
import {
  findMember,
  named,
  relativesOf,
  roleOf,
  type DeliveryStatus,
  type FamilyMember,
  type Role,
} from "./family.ts";
import type { InboxMessage } from "./inbox.ts";

/** Longer messages belong into a file. */
export const MAX_MESSAGE_CHARS = 65_536;

/** What a sender gets back. */
export interface Receipt {
  id: string;
  message: string;
  deliveryStatus: DeliveryStatus;
  /** What the receiver is to the sender. */
  receiverRole: Role;
  target: ReceiptTarget;
}

/** Whom a receipt is about. */
export interface ReceiptTarget {
  activeSessionId: string;
  sessionId: string;
  sessionName?: string;
}

/** A receipt of a broadcast that did not reach this one. */
export interface FailedReceipt extends Pick<Receipt, "receiverRole" | "target"> {
  error: string;
}

/** The family of `self`, for cells to look at. */
export function listAgents(self: FamilyMember): object {
  return {
    self: describe(self),
    agents: relativesOf(self).map(({ role, member }) => ({ role, ...describe(member) })),
  };
}

/**
 * Sends to one relative; a parent needs no name.
 *
 * @throws HostRequestError when there is no such relative or it has ended.
 */
export function sendMessage(
  self: FamilyMember,
  receiver: { role: Role; name: string | undefined },
  text: string,
): Receipt {
  return deliver(self, findReceiver(self, receiver), text);
}

/** Sends to the whole family. @throws HostRequestError when there is nobody else. */
export function broadcast(self: FamilyMember, text: string): Array<Receipt | FailedReceipt> {
  const relatives = relativesOf(self);
  if (relatives.length === 0) throw new HostRequestError("There is no other agent to send to.");
  return relatives.map(({ role, member }) => {
    try {
      return deliver(self, member, text);
    } catch (error) {
      return { receiverRole: role, target: targetOf(member), error: errorMessage(error) };
    }
  });
}

/** The text of a message as its receiver reads it: who sent it stands outside of what was sent. */
export function renderMessage(sender: FamilyMember, receiver: FamilyMember, text: string): string {
  const from = `from="${roleOf(sender, receiver)}" name="${attribute(sender.name)}" id="${sender.id}"`;
  return `<agent_message ${from}>\n${withoutTags(text.trim(), "agent_message")}\n</agent_message>`;
}

/** A text in which nothing passes for the end, or another beginning, of the element `tag`. */
export function withoutTags(text: string, tag: string): string {
  return text.replace(new RegExp(`<(?=\\s*/?\\s*${tag}\\b)`, "gi"), "&lt;");
}

/** A name as the value of an attribute. */
export function attribute(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll('"', "&quot;").replaceAll("<", "&lt;");
}

function findReceiver(
  self: FamilyMember,
  { role, name }: { role: Role; name: string | undefined },
): FamilyMember {
  const members = relativesOf(self)
    .filter((relative) => relative.role === role)
    .map(({ member }) => member);
  if (role === "parent") {
    const [parent] = members;
    if (parent) return name === undefined ? parent : findMember(members, name, role);
    throw new HostRequestError(
      "This is the root agent and has no parent: its last answer goes to the user.",
    );
  }
  if (name !== undefined) return findMember(members, name, role);
  const known = members.length > 0 ? `there are: ${named(members)}` : "there is none";
  throw new HostRequestError(`Name the ${role} with receiver_name; ${known}.`);
}

function deliver(sender: FamilyMember, receiver: FamilyMember, text: string): Receipt {
  const id = crypto.randomUUID();
  const message: InboxMessage = {
    source: "agent-message",
    content: renderMessage(sender, receiver, text),
    details: { id, from: { role: roleOf(sender, receiver), ...targetOf(sender) } },
  };
  const deliveryStatus = receiver.deliver(message, sender);
  if (sender.parent === receiver) sender.markReplied();
  return {
    id,
    message: text,
    deliveryStatus,
    receiverRole: roleOf(receiver, sender),
    target: targetOf(receiver),
  };
}

function targetOf({ sessionId, name }: FamilyMember): ReceiptTarget {
  return { activeSessionId: sessionId, sessionId, sessionName: name };
}

function describe({ id, name, sessionId, state }: FamilyMember): object {
  return { name, id, session_id: sessionId, active_session_id: sessionId, status: state };
}
