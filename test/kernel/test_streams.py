"""What cells do to their own output, input and end."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path

from support import RunningKernel, start_kernel


class KernelCase(unittest.TestCase):
    kernel: RunningKernel

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def assert_next_cell_runs(self) -> None:
        cell = self.kernel.run("print('next')")
        self.assertEqual((cell.stdout, cell.stderr), ("next\n", ""))


class OddText(KernelCase):
    def test_a_lone_surrogate_is_printed_readably(self) -> None:
        cell = self.kernel.run(r"print('\ud800x'); print('ok')")
        self.assertEqual((cell.stdout, cell.stderr), ("\\ud800x\nok\n", ""))
        self.assert_next_cell_runs()

    def test_the_bytes_of_an_undecodable_file_name_are_marked(self) -> None:
        cell = self.kernel.run(
            "import os, tempfile\nwith tempfile.TemporaryDirectory() as d:\n"
            "    open(d.encode() + b'/caf\\xe9.txt', 'w').close()\n"
            "    for name in os.listdir(d): print(name, '\\ud800')"
        )
        self.assertEqual(cell.stdout, "caf\ufffd.txt \\ud800\n")

    def test_errors_and_displays_may_hold_them_too(self) -> None:
        cell = self.kernel.execute(r"raise ValueError('\ud800x')")
        self.assertEqual(cell.error, "ValueError: \\ud800x")
        cell = self.kernel.run(r"display({'text/plain': '\ud800x'}, raw=True)")
        self.assertEqual(cell.displays, [{"text/plain": "\\ud800x"}])
        self.assert_next_cell_runs()

    def test_nan_in_a_message_gives_no_warning(self) -> None:
        cell = self.kernel.run("display({'application/json': {'x': float('nan')}}, raw=True)")
        self.assertEqual(cell.stderr, "")
        self.assertEqual(len(cell.displays), 1)

    def test_what_c_code_prints_comes_with_its_cell_and_line_by_line(self) -> None:
        printf = "import ctypes; printf = ctypes.CDLL(None).printf\n"
        cell = self.kernel.run(f"{printf}n = printf(b'no line break')")
        self.assertEqual(cell.stdout, "no line break")
        msg_id = self.kernel.begin(f"{printf}printf(b'a line\\n'); import time; time.sleep(1000)")
        self.kernel.wait_for_output(msg_id)
        self.kernel.interrupt(msg_id)
        self.assertIn("KeyboardInterrupt", self.kernel.finish(msg_id).error)
        self.assert_next_cell_runs()

    def test_odd_bytes_of_a_child_process_are_marked_and_later_output_goes_on(self) -> None:
        cell = self.kernel.run(
            "import os, subprocess\nsubprocess.run(['printf', '\\\\xe9 caf'])\n"
            "for byte in (b'\\xe2', b'\\x82', b'\\xac'): subprocess.run(['sleep', '0.02']); os.write(1, byte)\n"
            "_ = subprocess.run('seq 1 100000', shell=True)"
        )
        self.kernel.wait_for(lambda: "100000\n" in cell_stdout(self.kernel, cell))
        self.assertEqual(cell_stdout(self.kernel, cell)[:10], "\ufffd caf€1\n2\n")


def cell_stdout(kernel: RunningKernel, cell) -> str:
    """A cell's stdout up to now: what children write may come after its end."""
    msg_id = cell.messages[0]["parent_header"]["msg_id"]
    contents = [m["content"] for m in kernel.messages(msg_id) if m["msg_type"] == "stream"]
    return "".join(c["text"] for c in contents if c["name"] == "stdout")


class BrokenStreams(KernelCase):
    def test_closing_stdout_does_nothing(self) -> None:
        self.kernel.run("import sys; sys.stdout.close(); sys.stderr.close(); print('still')")
        self.assert_next_cell_runs()

    def test_replaced_streams_come_back_with_a_note(self) -> None:
        self.kernel.run("import io, sys; sys.stdout = sys.stderr = io.StringIO(); print('lost')")
        cell = self.kernel.run("print('back')")
        self.assertEqual(cell.stdout, "back\n")
        self.assertEqual(
            cell.stderr, "note: an earlier cell had replaced sys.stdout and sys.stderr; output is shown again\n"
        )
        self.assert_next_cell_runs()

    def test_what_a_cell_captures_is_captured_and_needs_no_note(self) -> None:
        cell = self.kernel.run("%%capture taken\nimport sys; print('out'); print('err', file=sys.stderr)")
        self.assertEqual((cell.stdout, cell.stderr), ("", ""))
        self.assertEqual(self.kernel.run("taken.stdout, taken.stderr").result, repr(("out\n", "err\n")))
        nested = "import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as held: get_ipython().run_cell('print(1)')"
        self.assertEqual(self.kernel.run(nested).stdout, "")
        cell = self.kernel.run("held.getvalue()")
        self.assertEqual((cell.result, cell.stderr), (repr("1\n"), ""))

    def test_a_redirection_within_a_cell_needs_no_note(self) -> None:
        self.kernel.run("import contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()): print(1)")
        self.assert_next_cell_runs()

    def test_a_closed_descriptor_does_no_harm(self) -> None:
        self.kernel.run("import os; os.close(1)")
        self.assert_next_cell_runs()


class NoInput(KernelCase):
    def test_asking_for_input_fails_at_once_and_says_where(self) -> None:
        asking = {
            "x = 1\ninput('name? ')": "line 2: no interactive input here: input()",
            "import getpass\n\ngetpass.getpass()": "line 3: no interactive input here: getpass()",
            "breakpoint()": "line 1: no interactive input here: breakpoint()",
            "import pdb\npdb.set_trace()\nx = 2": "no interactive input here: input()",
        }
        for code, text in asking.items():
            with self.subTest(code):
                cell = self.kernel.execute(code)
                self.assertEqual(cell.reply["ename"], "NoInteractiveInput")
                self.assertEqual(len(cell.reply["traceback"]), 1)
                self.assertIn(text, cell.reply["traceback"][0])
                self.assert_next_cell_runs()

    def test_stdin_is_at_its_end(self) -> None:
        self.assertEqual(self.kernel.run("import sys; sys.stdin.read()").result, "''")
        self.assertEqual(
            self.kernel.run("import subprocess; subprocess.run(['cat'], capture_output=True).stdout").result, "b''"
        )


class Exits(KernelCase):
    def test_a_failing_exit_is_the_error_of_the_cell(self) -> None:
        for code, text in {
            "import sys; sys.exit(3)": "script called exit(3)",
            "exit(4)": "script called exit(4)",
            "quit(-1)": "script called exit(-1)",
            "raise SystemExit('no such file')": "no such file\nscript called exit(1)",
        }.items():
            with self.subTest(code):
                cell = self.kernel.execute(f"{code}\nprint('went on')")
                self.assertEqual((cell.reply["ename"], cell.reply["traceback"]), ("SystemExit", [text]))
                self.assertEqual((cell.stdout, cell.stderr), ("", ""))
                self.assert_next_cell_runs()

    def test_a_script_that_fails_fails_its_cell_whatever_is_shown_after_it(self) -> None:
        ways = {"raise ValueError('bad')": "ValueError: bad", "import sys; sys.exit(4)": "SystemExit: 4"}
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "script.py")
            for script, error in ways.items():
                with self.subTest(script):
                    path.write_text(script)
                    cell = self.kernel.execute(f"%run {path}\ndisplay('a figure that it left')")
                    self.assertEqual(cell.reply["status"], "error")
                    self.assertIn(error, cell.error)
            for script in ("x = 1", "import sys; sys.exit(0)"):
                path.write_text(script)
                self.assertEqual(self.kernel.execute(f"%run {path}").reply["status"], "ok")
        self.assert_next_cell_runs()

    def test_a_successful_exit_is_a_success(self) -> None:
        for code in ("exit()", "quit", "exit", "import sys; sys.exit()", "import sys; sys.exit(0)"):
            with self.subTest(code):
                cell = self.kernel.execute(code)
                self.assertEqual((cell.error, cell.stderr), ("", "script called exit(0)\n"))
                self.assertEqual(cell.reply["payload"], [])
                self.assert_next_cell_runs()


class Hints(KernelCase):
    def test_a_nested_event_loop_that_fails_points_to_await(self) -> None:
        cell = self.kernel.execute("raise RuntimeError('asyncio.run() cannot be called from a running event loop')")
        self.assertIn("use top-level await", cell.stderr)

    def test_a_worker_that_can_not_import_a_cells_function_is_explained(self) -> None:
        cell = self.kernel.execute(
            "import multiprocessing, concurrent.futures\ndef work(): return 1\n"
            "spawn = multiprocessing.get_context('spawn')\n"
            "with concurrent.futures.ProcessPoolExecutor(1, mp_context=spawn) as pool:\n"
            "    pool.submit(work).result()"
        )
        self.assertRegex(cell.error, "BrokenProcessPool|AttributeError")
        self.assertIn("could not import what a cell defines", cell.stderr)

    def test_other_errors_get_none(self) -> None:
        self.assertEqual(self.kernel.execute("raise RuntimeError('x')").stderr, "")
