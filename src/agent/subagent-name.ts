/** Names of sub-agents: what a caller may choose, and what is made of the task when they don't. */

import { HostRequestError } from "../kernel/host-bridge.ts";

/** The word that means everybody in a message's address. */
export const EVERYONE = "all";

const MAX_NAME_CHARS = 64;
const MAX_SLUG_CHARS = 40;
const MAX_SLUG_WORDS = 5;
const SUFFIX_CHARS = 4;
/** Controls, line breaks, halves of characters, and what turns the direction of text. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u;

/**
 * The name that the caller wants, trimmed. `taken` are the siblings' names.
 *
 * @throws HostRequestError for one that is empty, too long, reserved, taken or not printable.
 */
export function checkedName(wanted: string, taken: readonly string[]): string {
  const name = wanted.trim().normalize("NFC");
  const refuse = (why: string) => new HostRequestError(`The name ${JSON.stringify(name)} ${why}.`);
  if (name === "") throw refuse("is empty");
  if (name.length > MAX_NAME_CHARS) {
    throw refuse(`has ${name.length} characters, more than ${MAX_NAME_CHARS}`);
  }
  if (UNPRINTABLE.test(name)) throw refuse("holds a character that can't be shown");
  if (name.toLowerCase() === EVERYONE) throw refuse("means everybody in messages; choose another");
  if (isTaken(name, taken)) {
    throw refuse("is taken by another sub-agent; choose another, or delete that one first");
  }
  return name;
}

/** A readable name for `task`: its first words and the beginning of `id`. */
export function defaultName(task: string, id: string, taken: readonly string[]): string {
  const words =
    task
      .normalize("NFC")
      .toLowerCase()
      .match(/[\p{L}\p{N}]+/gu) ?? [];
  let slug = "";
  for (const word of words.slice(0, MAX_SLUG_WORDS)) {
    const longer = slug === "" ? word : `${slug}-${word}`;
    if (longer.length > MAX_SLUG_CHARS) break;
    slug = longer;
  }
  const name = `${slug || "agent"}-${id.slice(0, SUFFIX_CHARS)}`;
  return isTaken(name, taken) ? `${slug || "agent"}-${id}` : name;
}

function isTaken(name: string, taken: readonly string[]): boolean {
  return taken.some((other) => other.toLowerCase() === name.toLowerCase());
}
