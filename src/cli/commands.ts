/** From argv to the command that it names, and from its outcome to an exit code. */

import { AbortedError } from "../errors.ts";
import { setLogSink } from "../log.ts";
import { parseArguments } from "./arguments.ts";
import type { CommandContext } from "./context.ts";
import { openTerminal } from "./output.ts";
import { describeError, EXIT_CODES, EXIT_READER_GONE, subtypeOf } from "./report-error.ts";
import { Interruption } from "./signals.ts";

type Command = (context: CommandContext) => Promise<number>;

/** Commands are loaded when they are called: start-up time is for the one that runs. */
const COMMANDS: Readonly<Record<string, () => Promise<Command>>> = {
  "": async () => (await import("./default-command.ts")).runDefault,
  exec: async () => (await import("./exec.ts")).runExec,
  cell: async () => (await import("./cell-command.ts")).runCellCommand,
  resume: async () => (await import("./default-command.ts")).runResume,
  sessions: async () => (await import("./list-commands.ts")).runSessionsCommand,
  models: async () => (await import("./list-models.ts")).runModels,
  skills: async () => (await import("./list-commands.ts")).runSkillsCommand,
  auth: async () => (await import("./auth.ts")).runAuth,
  setup: async () => (await import("./setup.ts")).runSetup,
  doctor: async () => (await import("./doctor.ts")).runDoctor,
  update: async () => (await import("./version.ts")).runUpdate,
  version: async () => (await import("./version.ts")).runVersion,
  demo: async () => (await import("./demo.ts")).runDemo,
};

/** Runs the program; never throws. Resolves with the exit code when everything written is drained. */
export async function runCommand(argv: readonly string[], version: string): Promise<number> {
  const terminal = openTerminal();
  const interruption = new Interruption();
  terminal.readerGone.addEventListener("abort", () =>
    interruption.abort("shutdown", EXIT_READER_GONE),
  );
  let code: number;
  try {
    code = await dispatch(argv, { terminal, interruption, version });
  } catch (error) {
    terminal.stderr.write(`${describeError(error)}\n`);
    const aborted = error instanceof AbortedError ? interruption.exitCode : undefined;
    code = aborted ?? EXIT_CODES[subtypeOf(error)];
  }
  await terminal.stdout.drain();
  await terminal.stderr.drain();
  return terminal.readerGone.aborted ? EXIT_READER_GONE : code;
}

async function dispatch(
  argv: readonly string[],
  base: Omit<CommandContext, "args">,
): Promise<number> {
  const args = parseArguments(argv);
  if (args.options.has("help") || args.command === "help") {
    const { helpText } = await import("./arguments.ts");
    base.terminal.stdout.write(helpText(base.version));
    return 0;
  }
  if (args.options.has("version")) {
    base.terminal.stdout.write(`prime-agent ${base.version}\n`);
    return 0;
  }
  if (args.options.has("verbose")) setLogSink((line) => base.terminal.stderr.write(`${line}\n`));
  const load = COMMANDS[args.command];
  if (!load) throw new Error(`the command ${args.command} has no implementation`);
  const command = await load();
  return await command({ ...base, args });
}
