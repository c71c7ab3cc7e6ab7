/**
 * The host's side of the bridge: Python opens a comm with target
 * `host.request`, the host answers on the control channel, which the kernel
 * reads while a cell that awaits the answer keeps its shell busy.
 *
 * Handlers are registered by type; nothing here knows what they do.
 */

import contract from "../../kernel/rlm/contract.json";
import { errorMessage, PrimeAgentError } from "../errors.ts";
import type { KernelClient } from "../jupyter/channels.ts";
import type { JupyterMessage } from "../jupyter/message.ts";
import { debug } from "../log.ts";

/** What a handler knows about the request beside its payload. */
export interface HostRequestContext {
  /** Fires when the cell was interrupted, the comm was closed, or the kernel is gone. */
  signal: AbortSignal;
  /** The msg_id of the cell whose code asked, or of the cell that started the asking task. */
  cellId: string | undefined;
}

/** Answers one request; the result's fields become the reply beside `status: "ok"`. A throw becomes a Python exception. */
export type HostHandler = (
  payload: Readonly<Record<string, unknown>>,
  context: HostRequestContext,
) => Promise<object> | object;

/** Handlers by request type, such as `rlm.run`. */
export type HostHandlers = Readonly<Record<string, HostHandler>>;

/** A handler refuses a payload; the message names what was expected. */
export class HostRequestError extends PrimeAgentError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super("host_request", message, options);
  }
}

/** One kernel's requests in flight. A new kernel gets a new bridge, so that late answers reach nobody. */
export class HostBridge {
  readonly #client: KernelClient;
  readonly #handlers: HostHandlers;
  readonly #open = new Map<string, AbortController>();
  #closed = false;

  constructor(client: KernelClient, handlers: HostHandlers) {
    this.#client = client;
    this.#handlers = handlers;
  }

  /** Takes any comm message from iopub; others than ours are ignored. */
  onComm(message: JupyterMessage): void {
    const content = message.content as Record<string, unknown>;
    const id = String(content["comm_id"] ?? "");
    if (message.header.msg_type === "comm_close") {
      this.#open.get(id)?.abort();
      this.#open.delete(id);
      return;
    }
    if (message.header.msg_type !== "comm_open" || content["target_name"] !== contract.comm_target)
      return;
    if (this.#closed || this.#open.has(id)) return;
    const abort = new AbortController();
    this.#open.set(id, abort);
    void this.#answer(id, content["data"], {
      signal: abort.signal,
      cellId: message.parent_header.msg_id,
    });
  }

  /** How many requests have not been answered yet. */
  get pending(): number {
    return this.#open.size;
  }

  /** Cancels what is in flight; answers that come later are dropped. */
  close(): void {
    this.#closed = true;
    for (const abort of this.#open.values()) abort.abort();
    this.#open.clear();
  }

  async #answer(id: string, data: unknown, context: HostRequestContext): Promise<void> {
    let reply: object;
    try {
      reply = { ...(await this.#handle(data, context)), status: "ok" };
    } catch (error) {
      reply = failure(error);
    }
    // Nobody waits any more when the comm was closed or the kernel is another one by now.
    if (this.#closed || !this.#open.delete(id)) return;
    try {
      this.#send(id, reply);
    } catch (error) {
      // What can't be sent is refused, or the cell would wait for ever.
      debug("host-bridge", "an answer could not be sent", error);
      this.#refuse(id, error);
    }
  }

  #refuse(id: string, error: unknown): void {
    try {
      this.#send(id, failure(error));
    } catch (again) {
      debug("host-bridge", "a refusal could not be sent", again);
    }
  }

  #send(id: string, data: object): void {
    this.#client.send("control", "comm_msg", { comm_id: id, data });
  }

  async #handle(data: unknown, context: HostRequestContext): Promise<object> {
    if (typeof data !== "object" || data === null)
      throw new HostRequestError("The request is not an object.");
    const { type, ...payload } = data as Record<string, unknown>;
    const handler =
      typeof type === "string" && Object.hasOwn(this.#handlers, type)
        ? this.#handlers[type]
        : undefined;
    if (!handler) {
      const known = Object.keys(this.#handlers).sort().join(", ") || "none";
      throw new HostRequestError(
        `The host does not know the request type "${String(type)}" (known: ${known}).`,
      );
    }
    return await handler(payload, context);
  }
}

function failure(error: unknown): object {
  if (!(error instanceof PrimeAgentError)) debug("host-bridge", "a handler failed", error);
  return { status: "error", error: errorMessage(error) };
}
