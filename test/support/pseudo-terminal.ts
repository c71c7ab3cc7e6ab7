/** The compiled program with a terminal on stdout and stderr, and nothing on stdin: a run that a person watches. */

import { RunningProgram, type UserHome } from "./program.ts";

/** Copies what the terminal shows to our stdout, and ends with the program's exit code. */
const IN_A_TERMINAL = `
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execv(sys.argv[1], sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 65536)
    except OSError:
        break
    if not shown:
        break
    os.write(1, shown)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

/** A run that was watched: what the terminal showed, with plain line breaks. */
export interface Watched {
  code: number;
  shown: string;
  stderr: string;
}

/** Runs the program so. */
export async function runInTerminal(
  user: UserHome,
  program: readonly string[],
  env: Record<string, string | undefined>,
): Promise<Watched> {
  const command = ["python3", "-c", IN_A_TERMINAL, ...program];
  const run = new RunningProgram(command, user.environment(env), {
    cwd: user.cwd,
    stdin: undefined,
  });
  const { code, stdout, stderr } = await run.finished;
  return { code, shown: stdout.replaceAll("\r\n", "\n"), stderr };
}
