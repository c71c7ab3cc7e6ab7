/** Cells on a bare {@link KernelClient}: no queue, no output limits. */

import { KernelClient, type ConnectOptions } from "../../src/jupyter/channels.ts";
import type { ConnectionInfo } from "../../src/jupyter/connection-file.ts";
import type { ProtocolError } from "../../src/jupyter/errors.ts";
import type { JupyterMessage } from "../../src/jupyter/message.ts";

/** What a cell gave. */
export interface CellRun {
  reply: JupyterMessage;
  /** Its IOPub messages, `status` left out. */
  output: JupyterMessage[];
  /** What it wrote to stdout and stderr. */
  text: string;
}

/** A client that remembers what it was told. */
export class CellClient implements Disposable {
  client!: KernelClient;
  readonly losses: string[] = [];
  readonly dropped: ProtocolError[] = [];
  readonly lost = Promise.withResolvers<Error>();
  readonly #listeners = new Set<(message: JupyterMessage) => void>();

  private constructor(readonly answer: string) {}

  /** Connects; `answer` is what it says when the kernel asks for input. */
  static async connect(
    info: ConnectionInfo,
    options: ConnectOptions & { answer?: string } = {},
  ): Promise<CellClient> {
    const cells = new CellClient(options.answer ?? "");
    cells.client = await KernelClient.connect(
      info,
      {
        onIopub: (message) => cells.#listeners.forEach((listener) => listener(message)),
        onStdin: ({ header }) =>
          cells.client.send("stdin", "input_reply", { value: cells.answer }, { parent: header }),
        onLost: (channel, error) => {
          cells.losses.push(channel);
          cells.lost.resolve(error);
        },
        onDropped: (error) => cells.dropped.push(error),
      },
      options,
    );
    return cells;
  }

  /** Runs a cell; resolves when both its reply and its idle have come. */
  async run(code: string): Promise<CellRun> {
    const output: JupyterMessage[] = [];
    const pending = this.client.request("shell", "execute_request", {
      code,
      silent: false,
      store_history: false,
      user_expressions: {},
      allow_stdin: true,
      stop_on_error: false,
    });
    await this.collect(pending.msgId, output);
    const texts = output.filter((message) => message.header.msg_type === "stream");
    const text = texts.map((message) => message.content["text"]).join("");
    return { reply: await pending.reply, output, text };
  }

  /** Puts the IOPub messages of a request into `output`; resolves at its idle, rejects at a loss. */
  async collect(msgId: string, output: JupyterMessage[]): Promise<void> {
    const idle = Promise.withResolvers<void>();
    const listener = (message: JupyterMessage) => {
      if (message.parent_header.msg_id !== msgId) return;
      if (message.header.msg_type !== "status") output.push(message);
      else if (message.content["execution_state"] === "idle") idle.resolve();
    };
    this.#listeners.add(listener);
    try {
      await Promise.race([idle.promise, this.lost.promise.then((error) => Promise.reject(error))]);
    } finally {
      this.#listeners.delete(listener);
    }
  }

  [Symbol.dispose](): void {
    this.client.close();
  }
}
