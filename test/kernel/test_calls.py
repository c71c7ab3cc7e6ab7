"""The host's own calls: they work beside cells, and nothing a cell does breaks them."""

from __future__ import annotations

import unittest

from support import start_kernel

# Operations that only exist here, registered by a cell.
OPERATIONS = """
from rlm.calls import op
import asyncio

@op("test.fail", channel="both")
def fail(kernel, args):
    raise KeyError("deliberately")

@op("test.exit")
def leave(kernel, args):
    raise SystemExit(3)

@op("test.wait")
async def wait(kernel, args):
    await asyncio.sleep(0.01)
    return {"waited": args["n"], "same": kernel.shell is get_ipython()}

@op("test.object")
def no_json(kernel, args):
    return object()
"""


class Calls(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel()
        cls.addClassCleanup(cls.kernel.close)
        cls.kernel.run(OPERATIONS)

    def test_both_channels_answer(self) -> None:
        for channel in ("shell", "control"):
            self.assertEqual(self.kernel.call("ping", channel=channel), {"pid": self.kernel.process.pid})

    def test_control_answers_while_a_cell_runs(self) -> None:
        msg_id = self.kernel.begin_running("import time\nwhile True: time.sleep(0.01)")
        self.assertEqual(self.kernel.call("ping", channel="control"), {"pid": self.kernel.process.pid})
        self.kernel.interrupt()
        self.kernel.finish(msg_id)

    def test_a_coroutine_is_awaited(self) -> None:
        self.assertEqual(self.kernel.call("test.wait", {"n": 4}), {"waited": 4, "same": True})

    def test_each_failure_is_answered_and_harms_nothing(self) -> None:
        failures = {
            ("test.fail", "shell"): "KeyError: 'deliberately'",
            ("test.fail", "control"): "KeyError: 'deliberately'",
            ("test.exit", "shell"): "SystemExit: 3",
            ("test.object", "shell"): "TypeError: Object of type object is not JSON serializable",
            ("no.such", "shell"): "LookupError: unknown operation 'no.such'",
            ("test.wait", "control"): "LookupError: 'test.wait' is not for the control channel",
        }
        for (operation, channel), message in failures.items():
            with self.subTest(operation=operation, channel=channel):
                with self.assertRaises(RuntimeError) as caught:
                    self.kernel.call(operation, channel=channel)
                self.assertIn(message, str(caught.exception))
        self.assertEqual(self.kernel.run("1 + 1").result, "2")

    def test_a_failure_carries_its_traceback(self) -> None:
        content = self.kernel.request("shell", "prime_agent_request", {"op": "test.fail", "args": {}})
        self.assertEqual((content["status"], content["ename"]), ("error", "KeyError"))
        self.assertIn("deliberately", "".join(content["traceback"]))

    def test_a_malformed_request_is_answered(self) -> None:
        content = self.kernel.request("shell", "prime_agent_request", {})
        self.assertEqual((content["status"], content["ename"]), ("error", "KeyError"))

    def test_calls_leave_no_trace_in_history_names_or_output(self) -> None:
        before = self.kernel.run("n = len(In); sorted(globals())").result
        self.kernel.call("ping")
        cell = self.kernel.run("len(In) - n")
        self.assertEqual(cell.result, "1")
        self.assertEqual(self.kernel.run("del n; sorted([*globals(), 'n'])").status, "ok")
        self.assertIn("'In'", before)

    def test_calls_work_after_a_cell_has_spoilt_its_namespace(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            kernel.run(
                "import io, sys, os\nout = io.StringIO()\n"
                "print = open = list = dict = type = asyncio = json = None; __builtins__ = 5\n"
                "os.environ.clear(); del get_ipython; sys.path.clear(); sys.stdout = sys.stderr = out"
            )
            self.assertEqual(kernel.call("ping"), {"pid": kernel.process.pid})
            self.assertIn("rlm", kernel.call("bootstrap"))
            self.assertEqual(kernel.run("del print; print(1 + 1)").stdout, "2\n")


if __name__ == "__main__":
    unittest.main()
