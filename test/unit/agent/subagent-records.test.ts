import { describe, expect, test } from "bun:test";
import { unreportedNotice } from "../../../src/agent/subagent-records.ts";
import { Session } from "../../../src/agent/session.ts";
import { requests, spawning, telling, TestFamily } from "../../support/agent-family.ts";

const never = new Promise<void>(() => undefined);

/** What a resumed session's model would be told after a family has worked. */
function toldAbout(family: TestFamily): string {
  return String(unreportedNotice(family.session.entries)?.content ?? "");
}

describe("unreportedNotice", () => {
  test("names those that worked when the program ended, not those that have reported", async () => {
    const family = new TestFamily(
      [
        { when: "go", ...requests(spawning("worker"), spawning("silent"), spawning("talker")) },
        { when: "rlm_child_id", text: "I wait." },
        { when: "task of worker", gate: "never" },
        { when: "task of silent", text: "done" },
        { when: "task of talker", ...requests(telling("here you are")) },
        { when: "deliveryStatus", text: "sent" },
        { when: "here you are", text: "noted" },
        { when: "silent", text: "noted" },
      ],
      { gates: { never } },
    );
    void family.run("go");
    await family.until(
      () => family.received().length >= 2 && family.states("talker").includes("completed"),
    );
    const [worker] = family.root.subagents.members;
    const list = `- worker (${worker?.id}), transcript: none\n</subagents_ended>`;
    expect(toldAbout(family)).toEndWith(`needed.\n${list}`);
    await family.root.subagents.dispose();
    expect(toldAbout(family)).toEndWith(`needed.\n${list}`);
  });

  test("is not told twice", () => {
    const session = Session.inMemory({ cwd: "/work" });
    const data = { id: "1", sessionId: "1-2", name: "ann", sessionFile: "/s", state: "working" };
    session.append({ type: "custom", customType: "subagent", data });
    const notice = unreportedNotice(session.entries);
    expect(notice?.content).toContain("- ann (1), transcript: /s");
    const { content = "", details } = notice ?? {};
    session.append({ type: "custom_message", customType: "x", content, details, display: true });
    expect(unreportedNotice(session.entries)).toBeUndefined();
  });

  test.each<{ name: string; entry: any }>([
    {
      name: "work that was settled",
      entry: {
        type: "custom",
        customType: "subagent",
        data: { id: "1", sessionId: "1-2", name: "ann", state: "settled" },
      },
    },
    {
      name: "a message of it",
      entry: {
        type: "custom_message",
        customType: "agent-message",
        content: "",
        display: true,
        details: { from: { sessionId: "1-2" } },
      },
    },
    {
      name: "a notice about it",
      entry: {
        type: "custom_message",
        customType: "agent-notice",
        content: "",
        display: true,
        details: { child: "1" },
      },
    },
  ])("does not come after $name", ({ entry }) => {
    const session = Session.inMemory({ cwd: "/work" });
    const data = { id: "1", sessionId: "1-2", name: "ann", sessionFile: null, state: "working" };
    session.append(entry);
    session.append({ type: "custom", customType: "subagent", data });
    expect(unreportedNotice(session.entries)).toBeDefined();
    session.append(entry);
    expect(unreportedNotice(session.entries)).toBeUndefined();
  });

  test("makes nothing of records that can't be read", () => {
    const session = Session.inMemory({ cwd: "/work" });
    for (const data of [null, 1, { id: 1 }, { id: "1", sessionId: "2" }])
      session.append({ type: "custom", customType: "subagent", data });
    for (const details of [null, "x", { children: 5 }, { from: null }])
      session.append({
        type: "custom_message",
        customType: "x",
        content: "",
        details,
        display: true,
      });
    expect(unreportedNotice(session.entries)).toBeUndefined();
  });
});
