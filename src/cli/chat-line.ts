/** What a line of the chat means: a command, a skill, or a prompt. */

import { existsSync } from "node:fs";
import { nearest } from "../nearest.ts";

/** A line that was understood, or a command that does not exist. */
export type ChatLine =
  | { kind: "prompt"; text: string }
  | { kind: "command"; name: string; words: string }
  | { kind: "skill"; name: string; words: string }
  /** `near` are the commands that may have been meant. */
  | { kind: "unknown"; name: string; near: string[] };

/**
 * Takes a line apart. A first word like `/name` is a command. It is part of a prompt when it has
 * another slash, or names a file that exists (`/usr/bin`, `/tmp`), and when a space stands before it.
 */
export function readLine(line: string, commands: readonly string[]): ChatLine {
  const match = /^\/(\S*)\s*/.exec(line);
  if (!match) return { kind: "prompt", text: line };
  const [head, name = ""] = match;
  const words = line.slice(head.length).trim();
  if (commands.includes(name)) return { kind: "command", name, words };
  const skill = /^skill:(.+)$/.exec(name)?.[1];
  if (skill !== undefined) return { kind: "skill", name: skill, words };
  const isPath = name === "" || name.includes("/") || existsSync(`/${name}`);
  if (isPath) return { kind: "prompt", text: line };
  return { kind: "unknown", name, near: nearest(name, commands).map((near) => `/${near}`) };
}

/** What Tab makes of the beginning of a command: as much as all candidates have in common. */
export function completeCommand(text: string, candidates: readonly string[]): string {
  if (!/^\/\S*$/.test(text)) return text;
  const fitting = candidates.map((name) => `/${name}`).filter((name) => name.startsWith(text));
  const [first = text] = fitting;
  if (fitting.length === 1) return `${first} `;
  let length = first.length;
  while (!fitting.every((name) => name.startsWith(first.slice(0, length)))) length -= 1;
  return first.slice(0, Math.max(length, text.length));
}
