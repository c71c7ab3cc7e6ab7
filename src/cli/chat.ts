/** The terminal chat; see line-editor.ts for its prompt line. */

import type { CommandContext } from "./context.ts";
import { runExec } from "./exec.ts";

/** Runs the chat. */
export async function runChat(context: CommandContext): Promise<number> {
  return await runExec(context);
}
