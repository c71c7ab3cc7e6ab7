/**
 * Routes what a kernel publishes: output to the cell that it belongs to, comm
 * messages to the host bridge, receipts of sent agent messages to whoever
 * collects them, and output that comes when its cell is over to a bounded
 * store, from which the next result takes it.
 */

import contract from "../../kernel/rlm/contract.json";
import type { JupyterMessage } from "../jupyter/message.ts";
import { outputOf, type MimeBundle } from "./cell-output.ts";
import { TextTail } from "./text-tail.ts";

/** How many characters of late output are kept; what is older is dropped and counted. */
const MAX_LATE_CHARS = 8_192;

/** A flood leaves garbage faster than the collector comes by itself; after so much text it is called. */
const COLLECT_AFTER_CHARS = 32_000_000;

/** Output that came after its cell was over. */
export interface LateOutput {
  text: string;
  /** Characters that were dropped from its beginning. */
  droppedChars: number;
}

/** Where the pump sends things. */
export interface PumpTargets {
  /** Takes what belongs to the active cell or to a fence; false when it is neither's, or too late. */
  toActive(parentId: string, message: JupyterMessage): boolean;
  /** Whether a request of this id was ours; what other clients of the kernel ask for is not our output. */
  isOurs(parentId: string): boolean;
  onComm(message: JupyterMessage): void;
  /** A receipt of a sent agent message whose cell is over. */
  onLateReceipt(receipt: unknown): void;
}

/** See the head of this file. */
export class OutputPump {
  readonly #targets: PumpTargets;
  readonly #late = new TextTail(MAX_LATE_CHARS);
  #sinceCollected = 0;

  constructor(targets: PumpTargets) {
    this.#targets = targets;
  }

  /** Takes one iopub message, whatever it is. */
  onIopub(message: JupyterMessage): void {
    if (message.header.msg_type.startsWith("comm_")) {
      this.#targets.onComm(message);
      return;
    }
    this.#boundGarbage(message.content["text"]);
    const parentId = message.parent_header.msg_id;
    if (parentId && this.#targets.toActive(parentId, message)) return;
    // Output of threads that are older than the first cell has no parent.
    if (!parentId || this.#targets.isOurs(parentId)) this.#onLate(message);
  }

  /** The late output since the last call, or undefined when there is none. */
  takeLate(): LateOutput | undefined {
    const { text, pushed } = this.#late;
    if (pushed === 0) return undefined;
    this.#late.clear();
    return { text, droppedChars: pushed - text.length };
  }

  #boundGarbage(text: unknown): void {
    if (typeof text === "string") this.#sinceCollected += text.length;
    if (this.#sinceCollected < COLLECT_AFTER_CHARS) return;
    this.#sinceCollected = 0;
    Bun.gc(true);
  }

  #onLate(message: JupyterMessage): void {
    const output = outputOf(message);
    if (!output) return;
    if (output.kind === "stream") this.#late.push(output.text);
    else if (output.kind === "error")
      this.#late.push(`${output.error.ename}: ${output.error.evalue}\n`);
    else if (output.kind === "display" || output.kind === "result") this.#onLateBundle(output.data);
  }

  #onLateBundle(data: MimeBundle): void {
    const { mime } = contract;
    if (mime.agent_message in data) this.#targets.onLateReceipt(data[mime.agent_message]);
    else if (mime.diff in data) this.#late.push(`edited ${pathOf(data[mime.diff])}\n`);
    else if (mime.attachment in data)
      this.#late.push(
        `attached ${pathOf(data[mime.attachment])}, too late for its cell's result\n`,
      );
    else if (typeof data["text/plain"] === "string") this.#late.push(`${data["text/plain"]}\n`);
  }
}

function pathOf(value: unknown): string {
  const path = (value as { path?: unknown } | null)?.path;
  return typeof path === "string" ? path : "a file without a name";
}
