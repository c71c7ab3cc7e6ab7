import { describe, expect, test } from "bun:test";
import { Inbox } from "../../../src/agent/inbox.ts";

describe("the inbox", () => {
  test("gives everything in order, and is empty afterwards", () => {
    const inbox = new Inbox();
    inbox.push({ source: "steering", content: "first" });
    inbox.push({ source: "notice", content: "second" });
    expect(inbox.take().map(({ content }) => content)).toEqual(["first", "second"]);
    expect(inbox.size).toBe(0);
  });

  test("gives back only what came from one source", () => {
    const inbox = new Inbox();
    for (const source of ["steering", "notice", "steering"])
      inbox.push({ source, content: source });
    expect(inbox.withdraw("steering").length).toBe(2);
    expect(inbox.take().map(({ source }) => source)).toEqual(["notice"]);
  });

  test("waits for the next message after the last one was withdrawn", async () => {
    const inbox = new Inbox();
    inbox.push({ source: "steering", content: "a" });
    inbox.withdraw("steering");
    let hasArrived = false;
    const arrival = inbox.arrival().then(() => (hasArrived = true));
    await Promise.resolve();
    expect(hasArrived).toBe(false);
    inbox.push({ source: "notice", content: "b" });
    await arrival;
    expect(hasArrived).toBe(true);
  });
});
