/** A prompt without a command: chat in a terminal, a headless run anywhere else. */

import type { CommandContext } from "./context.ts";
import { runExec } from "./exec.ts";

/** Runs `prime-agent [prompt…]`. */
export async function runDefault(context: CommandContext): Promise<number> {
  return await runExec(context);
}
