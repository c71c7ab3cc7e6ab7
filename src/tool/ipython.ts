/**
 * The one tool. A call goes through six stages: rewrite the cell, start the
 * kernel if need be, deal with a busy one, execute while collecting output,
 * take out private MIME types, shape what the model gets.
 */

import { join } from "node:path";
import { AbortedError, errorMessage, type AbortCause } from "../errors.ts";
import {
  KernelBusyAfterInterruptError,
  KernelConnectionLostError,
  KernelDiedError,
} from "../kernel/errors.ts";
import type { CellError, ExecutionOutcome } from "../kernel/execution.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { LateOutput } from "../kernel/output-pump.ts";
import type { IpythonKernelProvisioner, ResetNotice } from "../kernel/provisioner.ts";
import type { ImageBlock, TextBlock } from "../message.ts";
import { rewriteCell } from "./cell.ts";
import description from "./description.txt" with { type: "text" };
import type { IpythonToolDetails } from "./details.ts";
import { joinParts, OutputCollector, type LiveOutput } from "./output.ts";
import { stripTerminal } from "./plain-text.ts";

/** The tool as the model sees it. */
export const IPYTHON_TOOL = {
  name: "ipython",
  label: "ipython",
  description: description.trim(),
  promptSnippet:
    "ipython: run a cell in a persistent IPython kernel (Python, or a shell with %%bash)",
  /** Two calls of one reply never overlap. */
  executionMode: "sequential",
  parameters: {
    type: "object",
    properties: { code: { type: "string", description: "The cell to run." } },
    required: ["code"],
    additionalProperties: false,
  },
} as const;

/** A person's answer when an earlier cell does not end. */
export type BusyChoice = "wait" | "restart" | "cancel";

/** Settings of {@link createIpythonTool}. */
export interface IpythonToolOptions {
  /** The kernel; several tools may share one. */
  provisioner: IpythonKernelProvisioner;
  /** A shell that `%%bash` cells use in place of bash. */
  shellPath?: string;
  /** Goes before the body of each `%%bash` cell. */
  commandPrefix?: string;
  /** Where the full text of truncated output goes; asked for when first needed. */
  outputDir(): string | undefined;
  /** Interrupts a cell after this long; unset: never. */
  cellTimeoutMs?: number;
  /** Asks what to do about a busy kernel; without a person it is answered from the settings. */
  chooseWhenBusy(error: KernelBusyAfterInterruptError): Promise<BusyChoice>;
}

/** What a call is run with. */
export interface IpythonCallOptions {
  signal?: AbortSignal;
  /** Told the stage while a kernel starts. */
  onProgress?(stage: string): void;
  /** Told the output while it comes. */
  onOutput?: LiveOutput;
}

/** The result of one call: `content` is for the model, `details` for everybody else. */
export interface IpythonResult {
  content: Array<TextBlock | ImageBlock>;
  details: IpythonToolDetails;
  isError: boolean;
}

/** The tool bound to its kernel. */
export interface IpythonTool {
  run(code: string, options?: IpythonCallOptions): Promise<IpythonResult>;
}

/** Makes the tool. Its `run` throws only what means that there is no kernel: start and set-up errors. */
export function createIpythonTool(options: IpythonToolOptions): IpythonTool {
  let files = 0;
  const newFile = (stream: string) => {
    const dir = options.outputDir();
    files += 1;
    return dir === undefined
      ? undefined
      : join(dir, `output-${process.pid}-${files}-${stream}.txt`);
  };
  return { run: (code, call = {}) => runCell(rewriteCell(code, options), options, call, newFile) };
}

async function runCell(
  code: string,
  options: IpythonToolOptions,
  call: IpythonCallOptions,
  newFile: (stream: string) => string | undefined,
): Promise<IpythonResult> {
  const started = performance.now();
  const output = new OutputCollector({ newFile, ...(call.onOutput && { live: call.onOutput }) });
  const run = await runUntilAnswered(code, options, call, output);
  output.finish();
  return shapeResult(run, output, {
    durationMs: Math.round(performance.now() - started),
    notice: options.provisioner.takeNotice(),
    late: run.kernel?.takeLate(),
  });
}

/** How a run went: an outcome, or the error that took its place. */
interface CellRun {
  outcome: ExecutionOutcome;
  kernel?: Kernel;
}

/** Runs the cell, asking what to do for as long as an earlier cell keeps the kernel busy. */
async function runUntilAnswered(
  code: string,
  options: IpythonToolOptions,
  call: IpythonCallOptions,
  output: OutputCollector,
): Promise<CellRun> {
  for (;;) {
    let kernel: Kernel;
    try {
      kernel = await options.provisioner.ensure(call.onProgress, call.signal);
    } catch (error) {
      if (error instanceof AbortedError) return { outcome: abortedOutcome(error.abortCause) };
      throw error;
    }
    try {
      const outcome = await kernel.execute(code, {
        onOutput: (item) => output.push(item),
        ...(call.signal && { signal: call.signal }),
        ...(options.cellTimeoutMs !== undefined && { timeoutMs: options.cellTimeoutMs }),
      });
      options.provisioner.onCellEnded(outcome.status === "ok");
      return { outcome, kernel };
    } catch (error) {
      if (error instanceof KernelBusyAfterInterruptError) {
        const choice = await options.chooseWhenBusy(error);
        if (choice === "cancel")
          return { outcome: failedOutcome("KernelBusy", `${error.message} ${error.hint}`) };
        if (choice === "restart")
          await options.provisioner.kill("it was restarted because a cell did not end");
        continue;
      }
      return { outcome: lostOutcome(error), kernel };
    }
  }
}

function lostOutcome(error: unknown): ExecutionOutcome {
  if (error instanceof AbortedError) return abortedOutcome(error.abortCause);
  if (error instanceof KernelDiedError || error instanceof KernelConnectionLostError) {
    const next =
      "This cell was not run again. The next call starts a fresh kernel and says what is gone.";
    return failedOutcome(
      error instanceof KernelDiedError ? "KernelDied" : "KernelLost",
      `${error.message}\n${next}`,
    );
  }
  return failedOutcome("KernelError", errorMessage(error));
}

function abortedOutcome(cause: AbortCause): ExecutionOutcome {
  return { status: "aborted", abortCause: cause, pages: [] };
}

function failedOutcome(ename: string, evalue: string): ExecutionOutcome {
  return { status: "error", error: { ename, evalue, traceback: [evalue] }, pages: [] };
}

async function shapeResult(
  { outcome }: CellRun,
  output: OutputCollector,
  around: { durationMs: number; notice: ResetNotice | undefined; late: LateOutput | undefined },
): Promise<IpythonResult> {
  for (const page of outcome.pages) output.pushPage(page);
  if (outcome.error) output.pushError(outcome.error);
  const parts = output.parts();
  const images = await output.images();
  const isError = outcome.status !== "ok" || output.problems.length > 0;
  const text = joinParts([
    around.notice ? renderNotice(around.notice) : "",
    parts.stdout,
    parts.stderr,
    parts.result,
    parts.traceback,
    outcome.status === "aborted" ? renderAbort(outcome) : (outcome.note ?? ""),
    ...images.notes,
    around.late ? renderLate(around.late) : "",
  ]);
  const content: IpythonResult["content"] = [];
  if (text || images.blocks.length === 0)
    content.push({ type: "text", text: text || "(no output)" });
  content.push(...images.blocks);
  const details = detailsOf(outcome, output, parts, around);
  return {
    content,
    details: isError && details.status === "ok" ? { ...details, status: "error" } : details,
    isError,
  };
}

function detailsOf(
  outcome: ExecutionOutcome,
  output: OutputCollector,
  parts: ReturnType<OutputCollector["parts"]>,
  around: { durationMs: number; notice: ResetNotice | undefined },
): IpythonToolDetails {
  const error = outcome.error && cleanError(outcome.error);
  return {
    durationMs: around.durationMs,
    status: outcome.status,
    ...(error && { errorEname: error.ename, error }),
    stdout: parts.stdout,
    stderr: parts.stderr,
    ...(parts.result && { result: parts.result }),
    diffs: output.diffs,
    attachments: output.attachments.map(({ data, ...rest }) => ({ ...rest, chars: data.length })),
    sentAgentMessages: output.sentAgentMessages,
    kernelRestarted: around.notice !== undefined,
  };
}

function cleanError(error: CellError): CellError {
  return {
    ename: error.ename,
    evalue: stripTerminal(error.evalue).slice(0, 10_000).toWellFormed(),
    traceback: error.traceback
      .slice(0, 200)
      .map((line) => stripTerminal(line).slice(0, 10_000).toWellFormed()),
  };
}

function renderAbort({ abortCause = "user", note }: ExecutionOutcome): string {
  const why: Record<AbortCause, string> = {
    user: "interrupted by the user",
    timeout: "interrupted: it ran into the cell's time limit",
    signal: "interrupted: the program was told to stop",
    shutdown: "interrupted: the program is shutting down",
  };
  return note
    ? `[${why[abortCause]}]\n${note}`
    : `[${why[abortCause]}; variables are kept, the next cell runs normally]`;
}

function renderLate(late: LateOutput): string {
  const dropped = late.droppedChars > 0 ? `, ${late.droppedChars} earlier chars dropped` : "";
  return `[late output of earlier cells${dropped}]\n${stripTerminal(late.text).trimEnd().toWellFormed()}`;
}

/** The notice that a new kernel took the place of an earlier one. */
export function renderNotice(notice: ResetNotice): string {
  const lines = [`The kernel was restarted: ${notice.reason}`];
  lines.push(
    notice.restored.length > 0
      ? `Restored from the last snapshot: ${notice.restored.join(", ")}.`
      : "No variable could be restored.",
  );
  if (notice.failed.length > 0) {
    const failed = notice.failed.map(({ name, reason }) => `${name} (${reason})`);
    lines.push(`Gone: ${failed.join(", ")}.`);
  }
  lines.push(
    "Everything else that was defined or imported before is gone; define it again where needed.",
  );
  return `<ipython_kernel_reset>\n${lines.join("\n")}\n</ipython_kernel_reset>`;
}
