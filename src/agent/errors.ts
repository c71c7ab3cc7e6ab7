/** Failures of the agent layer that a caller can do something about. */

import { PrimeAgentError } from "../errors.ts";

/** Another live process writes this session; two writers would tear its history apart. */
export class SessionLockedError extends PrimeAgentError {
  /** The process that holds the session, if its lock names one. */
  readonly pid: number | undefined;
  readonly path: string;

  constructor(path: string, pid: number | undefined) {
    const owner = pid === undefined ? "another process" : `process ${pid}`;
    super("session_locked", `the session ${path} is in use by ${owner}`, {
      hint: "Wait for it to end, or continue in a copy with --fork.",
    });
    this.path = path;
    this.pid = pid;
  }
}

/** The file is missing, unreadable, or holds nothing of a session. */
export class SessionUnreadableError extends PrimeAgentError {
  readonly path: string;

  constructor(path: string, reason: string, options: { cause?: unknown } = {}) {
    super("session_unreadable", `cannot open the session ${path}: ${reason}`, {
      hint: "`prime-agent sessions list` shows what can be resumed.",
      cause: options.cause,
    });
    this.path = path;
  }
}

/** Why a context could not be made smaller. */
export type CompactionFault = "nothing_to_remove" | "no_summary" | "no_gain" | "fills_again";

/** The context is too long for the model and can't be summarised further; the run can't go on. */
export class CompactionError extends PrimeAgentError {
  readonly fault: CompactionFault;

  constructor(fault: CompactionFault, message: string) {
    super("compaction_failed", message, {
      hint: "Start a new session, or choose a model with a larger context window.",
    });
    this.fault = fault;
  }
}

/** A request for a summary was itself too long for the model; a shorter one may pass. */
export class SummaryOverflowError extends PrimeAgentError {
  constructor(message: string) {
    super("summary_overflow", message);
  }
}
