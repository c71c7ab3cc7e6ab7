/** `prime-agent version [--json]` and `prime-agent update [VERSION]`. */

import { releaseUrl, updateProgram } from "../app-update.ts";
import { readEnvironment } from "../config.ts";
import type { CommandContext } from "./context.ts";

/** Runs `version`. */
export async function runVersion({ args, terminal, version }: CommandContext): Promise<number> {
  if (!args.options.has("json")) {
    terminal.stdout.write(`prime-agent ${version}\n`);
    return 0;
  }
  const facts = {
    version,
    bun: Bun.version,
    bun_revision: Bun.revision,
    platform: process.platform,
    arch: process.arch,
    standalone: Bun.isStandaloneExecutable,
    executable: process.execPath,
    release_url: releaseUrl(readEnvironment()) ?? null,
  };
  terminal.stdout.write(`${JSON.stringify(facts, null, 2)}\n`);
  return 0;
}

/** Runs `update`. */
export async function runUpdate({ args, terminal }: CommandContext): Promise<number> {
  const [wanted] = args.words;
  await updateProgram(readEnvironment(), wanted, (text) => terminal.stdout.write(text));
  return 0;
}
