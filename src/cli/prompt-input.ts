/** Where a run's prompt comes from: a file, the words, stdin; and what stdin holds, by its kind. */

import { fstatSync, readFileSync } from "node:fs";
import { TIMED_OUT, within } from "../async.ts";
import { errorMessage, UsageError } from "../errors.ts";
import { debug } from "../log.ts";

/** How long an open, silent stdin is waited for when nothing says that something will come. */
export const STDIN_WAIT_MS = 3_000;

/** What was read: the prompt, and whether a silent stdin was left alone. */
export interface PromptInput {
  text: string;
  /** A note for stderr, such as that stdin stayed silent. */
  note?: string;
}

/**
 * The prompt of a headless run. With both a prompt and piped stdin: the prompt, a blank line and
 * `<stdin>…</stdin>`. The word `-` stands for stdin.
 *
 * @throws UsageError when the prompt file can't be read, or the prompt is empty.
 */
export async function readPrompt(options: {
  words: readonly string[];
  file?: string;
  stdin: "auto" | "wait" | "ignore";
}): Promise<PromptInput> {
  const fromStdin = options.words.length === 1 && options.words[0] === "-";
  const given =
    options.file !== undefined
      ? readPromptFile(options.file)
      : fromStdin
        ? ""
        : options.words.join(" ");
  const mode = fromStdin ? "wait" : options.stdin;
  const piped = await readStdin(mode, STDIN_WAIT_MS);
  const text = combine(given, piped.text);
  if (text.trim() === "") {
    throw new UsageError("the prompt is empty", {
      hint: 'Give one as words, with -f FILE, or on stdin: prime-agent -p "…"',
    });
  }
  return { text, ...(piped.note && { note: piped.note }) };
}

function combine(given: string, piped: string): string {
  if (given.trim() === "") return piped;
  return piped.trim() === "" ? given : `${given}\n\n<stdin>\n${piped.replace(/\n$/, "")}\n</stdin>`;
}

function readPromptFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    throw new UsageError(`the prompt file ${path} can't be read: ${errorMessage(error)}`, {
      cause: error,
    });
  }
}

/**
 * What stdin holds. A regular file is read; `/dev/null`, a closed one or a terminal holds nothing; a pipe
 * or socket is waited for until its first byte or end for `waitMs` ("wait": for ever), then read to its end.
 */
export async function readStdin(
  mode: "auto" | "wait" | "ignore",
  waitMs: number,
): Promise<PromptInput> {
  if (mode === "ignore") return { text: "" };
  const kind = stdinKind();
  if (kind === "nothing") return { text: "" };
  if (kind === "file") return { text: decode(readFileSync(0)) };
  const reader = Bun.stdin.stream().getReader();
  const chunks: Uint8Array[] = [];
  try {
    const first = mode === "wait" ? await reader.read() : await within(reader.read(), waitMs);
    if (first === TIMED_OUT) {
      // The pending read would keep the process alive and take what a later reader needs; nobody needs it.
      reader.cancel().catch((error) => debug("cli", "stdin could not be cancelled", error));
      const seconds = waitMs / 1000;
      return {
        text: "",
        note: `stdin is open but stayed silent for ${seconds} s; going on without it (--stdin wait to wait)`,
      };
    }
    for (let part = first; !part.done; part = await reader.read()) chunks.push(part.value);
  } catch (error) {
    debug("cli", "stdin could not be read to its end", error);
  }
  return { text: decode(Buffer.concat(chunks)) };
}

function stdinKind(): "nothing" | "file" | "stream" {
  try {
    const stat = fstatSync(0);
    if (stat.isFile()) return "file";
    return stat.isFIFO() || stat.isSocket() ? "stream" : "nothing";
  } catch (error) {
    // A closed stdin.
    debug("cli", "stdin has no kind", error);
    return "nothing";
  }
}

function decode(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}
