"""What cells can do to the kernel without harm: interrupts, forks, a stopped loop, plain ends."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import start_kernel

HAS_MATPLOTLIB = importlib.util.find_spec("matplotlib") is not None
HAS_PICKLESHARE = any(map(importlib.util.find_spec, ("pickleshare", "IPython.external.pickleshare")))


class Interrupt(unittest.TestCase):
    """An interrupt ends the cell wherever it waits, and the next cell runs."""

    WAITS = {
        "a plain sleep": ("import time; time.sleep(1000)", "KeyboardInterrupt"),
        "a loop": ("while True: pass", "KeyboardInterrupt"),
        "a top-level await": (
            "import asyncio; await asyncio.sleep(1000)",
            "CancelledError|KeyboardInterrupt",
        ),
        "a future that nobody sets": (
            "import asyncio; await asyncio.get_running_loop().create_future()",
            "CancelledError|KeyboardInterrupt",
        ),
        "asyncio.run": (
            "import asyncio; asyncio.run(asyncio.sleep(1000))",
            "KeyboardInterrupt",
        ),
        "a SIGINT that was ignored by a cell before": (
            "import signal, time; time.sleep(1000)",
            "KeyboardInterrupt",
        ),
    }

    def test_each_kind_of_waiting_ends(self) -> None:
        # The host's bootstrap is part of this: it nests the event loop.
        with start_kernel(bootstrap={}) as kernel:
            kernel.run("import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)")
            for title, (code, enames) in self.WAITS.items():
                with self.subTest(title):
                    msg_id = kernel.begin_running(code)
                    kernel.interrupt()
                    self.assertRegex(kernel.finish(msg_id, timeout=10).reply["ename"], f"^({enames})$")
                    self.assertEqual(kernel.run("40 + 2").result, "42")


class EventLoop(unittest.TestCase):
    def test_a_cell_that_stops_the_loop_does_not_end_the_kernel(self) -> None:
        with start_kernel() as kernel:
            kernel.run("import asyncio; asyncio.get_event_loop().stop()")
            self.assertEqual(kernel.run("1 + 1").result, "2")
            self.assertEqual(kernel.shutdown(), 0)

    def test_an_exit_in_a_task_or_a_callback_does_not_end_the_kernel(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            kernel.run("import asyncio, sys\nasync def leave(): sys.exit(3)")
            self.assertIn(kernel.execute("await asyncio.gather(leave())").reply.get("ename"), ("SystemExit", None))
            kernel.run("asyncio.get_running_loop().call_soon(sys.exit); await asyncio.sleep(0.05)")
            self.assertEqual(kernel.run("1 + 1").result, "2")

    def test_tasks_go_on_after_their_cell(self) -> None:
        with start_kernel() as kernel:
            kernel.run(
                "import asyncio\nasync def later():\n    await asyncio.sleep(0.05); return 7\n"
                "task = asyncio.create_task(later())"
            )
            self.assertEqual(kernel.run("await task").result, "7")


class Streams(unittest.TestCase):
    def test_a_cell_that_takes_the_streams_away_is_answered(self) -> None:
        with start_kernel() as kernel:
            kernel.run("import sys; sys.stdout = sys.stderr = None")
            self.assertEqual(kernel.run("print(1 + 1)").stdout, "2\n")


class Fork(unittest.TestCase):
    """A process that a cell forks ends with the cell, as a script would, and disturbs nobody."""

    ENDS = {"pass": 0, "raise SystemExit": 0, "raise SystemExit(4)": 4, "raise SystemExit('no')": 1, "1/0": 1}

    def test_the_child_ends_where_the_cell_does(self) -> None:
        with start_kernel() as kernel:
            for end, code in self.ENDS.items():
                with self.subTest(end):
                    kernel.run(f"import os\nchild = os.fork()\nif child == 0:\n    {end}")
                    status = kernel.run("os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])")
                    self.assertEqual(status.result, str(code))
            self.assertEqual(kernel.run("1 + 1").result, "2")

    def test_the_child_of_a_task_ends_where_the_task_does(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            kernel.run(
                "import asyncio, os\nasync def fork():\n    global child\n    await asyncio.sleep(0)\n"
                "    child = os.fork()\ntask = asyncio.create_task(fork())"
            )
            kernel.run("await task")
            self.assertEqual(kernel.run("os.waitpid(child, 0)[1]").result, "0")
            self.assertEqual(kernel.run("1 + 1").result, "2")

    def test_workers_of_a_pool_run_functions_of_cells_and_their_output_comes_once(self) -> None:
        with start_kernel() as kernel:
            cell = kernel.run(
                "import multiprocessing\ndef work(n):\n    print(f'worker {n}', flush=True); return n * n\n"
                "with multiprocessing.get_context('fork').Pool(2) as pool: squares = pool.map(work, [3])\n"
                "squares"
            )
            self.assertEqual(cell.result, "[9]")
            msg_ids = lambda: "".join(  # noqa: E731
                m["content"]["text"]
                for found in kernel._messages.values()
                for m in found
                if m["msg_type"] == "stream"
            )
            kernel.wait_for(lambda: "worker 3" in msg_ids())
            self.assertEqual(msg_ids().count("worker 3"), 1)

    def test_random_numbers_differ_between_parent_and_child(self) -> None:
        with start_kernel() as kernel:
            cell = kernel.run(
                "import os, random\nread, write = os.pipe()\nchild = os.fork()\n"
                "if child == 0:\n    os.write(write, repr(random.random()).encode()); os._exit(0)\n"
                "os.waitpid(child, 0); os.read(write - 1, 100).decode() == repr(random.random())"
            )
            self.assertEqual(cell.result, "False")


class Subshells(unittest.TestCase):
    def test_the_kernel_claims_no_subshells(self) -> None:
        with start_kernel() as kernel:
            info = kernel.request("control", "kernel_info_request", {})
            self.assertNotIn("kernel subshells", info.get("supported_features", []))
            self.assertNotIn("debugger", info.get("supported_features", []))


@unittest.skipUnless(HAS_MATPLOTLIB, "matplotlib is not installed in this environment")
class Figures(unittest.TestCase):
    """Figures are shown without telling programs that cells start."""

    PLOT = "import matplotlib.pyplot as plt; plt.plot([1, 2]);"

    def test_an_open_figure_is_displayed_after_the_cell(self) -> None:
        with start_kernel() as kernel:
            self.assertIn("image/png", kernel.run(self.PLOT).displays[0])

    def test_children_do_not_inherit_the_backend(self) -> None:
        with start_kernel() as kernel:
            kernel.run(self.PLOT)
            self.assertEqual(kernel.run("import os; os.environ.get('MPLBACKEND')").result, None)

    def test_a_backend_that_the_user_named_is_kept(self) -> None:
        with start_kernel(env={"MPLBACKEND": "Agg"}) as kernel:
            self.assertEqual(kernel.run(self.PLOT).displays, [])
            self.assertEqual(kernel.run("plt.get_backend().lower()").result, "'agg'")


class LeanImports(unittest.TestCase):
    """What a start leaves out is there when somebody asks for it."""

    def test_packages_that_were_left_out_can_be_imported(self) -> None:
        names = ["jedi", "dateutil.parser", "IPython.terminal.embed", "jupyter_client.manager"]
        names += [name for name in ("debugpy",) if importlib.util.find_spec(name)]
        with start_kernel() as kernel:
            for name in names:
                with self.subTest(name):
                    code = f"import sys, importlib\nbefore = {name!r} in sys.modules\n"
                    cell = kernel.run(f"{code}importlib.import_module({name!r}).__file__, before")
                    self.assertIn("site-packages", cell.result)
                    self.assertIn("False", cell.result)

    def test_a_submodule_that_was_left_out_is_the_one_that_its_package_has(self) -> None:
        with start_kernel() as kernel:
            cell = kernel.run(
                "import jupyter_client.manager as first, sys\nimport jupyter_client\n"
                "jupyter_client.KernelManager is first.KernelManager, jupyter_client.manager is first,"
                " first.__spec__.origin == first.__file__, sys.modules['jupyter_client.manager'] is first"
            )
            self.assertEqual(cell.result, "(True, True, True, True)")

    def test_packages_whose_init_was_put_off_run_it_when_it_is_missed(self) -> None:
        with start_kernel() as kernel:
            cell = kernel.run(
                "import ipykernel, jupyter_client\nfrom jupyter_client import KernelManager\n"
                "jupyter_client.BlockingKernelClient.__name__, ipykernel.get_connection_info.__name__,"
                " KernelManager.__module__, jupyter_client.__version__ > '7'"
            )
            expected = ("BlockingKernelClient", "get_connection_info", "jupyter_client.manager", True)
            self.assertEqual(cell.result, repr(expected))

    def test_completion_and_inspection_work_without_jedi(self) -> None:
        with start_kernel() as kernel:
            kernel.run("import os")
            completed = kernel.request("shell", "complete_request", {"code": "os.getcw", "cursor_pos": 8})
            self.assertTrue(any(match.endswith("getcwd") for match in completed["matches"]))
            self.assertIn("Docstring", kernel.run("os.getcwd?").reply["payload"][0]["data"]["text/plain"])

    def test_message_dates_are_read_like_dateutil_reads_them(self) -> None:
        program = (
            "import sys; sys.path.append(sys.argv[1])\n"
            "from dateutil.parser import isoparse\nfrom rlm.lean_imports import parse_date\n"
            "for text in ('2026-01-02T03:04:05.678901+00:00', '2026-01-02T03:04:05.678Z',"
            " '2026-01-02T03:04:05Z', '2026-01-02T03:04:05+0130', '2026-01-02T03:04:05.1'):\n"
            "    assert parse_date(text) == isoparse(text), text\n"
        )
        kernel_folder = str(Path(__file__).parents[2] / "kernel")
        subprocess.run([sys.executable, "-c", program, kernel_folder], check=True)


class PerformanceOfIdleness(unittest.TestCase):
    def test_an_idle_kernel_uses_no_processor(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            code = "import time\nbefore = time.process_time(); await asyncio.sleep(0.5); time.process_time() - before"
            # Something that spins or polls all the time would use most of it, on a loaded machine half.
            self.assertLess(float(kernel.run(code).result), 0.2)


@unittest.skipUnless(HAS_PICKLESHARE, "this IPython has no database for %store")
class StoreMagic(unittest.TestCase):
    def test_store_works_within_the_kernels_folder(self) -> None:
        with start_kernel() as kernel, tempfile.TemporaryDirectory():
            kernel.run("kept = [1, 2]\n%store kept")
            self.assertEqual(kernel.run("del kept\n%store -r kept\nkept").result, "[1, 2]")
            self.assertTrue(os.path.isdir(os.path.join(kernel.folder, "ipython", "db")))


if __name__ == "__main__":
    unittest.main()
