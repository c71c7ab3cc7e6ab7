/** The `cell` command: from its arguments to a kernel of its own, and back to nothing left. */

import { resolve } from "node:path";
import { credentialVariables } from "../app-credentials.ts";
import { createKernelHost, createKernelParts, endKernel } from "../app-kernel.ts";
import { findSkills, pythonSkills } from "../app-project.ts";
import { raceWithAbort } from "../async.ts";
import { AbortedError, UsageError } from "../errors.ts";
import { runCells, readCells } from "./cell.ts";
import type { CommandContext } from "./context.ts";
import { readConfig } from "./read-config.ts";
import { describeError, EXIT_CODES } from "./report-error.ts";
import { ABORTED_CLEANUP_MS } from "./signals.ts";

/** Runs `prime-agent cell …`; the exit code is 1 when a cell failed. */
export async function runCellCommand({
  args,
  terminal,
  interruption,
}: CommandContext): Promise<number> {
  interruption.listen();
  const config = readConfig(args.options);
  const host = createKernelHost(config, credentialVariables(config));
  const found = await findSkills(config);
  for (const warning of found.warnings) terminal.stderr.write(`warning: ${warning}\n`);
  const parts = createKernelParts(host, {
    handlers: {},
    skills: pythonSkills(found.skills),
    depth: 0,
    artifactsDir: () => undefined,
    chooseWhenBusy: async () => config.kernel.onBusy,
  });
  if (config.limits.timeoutMs !== undefined) interruption.startTimeout(config.limits.timeoutMs);
  // The kernel boots while the cells are read from files or stdin.
  const files = args.options.all("prompt-file").map((path) => resolve(config.cwd, path));
  const cells = readCells({ words: args.words, files });
  parts.provisioner.prewarm();
  try {
    return await runCells(await raceWithAbort(cells, interruption.signal), parts, terminal, {
      signal: interruption.signal,
      progress: (line) => {
        if (!config.output.quiet && terminal.stderr.isTerminal) terminal.stderr.write(`${line}\n`);
      },
    });
  } catch (error) {
    // A cell that fails is a result; what the tool throws means that there is no kernel.
    if (error instanceof UsageError || error instanceof AbortedError) throw error;
    terminal.stderr.write(`${describeError(error)}\n`);
    return EXIT_CODES.error_kernel;
  } finally {
    const hurry = interruption.signal.aborted ? ABORTED_CLEANUP_MS : undefined;
    await endKernel(parts.provisioner, hurry);
    host.forkServers.dispose();
    interruption.stop();
  }
}
