/** `prime-agent auth status|set|rm`: provider keys. A key is never printed. */

import { credentialStatus, isKnownProvider, looksLikeKey } from "../app-credentials.ts";
import { saveKey } from "../auth-file.ts";
import { UsageError } from "../errors.ts";
import type { CommandContext } from "./context.ts";
import { readStdin, STDIN_WAIT_MS } from "./prompt-input.ts";
import { readConfig } from "./read-config.ts";
import { readSecret } from "./secret-input.ts";

/** Runs the command. @throws UsageError for an unknown action or provider. */
export async function runAuth(context: CommandContext): Promise<number> {
  const [action = "status", provider] = context.args.words;
  const config = readConfig(context.args.options);
  const { home } = config.environment;
  const { stdout } = context.terminal;
  if (action === "status") {
    const rows = credentialStatus(config);
    if (context.args.options.has("json")) {
      stdout.write(`${JSON.stringify(rows, null, 2)}\n`);
      return 0;
    }
    const width = Math.max(...rows.map((row) => row.provider.length));
    for (const row of rows)
      stdout.write(`${row.provider.padEnd(width)}  ${row.source ?? "no key"}\n`);
    return 0;
  }
  if (action !== "set" && action !== "rm") {
    throw new UsageError(`there is no "auth ${action}"`, {
      hint: "The actions are status, set and rm.",
    });
  }
  if (!provider) throw new UsageError(`auth ${action} needs the name of a provider`);
  if (action === "rm") {
    stdout.write(
      saveKey(home, provider, undefined)
        ? `Removed the key of ${provider}.\n`
        : `No key of ${provider} was saved.\n`,
    );
    return 0;
  }
  if (!isKnownProvider(config, provider)) {
    throw new UsageError(`there is no provider "${provider}"`, {
      hint: "`prime-agent auth status` lists them.",
    });
  }
  const key = (await askForKey(context, provider)).trim();
  if (!looksLikeKey(key)) {
    throw new UsageError("that is no key", {
      hint: "A key has no spaces and is no variable's name; type it, or pipe it in.",
    });
  }
  saveKey(home, provider, key);
  stdout.write(`Saved the key of ${provider} in auth.json, readable by you only.\n`);
  return 0;
}

/** The key, typed without an echo, or piped in; never an argument, which other users could see. */
async function askForKey({ terminal }: CommandContext, provider: string): Promise<string> {
  if (process.stdin.isTTY) return await readSecret(`Key of ${provider}: `, terminal.stderr);
  return (await readStdin("wait", STDIN_WAIT_MS)).text;
}
