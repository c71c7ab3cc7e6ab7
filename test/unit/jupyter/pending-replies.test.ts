import { expect, test } from "bun:test";
import { createHeader, type JupyterMessage } from "../../../src/jupyter/message.ts";
import { PendingReplies } from "../../../src/jupyter/pending-replies.ts";

const replyTo = (msgId: string): JupyterMessage => ({
  identities: [],
  header: createHeader("execute_reply", `reply-to-${msgId}`, "kernel"),
  parent_header: { msg_id: msgId },
  metadata: {},
  content: {},
  buffers: [],
});

test("a waiter settles once, however many replies and failures come", async () => {
  const pending = new PendingReplies();
  const [answered, failed, lost] = [pending.add("1"), pending.add("2"), pending.add("3")];
  const [error, loss] = [new Error("not sent"), new Error("lost")];
  expect([pending.settle(replyTo("1")), pending.settle(replyTo("1"))]).toEqual([true, false]);
  pending.fail("2", error);
  pending.failAll(loss);
  expect(pending.settle(replyTo("3"))).toBe(false);
  expect(await answered.reply).toEqual(replyTo("1"));
  expect(await failed.reply.catch((reason) => reason)).toBe(error);
  expect(await lost.reply.catch((reason) => reason)).toBe(loss);
});

test("a reply without a waiter, without a parent or to a forgotten request settles nothing", () => {
  const pending = new PendingReplies();
  const forgotten = pending.add("1");
  forgotten.forget();
  forgotten.forget();
  expect(pending.settle(replyTo("1"))).toBe(false);
  expect(pending.settle(replyTo("2"))).toBe(false);
  expect(pending.settle({ ...replyTo(""), parent_header: {} })).toBe(false);
  pending.failAll(new Error("lost"));
});
