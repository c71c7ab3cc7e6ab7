import { expect, test } from "bun:test";
import { join } from "node:path";
import { sessionOwner } from "../../src/agent/session-lock.ts";
import { Session } from "../../src/agent/session.ts";
import { messageText } from "../../src/message.ts";
import { TempDir } from "../support/temp-dir.ts";

const WRITER = join(import.meta.dir, "../support/session-writer.ts");

/** Reads what the writer says is saved until there are at least `count` numbers; gives the last one. */
async function readUntil(stdout: ReadableStream<Uint8Array>, count: number): Promise<number> {
  let text = "";
  const decoder = new TextDecoder();
  // The reader is not given back: that would close the pipe, and the writer would end by itself.
  const reader = stdout.getReader();
  while (text.split("\n").length <= count) {
    text += decoder.decode((await reader.read()).value);
  }
  return Number(text.trimEnd().split("\n").at(-1));
}

test("a session killed with -9 at any moment keeps all that was saved and can be taken over at once", async () => {
  using dir = new TempDir();
  for (let round = 0; round < 8; round += 1) {
    const writer = Bun.spawn([process.execPath, WRITER, dir.path, `s${round}`], { stdout: "pipe" });
    const saved = await readUntil(writer.stdout, 1 + round * 37);
    const path = dir.join("sessions", `s${round}.jsonl`);
    expect(() => Session.open(path)).toThrow(`in use by process ${writer.pid}`);
    writer.kill("SIGKILL");
    await writer.exited;
    expect(sessionOwner(path)).toBeUndefined();
    using session = Session.open(path);
    const numbers = session.messages().map((message) => Number.parseInt(messageText(message), 10));
    expect(numbers.length).toBeGreaterThan(saved);
    expect(numbers).toEqual(numbers.map((_, index) => index));
    session.appendMessage({ role: "user", content: "after", timestamp: 0 });
    session.close();
    using again = Session.open(path);
    expect(again.messages().map(messageText).at(-1)).toBe("after");
  }
}, 30_000);
