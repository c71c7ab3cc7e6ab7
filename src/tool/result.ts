/** Shapes what a call gives: text and images for the model, details for everybody else. */

import type { AbortCause } from "../errors.ts";
import type { CellError, ExecutionOutcome } from "../kernel/execution.ts";
import type { LateOutput } from "../kernel/output-pump.ts";
import type { ResetNotice } from "../kernel/provisioner.ts";
import type { ImageBlock, TextBlock } from "../message.ts";
import { DEFAULT_MAX_OUTPUT_CHARS } from "./capped-text.ts";
import type { IpythonToolDetails } from "./details.ts";
import { joinParts, type OutputCollector, type OutputParts } from "./output.ts";
import { stripTerminal } from "./plain-text.ts";

/** Names that a notice lists; a namespace can hold thousands. */
const MAX_NAMES = 100;

/** The result of one call: `content` is for the model, `details` for everybody else. */
export interface IpythonResult {
  content: Array<TextBlock | ImageBlock>;
  details: IpythonToolDetails;
  isError: boolean;
}

/** What belongs to a call beside its cell. */
export interface CallContext {
  durationMs: number;
  /** There was a restart that the model has not been told about. */
  notice: ResetNotice | undefined;
  late: LateOutput | undefined;
}

/** Shapes the result of a cell that has ended; `output` gets nothing more. */
export async function shapeResult(
  outcome: ExecutionOutcome,
  output: OutputCollector,
  context: CallContext,
): Promise<IpythonResult> {
  for (const page of outcome.pages) output.pushPage(page);
  if (outcome.error) output.pushError(outcome.error);
  const parts = output.finish();
  const images = await output.images.prepare();
  const text = joinParts([
    context.notice ? renderNotice(context.notice) : "",
    parts.stdout,
    parts.stderr,
    parts.result,
    parts.traceback,
    outcome.status === "aborted" ? renderAbort(outcome) : (outcome.note ?? ""),
    ...images.notes,
    context.late ? renderLate(context.late) : "",
  ]);
  const content: IpythonResult["content"] = [];
  if (text || images.blocks.length === 0)
    content.push({ type: "text", text: text || "(no output)" });
  content.push(...images.blocks);
  const notes = [outcome.note ?? "", ...output.problems, ...images.notes];
  if (context.late) notes.push(renderLate(context.late));
  const details = { ...detailsOf(outcome, output, parts, context), notes: notes.filter(Boolean) };
  return { content, details, isError: details.status !== "ok" };
}

function detailsOf(
  outcome: ExecutionOutcome,
  output: OutputCollector,
  parts: OutputParts,
  context: CallContext,
): Omit<IpythonToolDetails, "notes"> {
  const error = outcome.error && boundedError(outcome.error);
  const failed = outcome.status === "ok" && output.problems.length > 0;
  return {
    durationMs: context.durationMs,
    status: failed ? "error" : outcome.status,
    ...(outcome.status === "aborted" && { abortReason: abortReason(outcome) }),
    ...(error && { errorEname: error.ename, error }),
    stdout: parts.stdout,
    stderr: parts.stderr,
    ...(parts.result && { result: parts.result }),
    diffs: output.diffs,
    attachments: output.attachments.map(({ data, ...rest }) => ({ ...rest, chars: data.length })),
    sentAgentMessages: output.sentAgentMessages,
    kernelRestarted: context.notice !== undefined,
  };
}

/** The error as plain text in bounded size, for session files and events. */
function boundedError(error: CellError): CellError {
  const clean = (text: string, limit: number) => stripTerminal(text.slice(0, limit)).toWellFormed();
  let left = DEFAULT_MAX_OUTPUT_CHARS;
  const traceback: string[] = [];
  for (const line of error.traceback) {
    if (left <= 0) break;
    traceback.push(clean(line, left));
    left -= line.length;
  }
  return { ename: clean(error.ename, 200), evalue: clean(error.evalue, 10_000), traceback };
}

function renderAbort(outcome: ExecutionOutcome): string {
  const why = abortReason(outcome);
  return outcome.note
    ? `[${why}]\n${outcome.note}`
    : `[${why}; variables are kept, the next cell runs normally]`;
}

function abortReason({ abortCause = "user", timedOutMs }: ExecutionOutcome): string {
  const why: Record<AbortCause, string> = {
    user: "interrupted by the user",
    timeout:
      timedOutMs === undefined
        ? "interrupted: the time limit of the run is over"
        : `interrupted: timed out after ${timedOutMs / 1000} s, the time limit of a cell`,
    signal: "interrupted: the program was told to stop",
    shutdown: "interrupted: the program is shutting down",
  };
  return why[abortCause];
}

function renderLate(late: LateOutput): string {
  const dropped = late.droppedChars > 0 ? `, ${late.droppedChars} earlier chars dropped` : "";
  const text = stripTerminal(late.text).trimEnd().toWellFormed();
  return `[late output of earlier cells${dropped}]\n${text}`;
}

/** The notice that a new kernel took the place of an earlier one, or that an existing one was connected to again. */
export function renderNotice(notice: ResetNotice): string {
  const { reason, restored, failed } = notice;
  const lines = notice.reconnected
    ? [
        `The connection to the kernel was lost and made again: ${reason}`,
        "Whether it is still the same kernel is not known: check what is defined before you rely on it.",
      ]
    : [
        `The kernel was restarted: ${reason}`,
        restored.length > 0
          ? `Restored from the last snapshot: ${list(restored)}.`
          : "No variable could be restored.",
        ...(failed.length > 0
          ? [`Gone: ${list(failed.map(({ name, reason: why }) => `${name} (${why})`))}.`]
          : []),
        "Everything else that was defined or imported before is gone; define it again where needed.",
      ];
  return `<ipython_kernel_reset>\n${stripTerminal(lines.join("\n"))}\n</ipython_kernel_reset>`;
}

function list(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  return `${names.slice(0, MAX_NAMES).join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
}
