"""`!command` and `x = !command`."""

from __future__ import annotations

from shell_support import ShellCase


class SystemCommand(ShellCase):
    def test_a_failure_shows_its_exit_code_and_does_not_fail_the_cell(self) -> None:
        self.assert_shell(self.kernel.execute("!echo out; exit 4"), "out\n", "exit code 4\n")
        self.assertEqual(self.kernel.run("_exit_code").result, "4")
        self.assert_shell(
            self.kernel.execute("!kill -9 $$"), "", "killed by signal 9 (SIGKILL, perhaps out of memory)\n"
        )
        self.assertEqual(self.kernel.run("_exit_code").result, "-9")

    def test_a_success_adds_nothing(self) -> None:
        self.assert_shell(self.kernel.execute("!echo out; echo err >&2"), "out\nerr\n", "")

    def test_values_are_filled_in_as_ipython_documents(self) -> None:
        self.kernel.run("x = 'a  b'")
        self.assert_shell(self.kernel.execute("!echo {x} ${{HOME}} $x"), f"a b {self.home()} a b\n", "")
        self.assert_shell(self.kernel.execute("def f(y):\n    !echo {y}\nf(3)"), "3\n", "")

    def home(self) -> str:
        return self.kernel.run("import os; print(os.environ['HOME'])").stdout.strip()

    def test_stdin_is_empty_and_there_is_no_terminal(self) -> None:
        self.assert_shell(self.kernel.execute("!cat; tty; test -t 1 || echo plain"), "not a tty\nplain\n", "")
        cell = self.kernel.execute("!echo x > /dev/tty")
        self.assertRegex(cell.stdout, "/dev/tty")

    def test_stdin_is_empty_also_when_a_cell_gave_the_kernel_another_one(self) -> None:
        self.kernel.run("import os\nsaved = os.dup(0); reading, writing = os.pipe(); _ = os.dup2(reading, 0)")
        cell = self.kernel.execute("!cat; echo over")
        self.kernel.run("_ = os.dup2(saved, 0)")
        self.assert_shell(cell, "over\n", "")

    def test_output_is_captured_as_lines_or_one_string(self) -> None:
        cell = self.kernel.execute("x = !echo one; echo two >&2; exit 2")
        self.assert_shell(cell, "", "exit code 2\n")
        self.assertEqual(self.kernel.run("x").result, "['one', 'two']")
        self.assertEqual(self.kernel.run("get_ipython().getoutput('echo one', split=False)").result, r"'one\n'")

    def test_a_background_process_does_not_hold_the_cell(self) -> None:
        cell = self.kernel.execute("!sleep 1000 & echo $!")
        self.assertIn("note: 1 background process is still running", cell.stderr)
        self.kernel.execute(f"!kill {cell.stdout.strip()}")
