/**
 * Collects the output of one cell while it comes, in bounded memory, and
 * shapes it for the model: stdout, stderr, result, traceback, in this order.
 */

import contract from "../../kernel/rlm/contract.json";
import type { CellError, CellOutput, MimeBundle } from "../kernel/execution.ts";
import { CappedText, DEFAULT_MAX_OUTPUT_CHARS } from "./capped-text.ts";
import { CellImages } from "./cell-images.ts";
import { parseAttachment, parseDiff, type Attachment, type FileDiff } from "./details.ts";
import { IMAGE_TYPES } from "./images.ts";
import { plainText } from "./mime-text.ts";
import { stripTerminal, TerminalCleaner } from "./plain-text.ts";

const MAX_DIFFS = 1_000;
const MAX_RECEIPTS = 1_000;
/** Displays of one cell that can be updated; each is held with its last state. */
const MAX_UPDATABLE = 200;

/** What a watching terminal is told while the cell runs: clean text of finished lines. */
export type LiveOutput = (stream: "stdout" | "stderr", text: string) => void;

/** The parts of a cell's text, each capped. */
export interface OutputParts {
  stdout: string;
  stderr: string;
  result: string;
  traceback: string;
}

/** See the head of this file. */
export class OutputCollector {
  readonly diffs: FileDiff[] = [];
  readonly attachments: Attachment[] = [];
  readonly sentAgentMessages: unknown[] = [];
  /** Things that make the cell an error although Python saw none, such as an attachment over the limit. */
  readonly problems: string[] = [];
  readonly images = new CellImages();
  readonly #newText: (stream: string) => CappedText;
  readonly #stdout: CappedStream;
  readonly #stderr: CappedStream;
  readonly #result: CappedText;
  readonly #errors: CappedText;
  readonly #updatable = new Map<string, CappedText>();
  #updatableDropped = 0;
  #clearOnNext = false;

  /** `newFile(stream)` names the file that takes the full text of a stream that is cut. */
  constructor(options: {
    newFile(stream: string): string | undefined;
    limit?: number;
    live?: LiveOutput;
  }) {
    const limit = options.limit ?? DEFAULT_MAX_OUTPUT_CHARS;
    this.#newText = (stream) => new CappedText(limit, () => options.newFile(stream));
    const live = (name: "stdout" | "stderr") => (part: string) => options.live?.(name, part);
    this.#stdout = new CappedStream(this.#newText("stdout"), live("stdout"));
    this.#stderr = new CappedStream(this.#newText("stderr"), live("stderr"));
    this.#result = this.#newText("result");
    this.#errors = this.#newText("traceback");
  }

  /** Takes the next piece of output. */
  push(output: CellOutput): void {
    if (output.kind === "clear") {
      if (output.wait) this.#clearOnNext = true;
      else this.#clear();
      return;
    }
    if (this.#clearOnNext) this.#clear();
    switch (output.kind) {
      case "stream":
        (output.name === "stderr" ? this.#stderr : this.#stdout).push(output.text);
        return;
      case "error":
        pushBlock(this.#errors, renderError(output.error));
        return;
      case "result":
        pushBlock(this.#result, this.#takeBundle(output.data));
        return;
      case "display":
        this.#pushDisplay(output.data, output.displayId);
    }
  }

  /** Adds an error that the kernel reported only in its reply, or that the host found. */
  pushError(error: CellError): void {
    if (this.#errors.length === 0) pushBlock(this.#errors, renderError(error));
  }

  /** Adds what a pager would have shown. */
  pushPage(bundle: MimeBundle): void {
    this.#stdout.pushLine(stripTerminal(plainText(bundle)));
  }

  /** Lets go of held-back lines and closes the files; nothing is pushed after it. Returns the text. */
  finish(): OutputParts {
    this.#stdout.end();
    this.#stderr.end();
    const displays = this.#joinUpdatable();
    for (const text of [this.#result, this.#errors, displays, ...this.#updatable.values()])
      text.close();
    const dropped = this.#updatableDropped;
    return {
      stdout: joinParts([
        this.#stdout.toString(),
        displays.toString(),
        dropped > 0 ? `[${dropped} more updatable displays left out]` : "",
      ]),
      stderr: this.#stderr.toString(),
      result: this.#result.toString(),
      traceback: joinParts([this.#errors.toString(), ...this.problems]),
    };
  }

  #joinUpdatable(): CappedText {
    const all = this.#newText("displays");
    for (const text of this.#updatable.values()) pushBlock(all, text.toString());
    return all;
  }

  #pushDisplay(data: MimeBundle, displayId: string | undefined): void {
    if (displayId === undefined) {
      const text = this.#takeBundle(data);
      if (text) this.#stdout.pushLine(stripTerminal(text));
      return;
    }
    // A display that can be updated counts with its last state, also one that an earlier cell made.
    this.images.forget(displayId);
    const text = stripTerminal(this.#takeBundle(data, displayId));
    let shown = this.#updatable.get(displayId);
    if (!shown && this.#updatable.size >= MAX_UPDATABLE) {
      this.#updatableDropped += 1;
      return;
    }
    shown ??= this.#newText("display");
    this.#updatable.set(displayId, shown);
    shown.clear();
    shown.push(text);
  }

  /** Takes private types and images out of a bundle and returns the text that is left to show. */
  #takeBundle(data: MimeBundle, displayId?: string): string {
    const { mime } = contract;
    if (mime.diff in data) this.#takeDiff(data[mime.diff]);
    if (mime.attachment in data) this.#takeAttachment(data[mime.attachment]);
    if (mime.agent_message in data && this.sentAgentMessages.length < MAX_RECEIPTS)
      this.sentAgentMessages.push(data[mime.agent_message]);
    // The types of a bundle are the same thing in several forms: one image of them is enough.
    const mimeType = IMAGE_TYPES.find((type) => typeof data[type] === "string");
    if (mimeType) this.images.add(data[mimeType] as string, mimeType, displayId);
    return plainText(data);
  }

  #takeDiff(value: unknown): void {
    const diff = parseDiff(value);
    if (diff && this.diffs.length < MAX_DIFFS) this.diffs.push(diff);
  }

  #takeAttachment(value: unknown): void {
    const attachment = parseAttachment(value);
    if (typeof attachment === "string") {
      this.problems.push(attachment);
      return;
    }
    this.attachments.push(attachment);
    this.images.add(attachment.data, attachment.mime_type);
  }

  #clear(): void {
    this.#clearOnNext = false;
    this.#stdout.clear();
    this.#stderr.clear();
    this.#result.clear();
    this.#updatable.clear();
    this.#updatableDropped = 0;
    this.images.clear();
  }
}

/** A stream of the cell: cleaned, shown live, and capped. */
class CappedStream {
  readonly #cleaner = new TerminalCleaner();
  readonly #text: CappedText;
  readonly #live: (part: string) => void;
  #atLineStart = true;

  constructor(text: CappedText, live: (part: string) => void) {
    this.#text = text;
    this.#live = live;
  }

  push(raw: string): void {
    this.#take(this.#cleaner.push(raw));
  }

  /** Adds clean text on a line of its own. */
  pushLine(text: string): void {
    this.#take(this.#cleaner.end());
    this.#take(`${this.#atLineStart ? "" : "\n"}${text}${text.endsWith("\n") ? "" : "\n"}`);
  }

  end(): void {
    this.#take(this.#cleaner.end());
    this.#text.close();
  }

  clear(): void {
    this.#cleaner.end();
    this.#text.clear();
    this.#atLineStart = true;
  }

  toString(): string {
    return this.#text.toString();
  }

  #take(part: string): void {
    if (!part) return;
    this.#atLineStart = part.endsWith("\n");
    this.#text.push(part);
    this.#live(part);
  }
}

/** Joins the parts that are not empty, with exactly one line break between them. */
export function joinParts(parts: readonly string[]): string {
  return parts
    .filter((part) => part !== "")
    .map((part, index, all) => (index < all.length - 1 ? part.replace(/\n$/, "") : part))
    .join("\n");
}

/** Adds a text on a line of its own. */
function pushBlock(target: CappedText, text: string): void {
  const clean = stripTerminal(text);
  target.push(target.length > 0 && clean ? `\n${clean}` : clean);
}

function renderError(error: CellError): string {
  if (error.traceback.length > 0) return error.traceback.join("\n");
  return error.evalue ? `${error.ename}: ${error.evalue}` : error.ename;
}
