/** A cell's code and what it did to files, as lines for a person; long ones are cut, and say so. */

import type pc from "picocolors";
import type { IpythonToolDetails } from "../app-kernel.ts";
import { printable } from "../printable.ts";

type Colors = ReturnType<typeof pc.createColors>;
type FileDiff = IpythonToolDetails["diffs"][number];

const MAX_CODE_LINES = 40;
const MAX_DIFF_LINES = 30;
const MAX_LINE_CHARS = 500;

/** The code with Python's own prompts. */
export function codeLines(code: string, color: Colors): string[] {
  const lines = printable(code).trimEnd().replace(/^\n+/, "").split("\n");
  const shown = lines
    .slice(0, MAX_CODE_LINES)
    .map((line, index) => `${color.cyan(index === 0 ? ">>>" : "...")} ${clipLine(line)}`);
  return withRest(shown, lines.length, color);
}

/** Where a file was changed, what went and what came; lines that both have at the edges are left out. */
export function diffLines(diff: FileDiff, color: Colors): string[] {
  const before = linesOf(diff.old_str);
  const after = linesOf(diff.new_str);
  let same = 0;
  while (same < Math.min(before.length, after.length) && before[same] === after[same]) same += 1;
  let sameAtEnd = 0;
  const left = Math.min(before.length, after.length) - same;
  while (sameAtEnd < left && before.at(-1 - sameAtEnd) === after.at(-1 - sameAtEnd)) sameAtEnd += 1;
  const changed = [
    ...before
      .slice(same, before.length - sameAtEnd)
      .map((line) => color.red(`- ${clipLine(line)}`)),
    ...after
      .slice(same, after.length - sameAtEnd)
      .map((line) => color.green(`+ ${clipLine(line)}`)),
  ];
  const line = diff.start_line === undefined ? "" : `:${diff.start_line + same}`;
  const head = `${color.dim("edited")} ${printable(diff.path)}${line}`;
  return [head, ...withRest(changed.slice(0, MAX_DIFF_LINES), changed.length, color)];
}

/** An image that the model was shown: its kind and about how large it is. */
export function imageLine(image: { mimeType: string; data: string }, color: Colors): string {
  const kilobytes = Math.max(1, Math.round((image.data.length * 3) / 4 / 1000));
  return color.dim(`[${printable(image.mimeType)}, ${kilobytes} kB, shown to the model]`);
}

function linesOf(text: string): string[] {
  return text === "" ? [] : printable(text).replace(/\n$/, "").split("\n");
}

function withRest(shown: string[], total: number, color: Colors): string[] {
  const rest = total - shown.length;
  return rest > 0 ? [...shown, color.dim(`… ${rest} more lines`)] : shown;
}

function clipLine(line: string): string {
  return line.length > MAX_LINE_CHARS ? `${line.slice(0, MAX_LINE_CHARS).toWellFormed()}…` : line;
}
