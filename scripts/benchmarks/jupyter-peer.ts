/** Drives `jupyter_peer.py`: one command, one JSON answer. */

import { join } from "node:path";

/** jupyter_client in a process of its own. */
export class JupyterPeer {
  readonly #child: Bun.Subprocess<"pipe", "pipe", "inherit">;
  readonly #lines: AsyncIterator<string>;

  constructor(python: string) {
    this.#child = Bun.spawn([python, join(import.meta.dir, "jupyter_peer.py")], {
      stdin: "pipe",
      stdout: "pipe",
      stderr: "inherit",
    });
    this.#lines = lines(this.#child.stdout)[Symbol.asyncIterator]();
  }

  /** Sends a command and returns the parsed answer. */
  async ask(command: string): Promise<unknown> {
    this.#child.stdin.write(`${command}\n`);
    this.#child.stdin.flush();
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`jupyter_peer.py ended during "${command}"`);
    return JSON.parse(value);
  }

  async close(): Promise<void> {
    this.#child.stdin.end();
    await this.#child.exited;
  }
}

async function* lines(stream: ReadableStream<Uint8Array>): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    const parts = text.split("\n");
    text = parts.pop() ?? "";
    yield* parts;
  }
}
