/** What cells ask of the host, through `rlm` and the built-in skills, in real kernels of both ends. */

import { expect, test } from "bun:test";
import { defer } from "../../../src/async.ts";
import { messageText } from "../../../src/message.ts";
import { AppRun, cell } from "../../support/app-run.ts";
import { describeWithPython, type PythonName } from "../../support/python.ts";

for (const python of ["newest", "oldest"] as const satisfies PythonName[]) {
  describeWithPython(python, `requests of cells (${python})`, () => {
    test("a sub-agent is spawned, listed, written to and deleted by its handle", async () => {
      const gates = { asked: defer<void>(), "asked again": defer<void>() };
      await using run = await AppRun.open(
        {
          root: [
            cell("child = await rlm('say hello', name='greeter')\nprint(child.name, child.model)"),
            { text: "I wait." },
            cell(
              [
                "children = await rlm.list_subagents()",
                "print([(c['session_name'], c['status']) for c in children])",
                "r = await agent_message.send('again', receiver_role='child', receiver_name='greeter')",
                "print(r['deliveryStatus'], r['target']['sessionName'])",
              ].join("\n"),
            ),
            { text: "I wait." },
            cell("r = await rlm.delete_subagent(child)\nprint(await rlm.list_subagents())"),
            { text: "done" },
          ],
          greeter: [
            { text: "hello", gate: "asked" },
            cell("await agent_message.send('hello again', receiver_role='parent')", {
              gate: "asked again",
            }),
            { text: "sent" },
          ],
        },
        {
          python,
          gates: { asked: gates.asked.promise, "asked again": gates["asked again"].promise },
        },
      );
      const outcome = run.run("go");
      await run.asked("root", 2);
      gates.asked.resolve();
      await run.asked("root", 4);
      gates["asked again"].resolve();
      expect(await outcome).toMatchObject({ subtype: "success", text: "done" });
      expect(run.results().map((result) => messageText(result).trim())).toEqual([
        "greeter scripted/script",
        "[('greeter', 'completed')]\ndelivered greeter",
        "[]",
      ]);
      expect(run.received()).toEqual([
        expect.stringContaining("Its last text:\nhello"),
        expect.stringContaining("hello again"),
      ]);
    });

    test("a refusal of the host is an exception with its words", async () => {
      const attempts = [
        "rlm('x', name='all')",
        "rlm('x', model='no/such')",
        "rlm('x', thinking='wildly')",
        "rlm.delete_subagent('nobody')",
        "agent_message.send('x', receiver_role='parent')",
        "agent_message.send('x', receiver_role='child', receiver_name='nobody')",
        "goal.complete()",
      ];
      const code = `for attempt in (${attempts.map((text) => JSON.stringify(text)).join(", ")}):
    try: await eval(attempt)
    except Exception as error: print(type(error).__name__, error)`;
      await using run = await AppRun.open({ root: [cell(code), { text: "done" }] }, { python });
      await run.run("go");
      expect(run.printed().trim().split("\n")).toEqual([
        'HostError The name "all" means everybody in messages; choose another.',
        expect.stringContaining('HostError there is no provider "no"'),
        expect.stringContaining("HostError thinking is one of off, minimal, low"),
        'HostError There is no sub-agent "nobody"; there is none.',
        expect.stringContaining("HostError This is the root agent and has no parent"),
        'HostError There is no child "nobody"; there is none.',
        "HostError There is no open goal to complete.",
      ]);
    });

    test("goals and compaction answer as the skills promise", async () => {
      const code = [
        "print((await goal.get())['goal'])",
        "made = await goal.create('Count to $& three', token_budget=10**6)",
        "print(made['goal']['objective'], made['remaining_tokens'])",
        "print((await goal.complete())['completion_budget_report'])",
        "print((await compact.run('keep three'))['scheduled'], (await compact.status())['scheduled'])",
      ].join("\n");
      await using run = await AppRun.open(
        { root: [cell(code), { text: "done" }], summary: [{ text: "THE SUMMARY" }] },
        { python },
      );
      expect((await run.run("go")).text).toBe("done");
      expect(run.printed()).toBe(
        "None\nCount to $& three 1000000\n0 of 1,000,000 tokens used (0 %).\nTrue True\n",
      );
      expect(run.app.session.messages().map(messageText)[0]).toContain("THE SUMMARY");
      const asked = run.model.requests.find(({ name }) => name === "summary");
      expect(asked?.request.systemPrompt).toContain("keep three");
    });

    test("receipts of a cell are with its result, those of a task that goes on are kept in the session", async () => {
      await using run = await AppRun.open(
        {
          root: [
            cell("child = await rlm('wait', name='friend')"),
            cell(
              [
                "import asyncio",
                "async def later():",
                "    await asyncio.sleep(0.2)",
                "    await agent_message.send('late', receiver_role='child', receiver_name='friend')",
                "r = await agent_message.send('early', receiver_role='child', receiver_name='friend')",
                "task = asyncio.create_task(later())",
              ].join("\n"),
            ),
            ...Array.from({ length: 9 }, () => ({ text: "noted" })),
          ],
          friend: Array.from({ length: 9 }, () => ({ text: "ok" })),
        },
        { python },
      );
      await run.run("go");
      const receipts = () =>
        run.app.session.entries.flatMap((entry) =>
          entry.type === "custom" && entry.customType === "agent_message_receipt"
            ? [entry.data]
            : [],
        );
      while (receipts().length === 0) await Bun.sleep(10);
      const [, sending] = run.results();
      expect(sending?.details).toMatchObject({
        sentAgentMessages: [
          { message: "early", receiverRole: "child", target: { sessionName: "friend" } },
        ],
      });
      expect(receipts()).toMatchObject([{ message: "late", target: { sessionName: "friend" } }]);
    });
  });
}
