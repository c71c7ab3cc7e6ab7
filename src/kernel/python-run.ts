/** Runs one of our Python scripts to its end and returns what it answers. */

import { closeSync } from "node:fs";
import { delay, raceWithAbort, within } from "../async.ts";

/** How much of what a failing program said goes into an error; the last line says most. */
const SHOWN_LINES = 3;

/** How long the end of a killed program is waited for; one that hangs in the system takes longer. */
const KILL_WAIT_MS = 1_000;

/** What a program needs to run. */
export interface RunOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal?: AbortSignal | undefined;
  readonly timeoutMs: number;
}

/**
 * Runs `script` with a JSON argument and gives the JSON that it wrote to file descriptor 3, so that
 * nothing that a start-up file prints is taken for the answer. Variables and user packages that
 * could change what is imported are ignored, as they are when the kernel starts.
 *
 * @throws Error with the last lines of output, AbortedError.
 */
export async function runPython(
  python: string,
  script: string,
  argument: object,
  options: RunOptions,
): Promise<unknown> {
  const command = [python, "-E", "-s", script, JSON.stringify(argument)];
  const answer = await run(command, options, true);
  return JSON.parse(answer);
}

/**
 * Runs any program to its end with nothing on stdin and gives what it wrote to stdout.
 *
 * @throws Error that names the command, its exit code and the last lines of output; AbortedError.
 */
export async function runProgram(command: readonly string[], options: RunOptions): Promise<string> {
  return await run(command, options, false);
}

async function run(
  command: readonly string[],
  options: RunOptions,
  answers: boolean,
): Promise<string> {
  const child = Bun.spawn([...command], {
    // A missing working directory would be reported as a missing program.
    cwd: "/",
    env: options.env,
    stdio: ["ignore", "pipe", "pipe", answers ? "pipe" : "ignore"],
  });
  const ended = Promise.all([
    answers ? readAndClose(child.stdio[3] as unknown as number) : "",
    child.stdout.text(),
    child.stderr.text(),
    child.exited,
  ]);
  const timer = new AbortController();
  const tooLate = delay(options.timeoutMs, timer.signal).then(() => {
    throw new Error(`${command[0]} did not end within ${options.timeoutMs / 1000} s`);
  });
  tooLate.catch(() => undefined);
  try {
    const [answer, out, err, code] = await raceWithAbort(
      Promise.race([ended, tooLate]),
      options.signal,
    );
    if (code === 0 && (!answers || answer !== "")) return answers ? answer : out;
    throw new Error(failure(command, code, child.signalCode, err.trim() || out.trim()));
  } finally {
    timer.abort();
    child.kill("SIGKILL");
    // The caller removes what it has written, which takes that it writes no more.
    await within(child.exited, KILL_WAIT_MS);
  }
}

/** The reading end of an extra pipe is ours to close; Bun never does. */
async function readAndClose(descriptor: number): Promise<string> {
  try {
    return await Bun.file(descriptor).text();
  } finally {
    closeSync(descriptor);
  }
}

function failure(
  command: readonly string[],
  code: number,
  signal: NodeJS.Signals | number | null,
  output: string,
): string {
  const shown = command.filter((part) => !part.startsWith("{")).join(" ");
  const lines = output.split("\n").filter((line) => !line.startsWith("WARNING"));
  const tail = lines.slice(-SHOWN_LINES).join("\n    ");
  const how = signal ? `was killed by ${signal}` : `exited with ${code}`;
  return `${shown} ${how}${tail ? `: ${tail}` : ""}`;
}
