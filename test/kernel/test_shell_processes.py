"""What shell cells leave behind, and how they are interrupted."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path
from typing import Any

from shell_support import ShellCase
from support import is_alive, wait_until

# Prints its pid and waits; `{}` is where a way to resist goes.
WAIT = "sh -c '{} echo $$; while :; do sleep 1000; done'"


class Background(ShellCase):
    def start_background(self, script: str) -> tuple[Any, int]:
        """Runs a cell that prints the pid of a background process; that is killed after the test."""
        cell = self.bash(script)
        pid = int(cell.stdout.split()[0])
        self.addCleanup(os.kill, pid, signal.SIGKILL)
        return cell, pid

    def test_the_cell_ends_with_its_shell_and_names_what_still_runs(self) -> None:
        ways = {
            "plain": "sleep 1001 & echo $!; echo started",
            "nohup": "nohup sleep 1002 2>/dev/null & echo $!; echo started",
            "a session of its own": "setsid sleep 1003 & echo $!; echo started",
            "without our pipe": "sleep 1004 >/dev/null 2>&1 & echo $!; echo started",
        }
        for title, script in ways.items():
            with self.subTest(title):
                cell, pid = self.start_background(script)
                self.assertEqual(cell.stdout, f"{pid}\nstarted\n")
                self.assertIn(f"note: 1 background process is still running (pid {pid}: ", cell.stderr)
                self.assertIn("sleep 100", cell.stderr)
                self.assertEqual(cell.stderr.splitlines()[-1], "exit 0")
                self.assertTrue(is_alive(pid))

    def test_its_later_output_goes_to_the_named_file_and_to_no_cell(self) -> None:
        script = "sh -c 'while [ ! -e go ]; do sleep 0.02; done; echo late; touch done; sleep 1000' & echo $!"
        cell, pid = self.start_background(script)
        log = re.search(r"further output goes to (\S+)", cell.stderr)
        assert log is not None
        (self.folder / "go").touch()
        wait_until((self.folder / "done").exists)
        later = self.kernel.execute("print('mine')")
        self.assertEqual((later.stdout, later.stderr), ("mine\n", ""))
        wait_until(lambda: Path(log[1]).read_text() == "late\n")
        self.assertTrue(is_alive(pid))

    def test_a_flood_in_the_background_is_neither_blocked_nor_kept_whole(self) -> None:
        script = "sh -c 'head -c 20000000 /dev/zero; touch flooded; sleep 1000' & echo $!"
        cell, _pid = self.start_background(script)
        wait_until((self.folder / "flooded").exists)
        log = re.search(r"further output goes to (\S+)", cell.stderr)
        assert log is not None
        sizes = [os.path.getsize(path) for path in (log[1], log[1] + ".old") if os.path.exists(path)]
        self.assertLessEqual(sum(sizes), 9_000_000)

    def test_a_helper_that_the_shell_does_not_wait_for_still_shows_its_output(self) -> None:
        self.assert_shell(self.bash("exec > >(cat) 2>&1; echo through the pipe"), "through the pipe\n")


class Interrupt(ShellCase):
    def interrupt(self, code: str, lines: int = 1) -> Any:
        """Runs a cell, interrupts it when it has printed so many lines, and returns how it ended."""
        msg_id = self.kernel.begin(code)

        def output() -> str:
            contents = [m["content"] for m in self.kernel.messages(msg_id) if m["msg_type"] == "stream"]
            return "".join(content["text"] for content in contents)

        self.kernel.wait_for(lambda: output().count("\n") >= lines)
        self.kernel.interrupt()
        return self.kernel.finish(msg_id)

    def assert_ended(self, cell: Any, lines: int = 1) -> None:
        pids = [int(word) for word in cell.stdout.split()[:lines]]
        self.assertEqual(len(pids), lines)
        self.assertEqual([pid for pid in pids if is_alive(pid)], [])

    def test_the_whole_tree_ends_whatever_it_ignores(self) -> None:
        ways = {
            "a plain child": (WAIT.format(""), 1),
            "children that ignore INT and TERM": ("trap '' INT TERM; " + WAIT.format("") + " & " + WAIT.format(""), 2),
            "a child with handlers of its own": (WAIT.format('trap "echo no" INT TERM;'), 1),
            "a child in a session of its own": (f"setsid {WAIT.format('')} & wait; sleep 1000", 1),
        }
        self.kernel.run("kept = 'kept'")
        for title, (script, lines) in ways.items():
            with self.subTest(title):
                cell = self.interrupt(f"%%bash\n{script}", lines)
                self.assertEqual(cell.error, "ShellInterrupted: interrupted: bash and all its processes were ended")
                self.assert_ended(cell, lines)
                self.assertEqual(self.kernel.run("kept").result, "'kept'")

    def test_output_before_the_interrupt_is_kept_also_half_a_line(self) -> None:
        cell = self.interrupt("%%bash\necho whole; printf half; sleep 1000")
        self.assertEqual(cell.stdout, "whole\nhalf")

    def test_a_loop_of_commands_ends(self) -> None:
        for code in ("print('on')\nwhile True:\n    !true", "print('on')\nwhile True:\n    x = !sleep 1000"):
            with self.subTest(code):
                self.assertRegex(self.interrupt(code).error, "^(ShellInterrupted|KeyboardInterrupt)")
                self.assertEqual(self.kernel.run("1 + 1").result, "2")

    def test_several_interrupts_are_like_one(self) -> None:
        script = "trap '' INT TERM; " + WAIT.format("")
        msg_id = self.kernel.begin(f"%%bash\n{script}")
        self.kernel.wait_for(lambda: [m for m in self.kernel.messages(msg_id) if m["msg_type"] == "stream"])
        for _ in range(3):
            self.kernel.interrupt()
        cell = self.kernel.finish(msg_id)
        self.assertEqual(cell.reply["ename"], "ShellInterrupted")
        self.assert_ended(cell)

    def test_an_ignored_sigint_of_the_cell_does_not_matter(self) -> None:
        code = (
            "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
            f"get_ipython().run_cell_magic('bash', '', {WAIT.format('')!r})"
        )
        self.assert_ended(self.interrupt(code))

    def test_a_time_limit_around_a_shell_cell_ends_its_tree(self) -> None:
        code = (
            f"with time_limit(0.3):\n    get_ipython().run_cell_magic('bash', '', {WAIT.format('trap : INT TERM;')!r})"
        )
        cell = self.kernel.execute(code)
        self.assertEqual(cell.reply["ename"], "TimeLimitExceeded")
        self.assert_ended(cell)
