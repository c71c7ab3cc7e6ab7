"""An interrupt is never lost, never costs a reply, and never meets another cell than the one that it is for."""

from __future__ import annotations

import unittest

from support import start_kernel

AWAIT = "import asyncio; await asyncio.sleep(0)\n"


class Interrupts(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        # The host's bootstrap is part of this: it nests the event loop, and hooks into each cell.
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def assert_interrupted(self, msg_id: str) -> None:
        cell = self.kernel.finish(msg_id)
        self.assertIn(cell.reply.get("ename"), ("KeyboardInterrupt", "CancelledError"), cell)
        self.assertEqual(self.kernel.run("40 + 2").result, "42")

    def test_one_for_a_cell_that_has_to_wait_spares_the_running_one(self) -> None:
        for title, code in {"a plain cell": "", "a cell that waits": AWAIT}.items():
            with self.subTest(title):
                first = self.kernel.begin_running("import time; time.sleep(0.3); 'whole'")
                second = self.kernel.begin(f"{code}ran = True")
                self.kernel.interrupt(second)
                self.assertEqual(self.kernel.finish(first).result, "'whole'")
                self.assert_interrupted(second)
                self.assertEqual(self.kernel.run("'ran' in globals()").result, "False")

    def test_one_for_a_cell_that_is_over_spares_the_next(self) -> None:
        first = self.kernel.begin("1")
        self.kernel.finish(first)
        second = self.kernel.begin_running("import time; time.sleep(0.3); 'whole'")
        self.kernel.interrupt(first)
        self.assertEqual(self.kernel.finish(second).result, "'whole'")

    def test_one_that_is_for_no_cell_in_particular_spares_the_next(self) -> None:
        self.kernel.interrupt()
        self.assertEqual(self.kernel.run("1 + 1").result, "2")

    def test_at_a_cells_end_the_reply_comes_all_the_same(self) -> None:
        for code in ("", f"{AWAIT}print('more')", "import sys; sys.stdout.flush()"):
            for _ in range(50):
                msg_id = self.kernel.begin_running(code)
                self.kernel.interrupt(msg_id)
                cell = self.kernel.finish(msg_id)
                self.assertIn(cell.reply.get("ename"), (None, "KeyboardInterrupt", "CancelledError"))
        self.assertEqual(self.kernel.run("40 + 2").result, "42")

    def test_one_that_comes_during_os_system_ends_the_cell_after_it(self) -> None:
        msg_id = self.kernel.begin("import os; os.system('echo on; sleep 1000'); print('went on')")
        self.kernel.wait_for_output(msg_id)
        self.kernel.interrupt(msg_id)
        cell = self.kernel.finish(msg_id)
        self.assertRegex(cell.error, "^KeyboardInterrupt")
        self.assertEqual(cell.stdout, "on\n")
        self.assertEqual(self.kernel.run("os.system('exit 3') >> 8").result, "3")

    def test_at_a_cells_beginning_it_is_not_lost(self) -> None:
        for code in ("import time; time.sleep(1000)", f"{AWAIT}await asyncio.sleep(1000)", "%%bash\nsleep 1000"):
            for _ in range(50):
                msg_id = self.kernel.begin(code)
                # Without waiting for anything: it may come before, in or behind all that precedes the code.
                self.kernel.interrupt(msg_id)
                cell = self.kernel.finish(msg_id)
                # Python 3.10 at times makes a SystemError of the KeyboardInterrupt.
                names = "KeyboardInterrupt|CancelledError|ShellInterrupted|SystemError"
                self.assertRegex(cell.error, f"^({names})")
        self.assertEqual(self.kernel.run("40 + 2").result, "42")

    def test_in_a_hook_before_the_cell_it_ends_the_hook_and_the_cell(self) -> None:
        self.kernel.run(
            "import time\ndef hook(info):\n    print('in the hook', flush=True)\n    time.sleep(1000)\n"
            "get_ipython().events.register('pre_run_cell', hook)"
        )
        for code in ("", AWAIT):
            msg_id = self.kernel.begin(f"{code}get_ipython().events.unregister('pre_run_cell', hook)")
            self.kernel.wait_for_output(msg_id)
            self.kernel.interrupt(msg_id)
            self.assertEqual(self.kernel.finish(msg_id).reply["ename"], "KeyboardInterrupt")
        msg_id = self.kernel.begin("get_ipython().events.callbacks['pre_run_cell'].remove(hook)", silent=True)
        self.kernel.finish(msg_id)
        self.assertEqual(self.kernel.run("40 + 2").result, "42")

    def test_in_a_finalizer_which_swallows_it_it_comes_again(self) -> None:
        code = (
            "class Slow:\n    def __del__(self):\n        print('in the finalizer', flush=True)\n"
            "        while True: pass\nSlow()\nwhile True: pass"
        )
        msg_id = self.kernel.begin(code)
        self.kernel.wait_for_output(msg_id)
        self.kernel.interrupt(msg_id)
        self.assert_interrupted(msg_id)

    def test_a_loop_behind_an_await_ends(self) -> None:
        for code in (f"{AWAIT}print('on')\nwhile True: pass", f"{AWAIT}print('on')\nimport time; time.sleep(1000)"):
            msg_id = self.kernel.begin(code)
            self.kernel.wait_for_output(msg_id)
            self.kernel.interrupt(msg_id)
            self.assert_interrupted(msg_id)

    def test_what_blocks_the_event_loop_of_a_cell_that_waits_ends(self) -> None:
        blocks = {
            "a task that it waits for": "await asyncio.gather(f())",
            "a task beside it": "task = asyncio.create_task(f()); await asyncio.sleep(1000)",
            "a task with a time limit": "await asyncio.wait_for(f(), 1000)",
            "a callback": "asyncio.get_running_loop().call_soon(block); await asyncio.sleep(1000)",
        }
        for title, code in blocks.items():
            with self.subTest(title):
                msg_id = self.kernel.begin(
                    "import asyncio, time\ndef block():\n    print('on', flush=True); time.sleep(1000)\n"
                    f"async def f(): block()\n{code}"
                )
                self.kernel.wait_for_output(msg_id)
                self.kernel.interrupt(msg_id)
                self.assert_interrupted(msg_id)

    def test_a_waiting_cell_with_pythons_own_handler_ends(self) -> None:
        msg_id = self.kernel.begin_running(
            "import asyncio, signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
            "await asyncio.sleep(0); print('on'); await asyncio.sleep(1000)"
        )
        self.kernel.interrupt(msg_id)
        self.assert_interrupted(msg_id)

    def test_servers_of_earlier_cells_live_on_and_children_of_the_cell_end(self) -> None:
        # Start times of processes count in hundredths of a second: the next cell begins in another one.
        self.kernel.run("import subprocess, time; server = subprocess.Popen(['sleep', '1000']); time.sleep(0.05)")
        msg_id = self.kernel.begin("child = subprocess.Popen(['sleep', '1000']); print('on', flush=True); child.wait()")
        self.kernel.wait_for_output(msg_id)
        self.kernel.interrupt(msg_id)
        self.assert_interrupted(msg_id)
        ended = self.kernel.run("child.wait(20), server.poll()").result
        self.kernel.run("server.kill(); server.wait()")
        self.assertEqual(ended, "(-2, None)")


if __name__ == "__main__":
    unittest.main()
