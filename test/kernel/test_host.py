"""Requests to the host, answered by a fake host over the real comm protocol."""

from __future__ import annotations

import unittest

from support import CONTRACT, start_kernel


def ok(**fields: object) -> dict:
    return {"status": "ok", **fields}


class HostRequests(unittest.TestCase):
    """One kernel; each test has its own handlers."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def setUp(self) -> None:
        self.kernel.host.clear()
        self.kernel.comm_messages.clear()

    def closed(self) -> list:
        return [m for m in self.kernel.comm_messages if m["msg_type"] == "comm_close"]

    def test_a_cell_awaits_an_answer(self) -> None:
        self.kernel.host["goal.get"] = lambda payload: ok(goal=payload["n"] + 1)
        self.assertEqual(self.kernel.run("await rlm.host_request('goal.get', {'n': 1})").result, "{'goal': 2}")
        self.assertEqual(self.closed(), [])

    def test_requests_that_run_in_parallel_each_get_their_own_answer(self) -> None:
        waiting = {}

        def collect(payload: dict) -> None:
            waiting[payload["n"]] = self.kernel.comm_messages[-1]["content"]["comm_id"]
            if len(waiting) == 5:
                for n, comm_id in reversed(waiting.items()):
                    self.kernel.reply_to_comm(comm_id, ok(n=n))

        self.kernel.host["t"] = collect
        cell = self.kernel.run(
            "answers = await asyncio.gather(*[rlm.host_request('t', {'n': n}) for n in range(5)])\n"
            "[answer['n'] for answer in answers]"
        )
        self.assertEqual(cell.result, "[0, 1, 2, 3, 4]")

    def test_a_detached_task_asks_after_its_cell_and_a_later_cell_gets_the_answer(self) -> None:
        self.kernel.host["t"] = lambda payload: ok(value="late")
        self.kernel.run(
            "async def ask():\n    await asyncio.sleep(0.05)\n    return await rlm.host_request('t')\n"
            "task = asyncio.create_task(ask())"
        )
        self.kernel.wait_for(lambda: self.kernel.comm_messages)
        self.assertEqual(self.kernel.run("await task").result, "{'value': 'late'}")

    def test_plain_code_and_threads_wait_without_an_event_loop(self) -> None:
        self.kernel.host["t"] = lambda payload: ok(value=payload["v"])
        self.assertEqual(self.kernel.run("rlm.host_request_sync('t', {'v': 1})").result, "{'value': 1}")
        cell = self.kernel.run(
            "import concurrent.futures\n"
            "with concurrent.futures.ThreadPoolExecutor() as pool:\n"
            "    answer = pool.submit(rlm.host_request_sync, 't', {'v': 2}).result()\n"
            "    other = pool.submit(asyncio.new_event_loop().run_until_complete, rlm.host_request('t', {'v': 3}))\n"
            "    other = other.result()\nanswer, other"
        )
        self.assertEqual(cell.result, "({'value': 2}, {'value': 3})")

    def test_an_error_of_the_host_becomes_an_exception_with_its_message(self) -> None:
        self.kernel.host["t"] = lambda payload: {"status": "error", "error": "no such thing"}
        for code in ("await rlm.host_request('t')", "rlm.host_request_sync('t')"):
            self.assertEqual(self.kernel.execute(code).error, "HostError: no such thing")

    def test_a_type_that_the_host_does_not_know_becomes_an_exception_that_names_it(self) -> None:
        self.assertIn("nobody.knows", self.kernel.execute("await rlm.host_request('nobody.knows')").error)

    def test_an_unexpected_status_raises(self) -> None:
        for data in ({"status": "maybe"}, {}, {"status": None}):
            self.kernel.host["t"] = lambda payload, data=data: data
            self.assertIn("unexpected status", self.kernel.execute("await rlm.host_request('t')").error)

    def test_the_end_of_the_comm_without_an_answer_raises(self) -> None:
        def hang_up(payload: dict) -> None:
            comm_id = self.kernel.comm_messages[-1]["content"]["comm_id"]
            self.kernel.reply_to_comm(comm_id, {}, "comm_close")

        self.kernel.host["t"] = hang_up
        self.assertIn("without an answer", self.kernel.execute("await rlm.host_request('t')").error)

    def test_answers_that_nobody_waits_for_are_dropped(self) -> None:
        def answer_twice(payload: dict) -> dict:
            comm_id = self.kernel.comm_messages[-1]["content"]["comm_id"]
            self.kernel.reply_to_comm("0" * 32, ok(n=0))
            self.kernel.reply_to_comm(comm_id, ok(n=1))
            return ok(n=2)

        self.kernel.host["t"] = answer_twice
        self.assertEqual(self.kernel.run("await rlm.host_request('t')").result, "{'n': 1}")
        self.assertEqual(self.kernel.run("1").stderr, "")

    def test_the_payload_can_not_take_the_place_of_the_type(self) -> None:
        cell = self.kernel.execute("await rlm.host_request('t', {'type': 'rlm.run'})")
        self.assertIn("ValueError", cell.error)
        self.assertEqual(self.kernel.comm_messages, [])

    def test_a_request_that_is_too_large_or_no_json_is_not_sent(self) -> None:
        limit = CONTRACT["limits"]["host_request_bytes"]
        for payload, ename in ((f"{{'x': 'y' * {limit}}}", "HostError"), ("{'x': object()}", "TypeError")):
            cell = self.kernel.execute(f"await rlm.host_request('t', {payload})")
            self.assertEqual(cell.reply["ename"], ename)
        self.assertEqual(self.kernel.comm_messages, [])

    def test_an_interrupt_of_the_cell_cancels_the_request_at_the_host(self) -> None:
        for code in ("await rlm.host_request('t')", "rlm.host_request_sync('t')"):
            with self.subTest(code):
                self.kernel.comm_messages.clear()
                self.kernel.host["t"] = lambda payload: None
                msg_id = self.kernel.begin(code)
                self.kernel.wait_for(lambda: self.kernel.comm_messages)
                self.kernel.interrupt()
                self.assertEqual(self.kernel.finish(msg_id, timeout=10).status, "error")
                self.kernel.wait_for(self.closed)
                asked, ended = self.kernel.comm_messages
                self.assertEqual(asked["content"]["comm_id"], ended["content"]["comm_id"])

    def test_a_time_limit_of_the_caller_cancels_too(self) -> None:
        self.kernel.host["t"] = lambda payload: None
        for code in ("await rlm.host_request('t', timeout=0.05)", "rlm.host_request_sync('t', timeout=0.05)"):
            with self.subTest(code):
                self.kernel.comm_messages.clear()
                self.assertIn("TimeoutError: the host did not answer", self.kernel.execute(code).error)
                self.kernel.wait_for(self.closed)

    def test_nothing_that_a_cell_does_to_its_names_stops_requests(self) -> None:
        self.kernel.host["t"] = lambda payload: ok()
        self.kernel.run(
            "ask = rlm.host_request\n"
            "print = open = list = dict = type = asyncio = json = None; __builtins__ = 5"
        )
        self.assertEqual(self.kernel.run("await ask('t')").result, "{}")
        self.kernel.run("%reset -f")
        self.assertEqual(self.kernel.run("await rlm.host_request('t')").result, "{}")

    def test_a_forked_process_is_told_that_it_can_not_ask(self) -> None:
        cell = self.kernel.run(
            "import os\nread, write = os.pipe()\nchild = os.fork()\nif child == 0:\n"
            "    try: rlm.host_request_sync('t')\n"
            "    except rlm.HostError as error: os.write(write, str(error).encode())\n"
            "    os._exit(0)\n"
            "os.waitpid(child, 0); os.read(read, 500).decode()"
        )
        self.assertIn("forked process", cell.result)


class Subagents(unittest.TestCase):
    """`rlm` as cells use it."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def setUp(self) -> None:
        self.asked: list = []
        for name in ("rlm.run", "rlm.find_models", "rlm.list_subagents", "rlm.delete_subagent"):
            self.kernel.host[name] = self.answer

    def answer(self, payload: dict) -> dict:
        self.asked.append(payload)
        return ok(
            rlm_child_id="c1", name="reader", session_dir="/s", model="m/1", models=["one"],
            subagents=[{"rlm_child_id": "c1"}], subagent={"rlm_child_id": "c1"},
        )

    def test_calling_the_module_and_run_start_a_child_and_return_its_handle(self) -> None:
        for call in ("rlm", "rlm.run"):
            cell = self.kernel.run(f"child = await {call}('task', name='reader', thinking='low')\nchild.name")
            self.assertEqual(cell.result, "'reader'")
        expected = {"type": "rlm.run", "prompt": "task", "kwargs": {"name": "reader", "thinking": "low"}}
        self.assertEqual(self.asked, [expected, expected])
        self.assertEqual(
            self.kernel.run("child").result,
            "Subagent(rlm_child_id='c1', name='reader', session_dir='/s', model='m/1')",
        )

    def test_unknown_options_and_bad_values_are_refused_before_the_host_is_asked(self) -> None:
        refused = {
            "rlm('t', nmae='x')": "TypeError: unknown option 'nmae': rlm takes name, model, thinking",
            "rlm('t', name=3)": "TypeError: name is a string, not int",
            "rlm('  ')": "ValueError: the prompt of a sub-agent",
            "rlm.find_models('x', limit=21)": "ValueError: limit is a number from 1 to 20",
            "rlm.delete_subagent(3)": "TypeError: name a sub-agent",
        }
        for call, message in refused.items():
            with self.subTest(call):
                self.assertIn(message, self.kernel.execute(f"await {call}").error)
        self.assertEqual(self.asked, [])

    def test_models_and_subagents_are_lists(self) -> None:
        self.assertEqual(self.kernel.run("await rlm.find_models('opus', limit=3)").result, "['one']")
        self.assertEqual(self.kernel.run("await rlm.list_subagents()").result, "[{'rlm_child_id': 'c1'}]")
        self.assertEqual(self.asked[0], {"type": "rlm.find_models", "query": "opus", "limit": 3})

    def test_a_child_is_deleted_by_handle_entry_id_or_name(self) -> None:
        self.kernel.run(
            "child = await rlm('t')\nfor target in (child, {'rlm_child_id': 'c1'}, 'c1'):\n"
            "    await rlm.delete_subagent(target)"
        )
        deleted = {"type": "rlm.delete_subagent", "target": "c1"}
        self.assertEqual(self.asked[1:], [deleted] * 3)

    def test_help_describes_the_calls_and_not_the_machinery(self) -> None:
        text = self.kernel.run("help(rlm)").stdout
        for name in ("run(", "find_models(", "list_subagents(", "delete_subagent(", "host_request("):
            self.assertIn(name, text)
        self.assertNotIn("class ", text)
        self.assertIn("await rlm(", self.kernel.run("rlm?").reply["payload"][0]["data"]["text/plain"])


if __name__ == "__main__":
    unittest.main()
