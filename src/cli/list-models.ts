/** `prime-agent models [SEARCH]`: what can be asked now, and what a key would add. */

import { availableModels } from "../app-models.ts";
import type { CommandContext } from "./context.ts";
import { readConfig } from "./read-config.ts";

/** Runs the command; exit code 1 when nothing matches. */
export async function runModels({ args, terminal }: CommandContext): Promise<number> {
  const models = await availableModels(readConfig(args.options), args.words.join(" "));
  if (args.options.has("json")) {
    terminal.stdout.write(`${JSON.stringify(models, null, 2)}\n`);
    return models.length > 0 ? 0 : 1;
  }
  if (models.length === 0) {
    terminal.stderr.write("prime-agent: no known model matches\n");
    return 1;
  }
  const width = Math.max(...models.map(({ selector }) => selector.length));
  for (const { selector, contextWindow, usable, default: isDefault } of models) {
    const state = isDefault ? "  default" : usable ? "" : "  (no key)";
    const context = `${Math.round(contextWindow / 1000)}k`.padStart(6);
    terminal.stdout.write(`${selector.padEnd(width)} ${context}${state}\n`);
  }
  return 0;
}
