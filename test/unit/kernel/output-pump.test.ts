/** Where output goes, and what becomes of that which comes late. */

import { describe, expect, test } from "bun:test";
import contract from "../../../kernel/rlm/contract.json";
import { createHeader, type JupyterMessage } from "../../../src/jupyter/message.ts";
import { OutputPump } from "../../../src/kernel/output-pump.ts";

const { mime } = contract;

/** A pump whose active cell is "active", and what it passed on. */
function createPump() {
  const active: string[] = [];
  const comms: string[] = [];
  const receipts: unknown[] = [];
  const pump = new OutputPump({
    toActive: (parentId, message) => {
      if (parentId !== "ours_active") return false;
      active.push(message.header.msg_type);
      return true;
    },
    isOurs: (parentId) => parentId.startsWith("ours_"),
    onComm: (message) => comms.push(message.header.msg_type),
    onLateReceipt: (receipt) => receipts.push(receipt),
  });
  const send = (parentId: string | undefined, msgType: string, content: object): void => {
    const message: JupyterMessage = {
      identities: [],
      header: createHeader(msgType, "m", "kernel"),
      parent_header: parentId === undefined ? {} : { msg_id: parentId },
      metadata: {},
      content: content as Record<string, unknown>,
      buffers: [],
    };
    pump.onIopub(message);
  };
  return { pump, send, active, comms, receipts };
}

const bundle = (type: string, value: unknown) => ({ data: { [type]: value } });

/** Messages that come when their cell is over, and the late text that each leaves. */
const LATE: Array<{ name: string; type: string; content: object; text: string | undefined }> = [
  { name: "a print", type: "stream", content: { name: "stdout", text: "a\n" }, text: "a\n" },
  {
    name: "an exception",
    type: "error",
    content: { ename: "E", evalue: "v", traceback: [] },
    text: "E: v\n",
  },
  { name: "a display", type: "display_data", content: bundle("text/plain", "d"), text: "d\n" },
  { name: "a result", type: "execute_result", content: bundle("text/plain", "r"), text: "r\n" },
  {
    name: "an edit",
    type: "display_data",
    content: bundle(mime.diff, { path: "/f" }),
    text: "edited /f\n",
  },
  {
    name: "an attachment",
    type: "display_data",
    content: bundle(mime.attachment, { path: "/i.png" }),
    text: "attached /i.png, too late for its cell's result\n",
  },
  {
    name: "a malformed edit",
    type: "display_data",
    content: bundle(mime.diff, null),
    text: "edited a file without a name\n",
  },
  { name: "a status", type: "status", content: { execution_state: "idle" }, text: undefined },
  { name: "a clear_output", type: "clear_output", content: {}, text: undefined },
  { name: "an unknown message", type: "news", content: {}, text: undefined },
];

describe("output that comes when its cell is over", () => {
  test.each(LATE)("$name", ({ type, content, text }) => {
    const { pump, send, active } = createPump();
    send("ours_earlier", type, content);
    expect(pump.takeLate()?.text).toBe(text as string);
    expect(active).toEqual([]);
  });

  test("is kept to a bounded tail, and what was dropped is counted", () => {
    const { pump, send } = createPump();
    for (let index = 0; index < 1_000; index += 1)
      send("ours_earlier", "stream", { text: `${index}`.padStart(99, ".") + "\n" });
    const late = pump.takeLate();
    expect(late?.text).toHaveLength(8_192);
    expect(late?.text).toEndWith("999\n");
    expect(late?.droppedChars).toBe(100_000 - 8_192);
    expect(pump.takeLate()).toBeUndefined();
  });

  test("of a thread without a cell is kept, that of another client's cells is not", () => {
    const { pump, send } = createPump();
    send(undefined, "stream", { text: "thread" });
    send("theirs_1", "stream", { text: "theirs" });
    expect(pump.takeLate()?.text).toBe("thread");
  });

  test("is passed on when it is a receipt of an agent message", () => {
    const { pump, send, receipts } = createPump();
    send("ours_earlier", "display_data", bundle(mime.agent_message, { id: 1 }));
    expect(receipts).toEqual([{ id: 1 }]);
    expect(pump.takeLate()).toBeUndefined();
  });
});

test("the active cell gets what is its own, and comm messages go elsewhere whoever's they are", () => {
  const { pump, send, active, comms } = createPump();
  send("ours_active", "stream", { text: "a" });
  send("ours_active", "comm_open", {});
  send("theirs_1", "comm_msg", {});
  send(undefined, "comm_close", {});
  expect(active).toEqual(["stream"]);
  expect(comms).toEqual(["comm_open", "comm_msg", "comm_close"]);
  expect(pump.takeLate()).toBeUndefined();
});
