/**
 * The one tool. A call goes through six stages: rewrite the cell, start the
 * kernel if need be, deal with a busy one, execute while collecting output,
 * take out private MIME types, shape what the model gets.
 */

import { join } from "node:path";
import { raceWithAbort } from "../async.ts";
import { AbortedError, errorMessage, type AbortCause } from "../errors.ts";
import {
  KernelBusyAfterInterruptError,
  KernelConnectionLostError,
  KernelDiedError,
} from "../kernel/errors.ts";
import type { ExecutionOutcome } from "../kernel/execution.ts";
import type { Kernel } from "../kernel/kernel.ts";
import type { IpythonKernelProvisioner } from "../kernel/provisioner.ts";
import { debug } from "../log.ts";
import { rewriteCell } from "./cell.ts";
import description from "./description.txt" with { type: "text" };
import { OutputCollector, type LiveOutput } from "./output.ts";
import { shapeResult, type IpythonResult } from "./result.ts";

export type { IpythonResult } from "./result.ts";

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
  /**
   * Asks what to do about a busy kernel; without a person it is answered from the settings. `moot` fires
   * when the answer is not needed any more: take the question back. A throw counts as "cancel".
   */
  chooseWhenBusy(error: KernelBusyAfterInterruptError, moot?: AbortSignal): Promise<BusyChoice>;
}

/** What a call is run with. */
export interface IpythonCallOptions {
  signal?: AbortSignal;
  /** Told the stage while a kernel starts. */
  onProgress?(stage: string): void;
  /** Told the output while it comes. */
  onOutput?: LiveOutput;
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
  const outcome = await runUntilAnswered(code, options, call, output);
  return await shapeResult(outcome, output, {
    durationMs: Math.round(performance.now() - started),
    notice: options.provisioner.takeNotice(),
    late: options.provisioner.takeLate(),
  });
}

/** Runs the cell, asking what to do for as long as an earlier cell keeps the kernel busy. */
async function runUntilAnswered(
  code: string,
  options: IpythonToolOptions,
  call: IpythonCallOptions,
  output: OutputCollector,
): Promise<ExecutionOutcome> {
  for (;;) {
    let kernel: Kernel;
    try {
      kernel = await options.provisioner.ensure(call.onProgress, call.signal);
    } catch (error) {
      if (error instanceof AbortedError) return abortedOutcome(error.abortCause);
      throw error;
    }
    try {
      const outcome = await kernel.execute(code, {
        onOutput: (item) => output.push(item),
        ...(call.signal && { signal: call.signal }),
        ...(options.cellTimeoutMs !== undefined && { timeoutMs: options.cellTimeoutMs }),
      });
      options.provisioner.onCellEnded(outcome.status === "ok");
      return outcome;
    } catch (error) {
      if (!(error instanceof KernelBusyAfterInterruptError)) return lostOutcome(error);
      const ended = await answerBusy(error, kernel, options, call.signal);
      if (ended) return ended;
    }
  }
}

/** Does what is chosen about a busy kernel; the outcome when the call ends by that, undefined to try again. */
async function answerBusy(
  error: KernelBusyAfterInterruptError,
  kernel: Kernel,
  options: IpythonToolOptions,
  signal: AbortSignal | undefined,
): Promise<ExecutionOutcome | undefined> {
  const moot = new AbortController();
  const asking = options.chooseWhenBusy(error, moot.signal).catch((reason): BusyChoice => {
    debug("tool", "nobody could be asked about the busy kernel", reason);
    return "cancel";
  });
  // The cell that was asked about may end meanwhile, and so may the kernel: then there is nothing to choose.
  const solved = Promise.race([kernel.free, kernel.gone]).then((): BusyChoice => "wait");
  try {
    const choice = await raceWithAbort(Promise.race([asking, solved]), signal);
    if (choice === "wait") return undefined;
    if (choice === "restart" && kernel.isOwn) {
      await options.provisioner.kill("an earlier cell did not end, and the restart was chosen");
      return undefined;
    }
    const foreign =
      choice === "restart" ? " A kernel that somebody else started is not restarted." : "";
    return failedOutcome("KernelBusy", `${error.message}${foreign} ${error.hint}`);
  } catch (reason) {
    if (reason instanceof AbortedError) return abortedOutcome(reason.abortCause);
    throw reason;
  } finally {
    moot.abort();
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

/** An abort before the cell was sent. */
function abortedOutcome(cause: AbortCause): ExecutionOutcome {
  return { status: "aborted", abortCause: cause, pages: [], note: "The cell was not run." };
}

function failedOutcome(ename: string, evalue: string): ExecutionOutcome {
  return { status: "error", error: { ename, evalue, traceback: [evalue] }, pages: [] };
}
