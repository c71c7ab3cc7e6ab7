"""The built-in skills, and one of somebody else, in a real kernel."""

from __future__ import annotations

import base64
import unittest

import image_files
import skill_support
from support import CONTRACT, Cell, RunningKernel

DIFF = CONTRACT["mime"]["diff"]
ATTACHMENT = CONTRACT["mime"]["attachment"]
RECEIPT = CONTRACT["mime"]["agent_message"]


class KernelCase(unittest.TestCase):
    """One kernel for the tests of a class; each test has a folder of its own as working directory."""

    kernel: RunningKernel
    skills = skill_support.BUILTIN

    @classmethod
    def setUpClass(cls) -> None:
        base = skill_support.Folder()
        cls.addClassCleanup(base.close)
        cls.kernel = skill_support.start_skill_kernel(str(base.path), cls.skills)
        cls.addClassCleanup(cls.kernel.close)

    def setUp(self) -> None:
        self.folder = skill_support.Folder()
        self.addCleanup(self.folder.close)
        self.kernel.host.clear()
        self.kernel.run(f"import os; os.chdir({str(self.folder.path)!r})")

    def host(self, request: str, reply: dict) -> list[dict]:
        """Has the host answer a request; the payloads that it gets."""
        payloads: list[dict] = []

        def handle(data: dict) -> dict:
            payloads.append({key: value for key, value in data.items() if key != "type"})
            return {"status": "ok", **reply}

        self.kernel.host[request] = handle
        return payloads

    def shown(self, cell: Cell, mime: str) -> list:
        return [data[mime] for data in cell.displays if mime in data]


class Edit(KernelCase):
    def test_an_edit_after_chdir_reports_the_canonical_absolute_path(self) -> None:
        path = self.folder.write("src/a.txt", b"one\ntwo\n")
        (self.folder.path / "link").symlink_to("src")
        cell = self.kernel.run('os.chdir("link")\nawait edit("../src/a.txt", "two", "2")')
        self.assertEqual(cell.result, f"edited {path}, line 2")
        diff = {"path": str(path), "old_str": "two", "new_str": "2", "start_line": 2}
        self.assertEqual(self.shown(cell, DIFF), [diff])

    def test_a_forgotten_await_loses_nothing(self) -> None:
        path = self.folder.write("a.txt", b"one")
        cell = self.kernel.run('edit("a.txt", "one", "1"); print("next")')
        self.assertEqual((path.read_bytes(), cell.stderr), (b"1", ""))
        self.assertEqual(self.kernel.run('edit("a.txt", "1", "2")').result, f"edited {path}, line 1")

    def test_an_error_shows_the_line_of_the_cell_and_the_message_and_no_code_of_ours(self) -> None:
        path = self.folder.write("a.txt", b"one")
        cell = self.kernel.execute('x = 1\nawait edit("a.txt", "two", "2")')
        traceback = "\n".join(cell.reply["traceback"])
        self.assertIn('----> 2 await edit("a.txt", "two", "2")', traceback)
        self.assertTrue(traceback.endswith(f"EditError: {path}: old_str does not occur, nor anything like it"))
        self.assertNotIn("kernel/", traceback)

    def test_an_edit_in_a_forked_process_is_shown_when_the_cell_is_over(self) -> None:
        self.folder.write("a.txt", b"one")
        cell = self.kernel.run(
            "import multiprocessing\n"
            'worker = multiprocessing.get_context("fork").Process(target=edit, args=("a.txt", "one", "1"))\n'
            "worker.start(); worker.join(); worker.exitcode"
        )
        self.assertEqual(cell.result, "0")
        self.assertEqual([diff["new_str"] for diff in self.shown(cell, DIFF)], ["1"])

    def test_help_teaches_the_call(self) -> None:
        text = self.kernel.run("help(edit)").stdout
        self.assertIn('await edit("src/app.py", "timeout = 10", "timeout = 30")', text)
        call = self.kernel.run("import inspect; list(inspect.signature(edit).parameters)")
        self.assertEqual(call.result, "['path', 'old_str', 'new_str']")


class AttachImage(KernelCase):
    def test_an_image_becomes_an_attachment_with_the_same_bytes(self) -> None:
        path = self.folder.write("a.png", image_files.png())
        cell = self.kernel.run('await attach_image("a.png")')
        data = base64.b64encode(image_files.png()).decode()
        attachment = {"mime_type": "image/png", "data": data, "path": str(path)}
        self.assertEqual(self.shown(cell, ATTACHMENT), [attachment])
        self.assertEqual(cell.result, f"attached {path} (PNG, 3×2)")

    def test_a_model_without_vision_is_told_so(self) -> None:
        self.folder.write("a.png", image_files.png())
        cell = self.kernel.execute(
            'os.environ["PRIME_AGENT_VISION"] = "0"\ntry: await attach_image("a.png")\n'
            'finally: del os.environ["PRIME_AGENT_VISION"]'
        )
        self.assertIn("ImageError: the model takes no images", cell.error)
        self.assertEqual(cell.displays, [])


class AgentMessage(KernelCase):
    RECEIPT = {"id": "m1", "message": "hi", "deliveryStatus": "queued", "target": {"sessionId": "s1"}}

    def test_a_send_reaches_the_host_and_its_receipt_is_shown(self) -> None:
        payloads = self.host("agent_message.send", self.RECEIPT)
        for call, payload in {
            'send("hi", receiver_role="child", receiver_name="reader")': {
                "message": "hi", "receiver_role": "child", "receiver_name": "reader",
            },
            'send(message="hi", receiver_role="parent")': {"message": "hi", "receiver_role": "parent"},
        }.items():
            with self.subTest(call):
                cell = self.kernel.run(f'r = await agent_message.{call}; r["id"]')
                self.assertEqual(payloads.pop(), payload)
                self.assertEqual(self.shown(cell, RECEIPT), [self.RECEIPT])
                self.assertEqual(cell.result, "'m1'")

    def test_of_a_broadcast_only_what_arrived_is_shown(self) -> None:
        failed = {"error": "gone", "target": {"sessionId": "s2"}}
        payloads = self.host("agent_message.send", {"receipts": [self.RECEIPT, failed]})
        cell = self.kernel.run('len(await agent_message.send("all", "hi"))')
        self.assertEqual(payloads, [{"target": "all", "message": "hi"}])
        self.assertEqual(self.shown(cell, RECEIPT), [self.RECEIPT])
        self.assertEqual(cell.result, "2")

    def test_what_the_host_would_refuse_is_refused_before_it_is_asked(self) -> None:
        payloads = self.host("agent_message.send", self.RECEIPT)
        table = {
            'send("hi")': "say who gets it",
            'send("reader", "hi")': "'reader' can't be the first of two texts",
            'send("all", "hi", receiver_role="child")': "takes no receiver_role",
            'send("all", " ")': "a text that is not empty",
            'send("", receiver_role="parent")': "a text that is not empty",
            'send("hi", receiver_role="child")': "a child needs receiver_name",
            'send("hi", receiver_role="boss", receiver_name="x")': "not 'boss'",
            'send(7, receiver_role="parent")': "TypeError",
            'send("hi", receiver_role="parent", mode="steer")': "TypeError",
            'send("hi", receiver_role="parent", sender="other")': "TypeError",
        }
        for call, message in table.items():
            with self.subTest(call):
                self.assertIn(message, self.kernel.execute(f"await agent_message.{call}").error)
        self.assertEqual(payloads, [])

    def test_the_receipt_of_a_task_that_outlives_its_cell_is_shown_too(self) -> None:
        late = {**self.RECEIPT, "id": "late"}
        self.host("agent_message.send", late)
        first = self.kernel.begin(
            "async def later():\n"
            "    await go.wait()\n"
            '    await agent_message.send("hi", receiver_role="parent")\n'
            "go = asyncio.Event(); task = asyncio.create_task(later())"
        )
        self.assertEqual(self.kernel.finish(first).displays, [])
        second = self.kernel.begin("go.set()")
        self.kernel.finish(second)
        # Which of the two cells it counts to depends on the version of ipykernel.
        self.kernel.wait_for(lambda: late in self._receipts(first, second))

    def _receipts(self, *cells: str) -> list[dict]:
        contents = [message["content"] for cell in cells for message in self.kernel.messages(cell)]
        return [content["data"][RECEIPT] for content in contents if RECEIPT in content.get("data", {})]

    def test_the_family_is_listed_as_the_host_tells_it(self) -> None:
        self.host("agent_message.list_agents", {"agents": [{"name": "reader"}]})
        cell = self.kernel.run("await agent_message.list_agents()")
        self.assertEqual(cell.result, "{'agents': [{'name': 'reader'}]}")


class GoalAndCompact(KernelCase):
    def test_requests_carry_their_arguments_and_give_what_the_host_answers(self) -> None:
        table = {
            "goal.get()": ("goal.get", {}),
            "goal()": ("goal.get", {}),
            'goal.create("ship it", token_budget=5)': ("goal.create", {"objective": "ship it", "token_budget": 5}),
            'goal("ship it")': ("goal.create", {"objective": "ship it"}),
            "goal.complete()": ("goal.complete", {}),
            "compact.status()": ("compact.status", {}),
            "compact.run()": ("compact.run", {}),
            'compact("keep x")': ("compact.run", {"instructions": "keep x"}),
        }
        for call, (request, payload) in table.items():
            with self.subTest(call):
                payloads = self.host(request, {"answer": call})
                cell = self.kernel.run(f"await {call}")
                self.assertEqual(payloads, [payload])
                self.assertEqual(cell.result, repr({"answer": call}))

    def test_arguments_are_checked_before_the_host_is_asked(self) -> None:
        payloads = self.host("goal.create", {}) + self.host("compact.run", {})
        for call in ('goal.create("")', "goal.create(1)", 'goal.create("x", 0)', 'goal.create("x", True)',
                     'goal.create("x", "5")', "compact.run(1)"):
            with self.subTest(call):
                self.assertRegex(self.kernel.execute(f"await {call}").error, "^(Type|Value)Error: ")
        self.assertEqual(payloads, [])

    def test_what_the_host_refuses_is_an_exception_with_its_words(self) -> None:
        self.kernel.host["goal.create"] = lambda _: {"status": "error", "error": "there is a goal already"}
        self.assertIn("there is a goal already", self.kernel.execute('await goal.create("x")').error)


class Commands(KernelCase):
    """The same skills in shell cells."""

    def test_edit_changes_a_file_and_its_diff_reaches_the_host(self) -> None:
        path = self.folder.write("a.txt", b"--verbose 1\n")
        cell = self.kernel.run("%%bash\nedit --path a.txt --old-str --verbose --new-str '--quiet\nb'")
        self.assertEqual(cell.stdout, f"edited {path}, line 1\n")
        diff = {"path": str(path), "old_str": "--verbose", "new_str": "--quiet\nb", "start_line": 1}
        self.assertEqual(self.shown(cell, DIFF), [diff])
        self.assertEqual(self.shown(self.kernel.run("1"), DIFF), [])

    def test_an_edit_that_fails_exits_with_1_and_says_why(self) -> None:
        path = self.folder.write("a.txt", b"a\na\n")
        cell = self.kernel.run("%%bash\nedit --path=a.txt --old-str=a --new-str=b; echo $?; edit --path a.txt; echo $?")
        output = cell.stdout + cell.stderr
        self.assertRegex(output, f"edit: {path}: old_str occurs 2 times, on lines 1, 2")
        self.assertIn("the following arguments are required: --old-str, --new-str", output)
        self.assertEqual([line for line in output.splitlines() if line.isdigit()], ["1", "2"])

    def test_attach_image_attaches(self) -> None:
        self.folder.write("a.gif", image_files.gif())
        cell = self.kernel.run("%%bash\nattach_image a.gif")
        self.assertEqual([a["mime_type"] for a in self.shown(cell, ATTACHMENT)], ["image/gif"])

    def test_skills_that_need_the_host_say_how_to_use_them(self) -> None:
        for name in ("agent_message", "goal", "compact"):
            with self.subTest(name):
                cell = self.kernel.run(f"%%bash\n{name} anything 2>&1 || echo failed")
                self.assertRegex(
                    cell.stdout,
                    f"^{name}: not a shell command: .* Use `await {name}\\..*` in a Python cell.\nfailed\n$",
                )

    def test_a_program_of_the_user_with_the_name_of_such_a_skill_goes_first(self) -> None:
        program = self.folder.write("bin/goal", b"#!/bin/sh\necho mine\n")
        program.chmod(0o755)
        self.kernel.run('path = os.environ["PATH"]; os.environ["PATH"] = path.replace(":", f":{os.getcwd()}/bin:", 1)')
        cell = self.kernel.run("%%bash\ngoal")
        self.kernel.run('os.environ["PATH"] = path')
        self.assertEqual(cell.stdout, "mine\n")

    def test_without_built_in_skills_there_are_no_commands(self) -> None:
        cell = self.kernel.run(
            "from rlm import skill_commands\n"
            "skill_commands.install(get_ipython(), [])\n"
            "print(skill_commands.COMMANDS in os.environ['PATH'])\n"
            f"skill_commands.install(get_ipython(), {self.skills!r})\n"
            f"skill_commands.install(get_ipython(), {self.skills!r})\n"
            "print(os.environ['PATH'].split(':').count(skill_commands.COMMANDS))"
        )
        self.assertEqual(cell.stdout, "False\n1\n")


class ForeignSkill(KernelCase):
    """A skill as written for other agents of this design runs unchanged."""

    skills = skill_support.options(skill_support.FIXTURES / "goal-note")

    def test_it_is_called_by_its_name_asks_the_host_and_shows_its_diff(self) -> None:
        self.host("goal.get", {"goal": {"objective": "ship it"}})
        self.folder.write("NOTES.md", b"# Notes\n")
        cell = self.kernel.run('await goal_note("half done", style="bullet")')
        self.assertEqual(cell.result, "'noted in NOTES.md'")
        line = "- ship it: half done\n"
        diff = {"path": "NOTES.md", "old_str": "", "new_str": line, "start_line": 2}
        self.assertEqual(self.shown(cell, DIFF), [diff])
        self.assertEqual((self.folder.path / "NOTES.md").read_text(), f"# Notes\n{line}")

    def test_its_other_functions_and_its_manual_are_there(self) -> None:
        self.host("goal.get", {"goal": {"objective": "ship it"}})
        self.assertEqual(self.kernel.run("await goal_note.current()").result, "'ship it'")
        self.assertIn("Append the goal and `remark` to the notes.", self.kernel.run("help(goal_note)").stdout)


class CreatedSkill(KernelCase):
    """The template of the guide works as it is, both ways that the guide names."""

    TEMPLATE = skill_support.SKILLS / "skill-creator" / "templates" / "line-count"
    skills = skill_support.options(TEMPLATE)

    def test_the_template_runs(self) -> None:
        self.folder.write("a/b.py", b"1\n2\n")
        self.folder.write("c.md", b"1")
        self.folder.write("d.bin", b"\xff\n")
        self.folder.write(".git/x.py", b"1\n")
        self.assertEqual(self.kernel.run("await line_count()").result, "{'.py': 2, '.md': 1}")
        self.assertEqual(self.kernel.run('await line_count(suffix=".md")').result, "{'.md': 1}")
        self.assertIn("FileNotFoundError: nope is not a folder", self.kernel.execute('await line_count("nope")').error)


if __name__ == "__main__":
    unittest.main()
