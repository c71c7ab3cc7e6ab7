/** Rewriting of shell cells: a custom shell and a command prefix apply to `%%bash` cells only. */

/** A cell that starts with `%%bash`, taken apart. */
export interface BashCell {
  /** What stands before `%%bash`: blank lines and indentation, kept as they are. */
  lead: string;
  /** What follows `%%bash` on its line, without the line break. */
  args: string;
  /** The line break that ends the head, or "" when the cell has no body. */
  lineBreak: string;
  body: string;
}

/** Recognises a `%%bash` head after blank lines and indentation; undefined for any other cell. */
export function parseIpythonBashCell(code: string): BashCell | undefined {
  const match = /^((?:[ \t]*\r?\n)*[ \t]*)%%bash(?=[ \t\r\n]|$)([^\r\n]*)(\r?\n|$)/.exec(code);
  if (!match) return undefined;
  const [head, lead = "", args = "", lineBreak = ""] = match;
  return { lead, args, lineBreak, body: code.slice(head.length) };
}

/**
 * Applies the shell settings to a cell. With `shellPath` and no magic arguments the head becomes
 * `%%script <quoted path>`; `commandPrefix` goes before the body. Other cells pass unchanged.
 */
export function rewriteCell(
  code: string,
  settings: { shellPath?: string; commandPrefix?: string },
): string {
  const cell = parseIpythonBashCell(code);
  if (!cell) return code;
  const useShell = settings.shellPath && cell.args.trim() === "";
  const head = useShell
    ? `%%script ${quoteForShell(settings.shellPath as string)}`
    : `%%bash${cell.args}`;
  const lineBreak = cell.lineBreak || "\n";
  // IPython takes the first line's indentation from all lines.
  const indent = cell.lead.slice(cell.lead.lastIndexOf("\n") + 1);
  const prefix = settings.commandPrefix ? `${indent}${settings.commandPrefix}${lineBreak}` : "";
  if (head === `%%bash${cell.args}` && !prefix) return code;
  return `${cell.lead}${head}${lineBreak}${prefix}${cell.body}`;
}

/** Quotes a path as the magic's argument parser (Python's shlex) reads it. */
function quoteForShell(path: string): string {
  return /^[\w@%+=:,./-]+$/.test(path) ? path : `'${path.replaceAll("'", `'"'"'`)}'`;
}
