/** `prime-agent setup`: builds the kernel's environment ahead of time, for images and first runs. */

import { setUpEnvironment } from "../app-kernel.ts";
import type { CommandContext } from "./context.ts";
import { readConfig } from "./read-config.ts";

/** Runs the command; harmless when repeated. */
export async function runSetup({ args, terminal, interruption }: CommandContext): Promise<number> {
  interruption.listen();
  const packages = args.options
    .all("packages")
    .flatMap((list) => list.split(",").map((name) => name.trim()));
  const environment = await setUpEnvironment(readConfig(args.options), packages.filter(Boolean), {
    onProgress: (line) => terminal.stderr.write(`${line}\n`),
    signal: interruption.signal,
  });
  const { python, version, built } = environment;
  terminal.stdout.write(
    `The kernel's environment is ${built ? "built" : "ready"}: Python ${version} (${python})\n`,
  );
  return 0;
}
