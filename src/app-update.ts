/**
 * Replaces this executable by a released one: the same script that installs it
 * does the work, so that there is one verification and not two.
 */

import { accessSync, constants } from "node:fs";
import { basename, dirname } from "node:path";
import installer from "../scripts/install.sh" with { type: "text" };
import { variable, type Environment } from "./config.ts";
import { PrimeAgentError, UsageError } from "./errors.ts";

/** Set by the release build; absent in any other. */
declare const RELEASE_URL: string | undefined;

/** The update did not happen; the program is the one that it was. */
export class UpdateError extends PrimeAgentError {
  constructor(message: string) {
    super("update_failed", message, { hint: "Nothing was replaced." });
  }
}

/** Where releases come from; undefined when neither the build nor the environment says. */
export function releaseUrl(environment: Environment): string | undefined {
  const built = typeof RELEASE_URL === "undefined" ? "" : RELEASE_URL;
  return variable(environment, "PRIME_AGENT_RELEASE_URL") ?? (built || undefined);
}

/**
 * Installs `version`, or the latest, in place of this executable. `onOutput` is told what the installer says.
 *
 * @throws UsageError when this is not an installed executable; UpdateError when the installer failed.
 */
export async function updateProgram(
  environment: Environment,
  version: string | undefined,
  onOutput: (text: string) => void,
): Promise<void> {
  const program = process.execPath;
  if (!Bun.isStandaloneExecutable || basename(program) !== "prime-agent") {
    throw new UsageError("only an installed executable named prime-agent can update itself", {
      hint: "Run the installer, or build again from source.",
    });
  }
  const url = releaseUrl(environment);
  if (!url) {
    throw new UsageError("this build does not know where releases are", {
      hint: "Set PRIME_AGENT_RELEASE_URL to their address.",
    });
  }
  requireWritable(dirname(program));
  const child = Bun.spawn(["/bin/sh", "-s", "--", ...(version ? ["--version", version] : [])], {
    env: {
      ...environment.variables,
      PRIME_AGENT_RELEASE_URL: url,
      PRIME_AGENT_INSTALL_DIR: dirname(program),
    },
    stdio: [new Blob([installer]), "pipe", "pipe"],
  });
  const [stderr] = await Promise.all([child.stderr.text(), show(child.stdout, onOutput)]);
  if ((await child.exited) !== 0) throw new UpdateError(stderr.trim().replace(/^install: /, ""));
}

async function show(
  stream: ReadableStream<Uint8Array>,
  onOutput: (text: string) => void,
): Promise<void> {
  const decoder = new TextDecoder();
  for await (const chunk of stream) onOutput(decoder.decode(chunk, { stream: true }));
}

function requireWritable(folder: string): void {
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    throw new UsageError(`${folder} can't be written`, {
      hint: "Update with the rights of whoever installed the program.",
      cause: error,
    });
  }
}
