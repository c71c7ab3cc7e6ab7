/**
 * Collects the output of one cell while it comes, in bounded memory, and
 * shapes it for the model: stdout, stderr, result, traceback, in this order.
 */

import contract from "../../kernel/rlm/contract.json";
import type { CellError, CellOutput, MimeBundle } from "../kernel/execution.ts";
import type { ImageBlock } from "../message.ts";
import { CappedText, DEFAULT_MAX_OUTPUT_CHARS } from "./capped-text.ts";
import { parseAttachment, parseDiff, type Attachment, type FileDiff } from "./details.ts";
import { IMAGE_TYPES, prepareImage } from "./images.ts";
import { stripTerminal, TerminalCleaner } from "./plain-text.ts";

/** Images that one cell may show to the model. */
const MAX_IMAGES = 20;
const MAX_DIFFS = 1_000;
const MAX_LIVE_DISPLAYS = 1_000;

/** What a watching terminal is told while the cell runs: clean text of finished lines. */
export type LiveOutput = (stream: "stdout" | "stderr", text: string) => void;

/** See the head of this file. */
export class OutputCollector {
  readonly diffs: FileDiff[] = [];
  readonly attachments: Attachment[] = [];
  readonly sentAgentMessages: unknown[] = [];
  /** Things that make the cell an error although Python saw none, such as an attachment over the limit. */
  readonly problems: string[] = [];
  readonly #stdout: CappedStream;
  readonly #stderr: CappedStream;
  readonly #result: CappedText;
  readonly #errors: CappedText;
  readonly #displays = new Map<string, string>();
  readonly #images: Array<{ data: string; mimeType: string }> = [];
  #imagesDropped = 0;
  #clearOnNext = false;

  /** `newFile(stream)` names the file that takes the full text of a stream that is cut. */
  constructor(options: {
    newFile(stream: string): string | undefined;
    limit?: number;
    live?: LiveOutput;
  }) {
    const limit = options.limit ?? DEFAULT_MAX_OUTPUT_CHARS;
    const text = (stream: string) => new CappedText(limit, () => options.newFile(stream));
    this.#stdout = new CappedStream(text("stdout"), (part) => options.live?.("stdout", part));
    this.#stderr = new CappedStream(text("stderr"), (part) => options.live?.("stderr", part));
    this.#result = text("result");
    this.#errors = text("traceback");
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
        this.#streamOf(output.name).push(output.text);
        return;
      case "error":
        this.#errors.push(stripTerminal(renderError(output.error)));
        return;
      case "result":
        this.#result.push(stripTerminal(this.#takeBundle(output.data)));
        return;
      case "display":
        this.#pushDisplay(output);
    }
  }

  /** Adds an error that the kernel reported only in its reply, or that the host found. */
  pushError(error: CellError): void {
    if (this.#errors.length === 0) this.#errors.push(stripTerminal(renderError(error)));
  }

  /** Adds what a pager would have shown. */
  pushPage(bundle: MimeBundle): void {
    this.#stdout.push(`${plainText(bundle)}\n`);
  }

  /** The four parts of the text, each capped; call {@link finish} first. */
  parts(): { stdout: string; stderr: string; result: string; traceback: string } {
    const displays = [...this.#displays.values()].join("\n");
    return {
      stdout: joinParts([this.#stdout.toString(), displays]),
      stderr: this.#stderr.toString(),
      result: this.#result.toString(),
      traceback: joinParts([this.#errors.toString(), ...this.problems]),
    };
  }

  /** Lets go of held-back lines and closes the files. */
  finish(): void {
    this.#stdout.end();
    this.#stderr.end();
    for (const text of [this.#result, this.#errors]) text.close();
  }

  /** The images for the model, scaled where needed, and notes about those that changed or are missing. */
  async images(): Promise<{ blocks: ImageBlock[]; notes: string[] }> {
    const blocks: ImageBlock[] = [];
    const notes: string[] = [];
    for (const [index, { data, mimeType }] of this.#images.entries()) {
      const prepared = await prepareImage(data, mimeType);
      if ("block" in prepared) blocks.push(prepared.block);
      const remark = "block" in prepared ? prepared.note : `left out: ${prepared.refused}`;
      if (remark) notes.push(`[image ${index + 1}: ${remark}]`);
    }
    if (this.#imagesDropped > 0) {
      notes.push(`[${this.#imagesDropped} more images left out: at most ${MAX_IMAGES} a cell]`);
    }
    return { blocks, notes };
  }

  #streamOf(name: "stdout" | "stderr"): CappedStream {
    return name === "stderr" ? this.#stderr : this.#stdout;
  }

  #pushDisplay(output: Extract<CellOutput, { kind: "display" }>): void {
    const text = stripTerminal(this.#takeBundle(output.data));
    if (!output.displayId) {
      if (text) this.#stdout.pushLine(text);
      return;
    }
    // A display that can be updated counts with its last state.
    const known = this.#displays.has(output.displayId);
    if (output.update && !known) return;
    if (known || this.#displays.size < MAX_LIVE_DISPLAYS) {
      this.#displays.set(output.displayId, text.slice(0, DEFAULT_MAX_OUTPUT_CHARS));
    }
  }

  /** Takes private types and images out of a bundle and returns the text that is left to show. */
  #takeBundle(data: MimeBundle): string {
    const { mime } = contract;
    if (mime.diff in data) {
      const diff = parseDiff(data[mime.diff]);
      if (diff && this.diffs.length < MAX_DIFFS) this.diffs.push(diff);
    }
    if (mime.attachment in data) this.#takeAttachment(data[mime.attachment]);
    if (mime.agent_message in data) this.sentAgentMessages.push(data[mime.agent_message]);
    for (const mimeType of IMAGE_TYPES) {
      if (typeof data[mimeType] === "string") this.#takeImage(data[mimeType], mimeType);
    }
    const isPrivate = mime.diff in data || mime.attachment in data || mime.agent_message in data;
    return isPrivate ? "" : plainText(data);
  }

  #takeAttachment(value: unknown): void {
    const attachment = parseAttachment(value);
    if (typeof attachment === "string") {
      this.problems.push(attachment);
      return;
    }
    this.attachments.push(attachment);
    if (attachment.mime_type.startsWith("image/"))
      this.#takeImage(attachment.data, attachment.mime_type);
  }

  #takeImage(data: string, mimeType: string): void {
    if (!IMAGE_TYPES.some((known) => known === mimeType)) return;
    if (data.length > contract.limits.attachment_base64_chars) {
      this.problems.push(
        `An image of ${data.length} base64 characters is over the limit; make it smaller.`,
      );
    } else if (this.#images.length < MAX_IMAGES) {
      this.#images.push({ data, mimeType });
    } else {
      this.#imagesDropped += 1;
    }
  }

  #clear(): void {
    this.#clearOnNext = false;
    this.#stdout.clear();
    this.#stderr.clear();
    this.#result.clear();
    this.#displays.clear();
    this.#images.length = 0;
    this.#imagesDropped = 0;
  }
}

/** A stream of the cell: cleaned, shown live, and capped. */
class CappedStream {
  readonly #cleaner = new TerminalCleaner();
  readonly #text: CappedText;
  readonly #live: (part: string) => void;

  constructor(text: CappedText, live: (part: string) => void) {
    this.#text = text;
    this.#live = live;
  }

  push(raw: string): void {
    this.#take(this.#cleaner.push(raw));
  }

  /** Adds text on a line of its own. */
  pushLine(text: string): void {
    this.#take(`${this.#cleaner.pendingLine ? `${this.#cleaner.end()}\n` : ""}${text}\n`);
  }

  end(): void {
    this.#take(this.#cleaner.end());
    this.#text.close();
  }

  clear(): void {
    this.#cleaner.end();
    this.#text.clear();
  }

  toString(): string {
    return this.#text.toString();
  }

  #take(part: string): void {
    if (!part) return;
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

function renderError(error: CellError): string {
  if (error.traceback.length > 0) return error.traceback.join("\n");
  return error.evalue ? `${error.ename}: ${error.evalue}` : error.ename;
}

/** The best text of a bundle: what a person would read, not the repr of a wrapper object. */
function plainText(data: MimeBundle): string {
  const plain = asText(data["text/plain"]);
  const isWrapper = /^<IPython\.core\.display\.\w+ object>$/.test(plain.trim());
  if (plain && !isWrapper) return plain;
  for (const type of [
    "text/markdown",
    "text/latex",
    "application/json",
    "text/html",
    "application/javascript",
  ]) {
    if (type in data) return asText(data[type]);
  }
  return plain;
}

function asText(value: unknown): string {
  if (typeof value === "string") return value;
  if (Array.isArray(value) && value.every((line) => typeof line === "string"))
    return value.join("");
  return value === undefined ? "" : (JSON.stringify(value, null, 2) ?? "");
}
