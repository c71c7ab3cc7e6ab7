/** A prompt without a command: chat in a terminal, a headless run anywhere else. */

import { readEnvironment, variable } from "../config.ts";
import type { CommandContext } from "./context.ts";
import { runExec } from "./exec.ts";

/** Runs `prime-agent [prompt…]`. */
export async function runDefault(context: CommandContext): Promise<number> {
  if (!isInteractive(context)) return await runExec(context);
  const { runChat } = await import("./chat.ts");
  return await runChat(context);
}

/** Runs `prime-agent resume [SESSION]`: the same with `-r SESSION`. */
export async function runResume(context: CommandContext): Promise<number> {
  const [session = "", ...words] = context.args.words;
  const options = context.args.options.with("resume", session);
  return await runDefault({ ...context, args: { ...context.args, words, options } });
}

/** Whether a person sits at both ends and nothing asks for a headless run. */
function isInteractive({ args, terminal }: CommandContext): boolean {
  const headless = ["print", "json", "output-format", "prompt-file", "output-last-message"];
  if (headless.some((name) => args.options.has(name))) return false;
  // Such a terminal can't move its cursor, so it has no prompt line to edit.
  if (variable(readEnvironment(), "TERM") === "dumb") return false;
  return process.stdin.isTTY === true && terminal.stdout.isTerminal;
}
