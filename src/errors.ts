/**
 * The base of every error that this program reports on purpose, and the few
 * kinds that belong to no layer. Each layer adds its own kinds in its own
 * `errors.ts`; `cli/report-error.ts` is the only place that turns them into
 * text and exit codes.
 */

/** An error with a stable `code` for machines and a `hint` that names the next step for people. */
export class PrimeAgentError extends Error {
  /** Stable identifier in snake_case, shown as `error.code` in JSON output. */
  readonly code: string;
  /** What the reader can do about it; one sentence, or empty. */
  readonly hint: string;

  constructor(code: string, message: string, options: { hint?: string; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = new.target.name;
    this.code = code;
    this.hint = options.hint ?? "";
  }
}

/** The command line, a settings file or an argument is wrong; nothing was started. Exit code 2. */
export class UsageError extends PrimeAgentError {
  constructor(message: string, options: { hint?: string; cause?: unknown } = {}) {
    super("usage", message, options);
  }
}

/** Why work was aborted: the first cause wins and later ones never relabel it. */
export type AbortCause = "user" | "timeout" | "signal" | "shutdown";

/** The work was aborted by us, through an `AbortSignal`. Never raised for a peer that went away. */
export class AbortedError extends PrimeAgentError {
  readonly abortCause: AbortCause;

  constructor(
    abortCause: AbortCause = "user",
    message = "aborted",
    options: { cause?: unknown } = {},
  ) {
    super("aborted", message, options);
    this.abortCause = abortCause;
  }
}

/** The message of anything that can be thrown. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
