/**
 * Diagnostics for developers. Silent unless a sink is set (`-v` sets one), so
 * that a catch can record what it swallowed without touching any output.
 */

/** Receives one line without a line break. */
export type LogSink = (line: string) => void;

let sink: LogSink | undefined;

/** Sends later {@link debug} lines to `next`, or nowhere. */
export function setLogSink(next: LogSink | undefined): void {
  sink = next;
}

/** Records one diagnostic line: `scope` is the module, `detail` is data or the error that was handled. */
export function debug(scope: string, message: string, detail?: unknown): void {
  if (!sink) return;
  sink(detail === undefined ? `[${scope}] ${message}` : `[${scope}] ${message}: ${render(detail)}`);
}

function render(detail: unknown): string {
  if (detail instanceof Error) return `${detail.name}: ${detail.message}`;
  return typeof detail === "string" ? detail : (JSON.stringify(detail) ?? String(detail));
}
