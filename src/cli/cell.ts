/** `prime-agent cell`: runs cells through the tool, without a model. */

import { readFileSync } from "node:fs";
import type { IpythonResult, KernelParts } from "../app-kernel.ts";
import { throwIfAborted } from "../async.ts";
import { errorMessage, UsageError } from "../errors.ts";
import { readStdin, STDIN_WAIT_MS } from "./prompt-input.ts";
import type { Terminal } from "./output.ts";

/** One cell to run. */
export interface Cell {
  code: string;
}

/** The cells that the words, `-f FILE` and stdin (`-`) give, in this order. @throws UsageError when there are none. */
export async function readCells(options: {
  words: readonly string[];
  files: readonly string[];
}): Promise<Cell[]> {
  const cells = options.files.flatMap(cellsOfFile);
  for (const word of options.words) {
    const code = word === "-" ? (await readStdin("wait", STDIN_WAIT_MS)).text : word;
    cells.push({ code });
  }
  if (cells.length === 0) {
    cells.push({ code: (await readStdin("auto", STDIN_WAIT_MS)).text });
  }
  const filled = cells.filter(({ code }) => code.trim() !== "");
  if (filled.length === 0) {
    throw new UsageError("there is no cell to run", {
      hint: "Give code as words, -f FILE.py, -f NOTEBOOK.ipynb, or - for stdin: prime-agent cell 'print(1)'",
    });
  }
  return filled;
}

/** Runs the cells in one kernel, printing their output as it comes; stops at the first that fails. Returns the exit code. */
export async function runCells(
  cells: readonly Cell[],
  parts: KernelParts,
  terminal: Terminal,
  options: { signal: AbortSignal; progress(line: string): void },
): Promise<number> {
  for (const { code } of cells) {
    throwIfAborted(options.signal);
    const result = await parts.tool.run(code, {
      signal: options.signal,
      onProgress: options.progress,
      onOutput: (stream, text) => terminal[stream].write(text),
    });
    printRest(result, terminal);
    throwIfAborted(options.signal);
    if (result.isError) return 1;
  }
  return 0;
}

/** What the stream of output did not already show: result, traceback, notes. */
function printRest(result: IpythonResult, terminal: Terminal): void {
  const { details } = result;
  if (details.result) terminal.stdout.write(`${details.result}\n`);
  for (const diff of details.diffs) terminal.stdout.write(`edited ${diff.path}\n`);
  const images = result.content.filter((block) => block.type === "image").length;
  if (images > 0) terminal.stderr.write(`[${images} ${images === 1 ? "image" : "images"}]\n`);
  for (const note of details.notes) terminal.stderr.write(`${note}\n`);
  if (!result.isError) return;
  const { error } = details;
  const traceback = error && (error.traceback.join("\n") || `${error.ename}: ${error.evalue}`);
  const lines = [traceback?.trimEnd(), details.abortReason && `[${details.abortReason}]`];
  const text = lines.filter(Boolean).join("\n");
  if (text || details.notes.length === 0)
    terminal.stderr.write(`${text || `[${details.status}]`}\n`);
}

function cellsOfFile(path: string): Cell[] {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`${path} can't be read: ${errorMessage(error)}`, { cause: error });
  }
  return path.endsWith(".ipynb") ? notebookCells(path, text) : [{ code: text }];
}

/** The code cells of a notebook (nbformat 4). */
function notebookCells(path: string, text: string): Cell[] {
  try {
    const notebook = JSON.parse(text) as {
      cells?: Array<{ cell_type?: string; source?: string | string[] }>;
    };
    return (notebook.cells ?? [])
      .filter((cell) => cell.cell_type === "code")
      .map(({ source }) => ({ code: Array.isArray(source) ? source.join("") : (source ?? "") }));
  } catch (error) {
    throw new UsageError(`${path} is not a notebook: ${errorMessage(error)}`, { cause: error });
  }
}
