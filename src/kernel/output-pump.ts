/**
 * Routes what a kernel publishes: output to the cell that it belongs to, comm
 * messages to the host bridge, receipts of sent agent messages to whoever
 * collects them, and output that comes when its cell is over to a bounded
 * store, from which the next result takes it.
 */

import contract from "../../kernel/rlm/contract.json";
import type { JupyterMessage } from "../jupyter/message.ts";
import { outputOf } from "./execution.ts";

/** How many characters of late output are kept; what is older is dropped and counted. */
const MAX_LATE_CHARS = 8_192;

/** Output that came after its cell was over. */
export interface LateOutput {
  text: string;
  /** Characters that were dropped from its beginning. */
  droppedChars: number;
}

/** Where the pump sends things. */
export interface PumpTargets {
  /** Takes what belongs to the active cell or to a probe of ours; false when it is neither's. */
  toActive(parentId: string, message: JupyterMessage): boolean;
  onComm(message: JupyterMessage): void;
  /** A receipt of a sent agent message whose cell is over. */
  onLateReceipt(receipt: unknown): void;
}

/** See the head of this file. */
export class OutputPump {
  readonly #targets: PumpTargets;
  #late = "";
  #dropped = 0;

  constructor(targets: PumpTargets) {
    this.#targets = targets;
  }

  /** Takes one iopub message, whatever it is. */
  onIopub(message: JupyterMessage): void {
    if (message.header.msg_type.startsWith("comm_")) {
      this.#targets.onComm(message);
      return;
    }
    const parentId = message.parent_header.msg_id;
    if (parentId && this.#targets.toActive(parentId, message)) return;
    this.#onLate(message);
  }

  /** The late output since the last call, or undefined when there is none. */
  takeLate(): LateOutput | undefined {
    if (!this.#late) return undefined;
    const late = { text: this.#late, droppedChars: this.#dropped };
    this.#late = "";
    this.#dropped = 0;
    return late;
  }

  #onLate(message: JupyterMessage): void {
    const output = outputOf(message);
    if (!output) return;
    if (output.kind === "stream") this.#keep(output.text);
    else if (output.kind === "error") this.#keep(`${output.error.ename}: ${output.error.evalue}\n`);
    else if (output.kind === "display" || output.kind === "result") {
      const receipt = output.data[contract.mime.agent_message];
      if (receipt !== undefined) this.#targets.onLateReceipt(receipt);
      else if (typeof output.data["text/plain"] === "string")
        this.#keep(`${output.data["text/plain"]}\n`);
    }
  }

  #keep(text: string): void {
    this.#late += text;
    const excess = this.#late.length - MAX_LATE_CHARS;
    if (excess <= 0) return;
    this.#late = this.#late.slice(excess);
    this.#dropped += excess;
  }
}
