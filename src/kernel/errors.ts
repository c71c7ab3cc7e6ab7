/** What can go wrong with a kernel that a caller can do something about. */

import { PrimeAgentError } from "../errors.ts";

/** Lines of a dead process's stderr that a message quotes. */
const MAX_QUOTED_LINES = 15;

/** How a kernel process ended: an exit code or the signal that killed it, or `reason` where neither is known. */
export interface KernelExit {
  code: number | null;
  signal: string | null;
  reason?: string;
}

/** The kernel could not be started. `stderrTail` is the end of what it wrote to stderr. */
export class KernelStartError extends PrimeAgentError {
  readonly stderrTail: string;

  constructor(
    message: string,
    options: { stderrTail?: string; hint?: string; cause?: unknown } = {},
  ) {
    super("kernel_start", message, {
      hint: options.hint ?? "run `prime-agent doctor` to see what is missing",
      cause: options.cause,
    });
    this.stderrTail = options.stderrTail ?? "";
  }
}

/** The kernel process ended while it was needed. The cell that ran is never run again. */
export class KernelDiedError extends PrimeAgentError {
  readonly exit: KernelExit;
  readonly stderrTail: string;

  constructor(exit: KernelExit, stderrTail: string) {
    super("kernel_died", withLastWords(`The kernel ended: ${describeExit(exit)}.`, stderrTail));
    this.exit = exit;
    this.stderrTail = stderrTail;
  }
}

/** The connection to a kernel that still lives was lost; it can't be trusted any more. */
export class KernelConnectionLostError extends PrimeAgentError {
  constructor(channel: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    super("kernel_connection_lost", `The kernel connection was lost (${channel}: ${reason}).`, {
      cause,
    });
  }
}

/** An earlier cell still runs although it was interrupted; a person has to choose: wait, or restart. */
export class KernelBusyAfterInterruptError extends PrimeAgentError {
  constructor(waitedMs: number) {
    super(
      "kernel_busy",
      `An earlier cell still runs after ${waitedMs / 1000} s of interrupts, so this cell was not started.`,
      {
        hint: "wait and try again (state is kept), or restart the kernel (`--on-busy restart`; state since the last snapshot is lost)",
      },
    );
  }
}

/** The kernel was disposed of, or a newer start took over, while the caller waited for it. */
export class KernelDisposedError extends PrimeAgentError {
  constructor(message = "The kernel was shut down.") {
    super("kernel_disposed", message);
  }
}

/** An internal call to the kernel's own Python side failed; `ename` and `evalue` are Python's. */
export class KernelCallError extends PrimeAgentError {
  readonly ename: string;
  readonly evalue: string;

  constructor(op: string, ename: string, evalue: string) {
    super("kernel_call", `The kernel could not do "${op}": ${ename}: ${evalue}`);
    this.ename = ename;
    this.evalue = evalue;
  }
}

/** The fork server is off, not usable here, or has ended; start the kernel directly instead. */
export class ForkServerUnavailableError extends PrimeAgentError {
  constructor(reason: string, options: { cause?: unknown } = {}) {
    super("fork_server_unavailable", `The fork server is not available: ${reason}`, options);
  }
}

/** A message about a process that has ended, with what its stderr says of the reason. */
export function withLastWords(message: string, stderr: string): string {
  const tail = lastWords(stderr);
  return tail ? `${message}\n${tail}` : message;
}

/** The part of a process's stderr that tells why it died: a fatal error from its beginning, else the end. */
function lastWords(stderr: string): string {
  const fatal = stderr.lastIndexOf("Fatal Python error");
  const lines = stderr.slice(Math.max(fatal, 0)).trim().split("\n");
  return (fatal >= 0 ? lines.slice(0, MAX_QUOTED_LINES) : lines.slice(-MAX_QUOTED_LINES)).join(
    "\n",
  );
}

/** An exit in words, with the likely reason for the signals that people meet. */
export function describeExit(exit: KernelExit): string {
  const meanings: Record<string, string> = {
    SIGKILL: "probably out of memory, or killed from outside",
    SIGSEGV: "a crash in native code",
    SIGABRT: "native code aborted",
    SIGBUS: "a memory access failed",
    SIGILL: "an instruction that this processor does not have",
    SIGTERM: "ended from outside",
    SIGALRM: "an alarm without a handler",
  };
  if (exit.signal) {
    const meaning = meanings[exit.signal];
    return `killed by ${exit.signal}${meaning ? ` (${meaning})` : ""}`;
  }
  if (exit.code === null) return exit.reason ?? "for an unknown reason";
  return exit.code === 0
    ? "it exited with code 0 (something in the cell stopped its event loop or exited the process)"
    : `it exited with code ${exit.code}`;
}
