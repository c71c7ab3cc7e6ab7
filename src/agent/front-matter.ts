/** The YAML block at the head of a Markdown file, between two lines of three hyphens. */

import { errorMessage } from "../errors.ts";
import { debug } from "../log.ts";

/** The block's fields and the text after it, or why there are none. */
export type FrontMatter = { fields: Record<string, unknown>; body: string } | { problem: string };

/** Reads the block of `text`. Never throws. A problem in the YAML names its line in the file. */
export function parseFrontMatter(text: string): FrontMatter {
  const lines = text.replace(/^\uFEFF/, "").split(/\r?\n/);
  if (lines[0]?.trimEnd() !== FENCE) return { problem: "it has no front matter" };
  const end = lines.findIndex((line, index) => index > 0 && line.trimEnd() === FENCE);
  if (end < 0) return { problem: "its front matter has no closing ---" };
  const yaml = lines.slice(1, end);
  try {
    const fields: unknown = Bun.YAML.parse(yaml.join("\n"));
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) {
      return { problem: "its front matter holds no fields" };
    }
    return { fields: fields as Record<string, unknown>, body: lines.slice(end + 1).join("\n") };
  } catch (error) {
    const line = faultyLine(yaml) + 1;
    const reason = errorMessage(error).replace("YAML Parse error: ", "");
    return { problem: `its front matter is not valid YAML at line ${line}: ${reason}` };
  }
}

const FENCE = "---";

/** The parser names no line. The fault lies behind the longest beginning that can be parsed; counts from 1. */
function faultyLine(yaml: readonly string[]): number {
  for (let length = yaml.length - 1; length > 0; length -= 1) {
    try {
      Bun.YAML.parse(yaml.slice(0, length).join("\n"));
      return length + 1;
    } catch (error) {
      debug("front-matter", `the first ${length} lines don't parse either`, error);
    }
  }
  return 1;
}
