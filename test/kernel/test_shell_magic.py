"""`%%bash` and its family: what is run, what is shown, how it ends."""

from __future__ import annotations

import os
import re
import unittest
from pathlib import Path

from shell_support import ShellCase
from support import is_alive, start_kernel, wait_until


class Script(ShellCase):
    def test_a_command_that_reads_stdin_does_not_eat_the_lines_after_it(self) -> None:
        for reader in ("cat >/dev/null", "dd bs=1 count=8 2>/dev/null", "python3", "read line"):
            with self.subTest(reader):
                cell = self.bash(f"echo A\n{reader}\necho B")
                self.assert_shell(cell, "A\nB\n")

    def test_windows_line_ends_are_normalised(self) -> None:
        cell = self.kernel.execute("%%bash\r\nif true; then\r\necho hi\r\nfi\r\n")
        self.assert_shell(cell, "hi\n")

    def test_a_line_of_any_length_is_shown(self) -> None:
        cell = self.bash("head -c 300000 /dev/zero | tr '\\0' x; echo")
        self.assert_shell(cell, "x" * 300_000 + "\n")

    def test_characters_survive_any_chunking_and_odd_bytes_are_marked(self) -> None:
        script = r"""
echo first
printf 'caf\xe9\n'
for byte in '\xe2' '\x82' '\xac'; do printf "$byte"; sleep 0.02; done
python3 -c 'print("€" * 50000)'
echo last"""
        self.assert_shell(self.bash(script), "first\ncaf\ufffd\n€" + "€" * 50_000 + "\nlast\n")

    def test_stdout_and_stderr_keep_their_order(self) -> None:
        cell = self.bash("echo o1; echo e1 >&2; echo o2; echo e2 >&2")
        self.assert_shell(cell, "o1\ne1\no2\ne2\n")

    def test_the_output_of_a_python_child_keeps_its_order_too(self) -> None:
        code = "import sys; print(1); print(2, file=sys.stderr); print(3)"
        self.assert_shell(self.bash(f"python3 -c '{code}'"), "1\n2\n3\n")

    def test_arguments_follow_the_option_s(self) -> None:
        cell = self.bash('echo "$1|$2|$#"', "%%bash -e -s one 'two words'")
        self.assert_shell(cell, "one|two words|2\n")

    def test_python_values_go_into_the_arguments(self) -> None:
        self.kernel.run("name = 'value'")
        self.assert_shell(self.bash("echo $1", "%%bash -s {name}"), "value\n")

    def test_each_cell_is_a_shell_of_its_own(self) -> None:
        self.bash("cd /; variable=1")
        self.assert_shell(self.bash('pwd; echo "[$variable]"'), f"{self.folder}\n[]\n")

    def test_other_programs_take_the_script_as_a_file(self) -> None:
        (self.folder / "beside.py").write_text("here = 7\n")
        cells = {
            "%%sh": ("echo $0 | grep -c cell-", "1\n"),
            "%%script bash": ("echo $BASH_VERSION | grep -c .", "1\n"),
            "%%script env X=1 sh": ("echo $X", "1\n"),
            "%%python3": ("import beside\nprint(beside.here, __name__)", "7 __main__\n"),
            "%%perl": ("print 'perl' . qq(\\n);", "perl\n"),
            "%%script awk -f": ("BEGIN { print 2 + 3 }", "5\n"),
        }
        for head, (script, expected) in cells.items():
            with self.subTest(head):
                self.assert_shell(self.bash(script, head), expected)

    def test_a_quoted_path_of_a_custom_shell_may_hold_spaces(self) -> None:
        shell = self.folder / "my shell"
        shell.symlink_to("/bin/bash")
        self.assert_shell(self.bash("echo custom", f"%%script '{shell}'"), "custom\n")

    def test_the_script_is_a_private_file_that_is_gone_afterwards(self) -> None:
        cell = self.bash('stat -c %a "$0"; echo "$0"')
        mode, path = cell.stdout.split()
        self.assertEqual(mode, "600")
        self.assertFalse(os.path.exists(path))


class ExitCode(ShellCase):
    def test_a_success_says_so_also_without_output(self) -> None:
        self.assert_shell(self.bash("false\necho ok"), "ok\n")
        self.assert_shell(self.bash("true"), "", "exit 0, no output\n")

    def test_a_failure_is_an_error_of_one_line_without_the_script(self) -> None:
        failures = {
            "echo out; exit 3": "exit code 3",
            "kill -9 $$": "killed by signal 9 (SIGKILL, perhaps out of memory)",
            "sh -c 'kill -TERM $$'; exit $?": "exit code 143 (SIGTERM)",
            "seq 1 200000 >/dev/null; echo FINAL >&2; exit 1": "exit code 1",
        }
        for script, text in failures.items():
            with self.subTest(script):
                cell = self.bash(script)
                self.assertEqual(cell.error, f"ShellError: {text}")
                self.assertEqual(cell.reply["traceback"], [text])
        self.kernel.run(
            "import subprocess\ntry: get_ipython().run_cell_magic('bash', '', 'exit 5')\n"
            "except subprocess.CalledProcessError as error: seen = error.returncode"
        )
        self.assertEqual(self.kernel.run("seen").result, "5")

    def test_a_missing_program_is_an_error_that_names_it(self) -> None:
        self.assertEqual(
            self.bash("x", "%%script nosuchshell").error, "ShellError: nosuchshell: no such program on PATH"
        )
        (self.folder / "plain").write_text("")
        cell = self.bash("x", f"%%script {self.folder}/plain")
        self.assertRegex(cell.error, "^ShellError: .*/plain: can't be run: Permission denied$")

    def test_a_shell_cell_works_after_the_environment_was_emptied(self) -> None:
        self.kernel.run("import os; saved = dict(os.environ); os.environ.clear()")
        cell = self.bash("echo hi; echo $NO_COLOR")
        self.kernel.run("os.environ.update(saved)")
        self.assert_shell(cell, "hi\n1\n")

    def test_a_shell_cell_works_after_temporary_files_were_removed(self) -> None:
        removal = "import os, shutil; folder = os.path.dirname(get_ipython().profile_dir.location)\n"
        removal += "for name in os.listdir(folder): shutil.rmtree(os.path.join(folder, name), ignore_errors=True)\n"
        removal += "shutil.rmtree(folder, ignore_errors=True)"
        with start_kernel(bootstrap={}) as kernel:
            kernel.run("%%bash\necho before")
            kernel.run(removal)
            self.assertEqual(kernel.run("%%bash\necho after").stdout, "after\n")
            self.assertEqual(kernel.run("!echo after").stdout, "after\n")

    def test_a_shell_cell_works_after_cells_took_every_name(self) -> None:
        names = "print = open = list = dict = type = str = len = os = subprocess = signal = None"
        with start_kernel(bootstrap={}) as kernel:
            kernel.run(names)
            self.assert_shell(kernel.execute("%%bash\necho hi"), "hi\n")


class Options(ShellCase):
    def test_out_and_err_take_the_streams_apart(self) -> None:
        self.assert_shell(self.bash("echo o; echo e >&2", "%%bash --out o --err e"), "")
        self.assertEqual(self.kernel.run("(o, e)").result, r"('o\n', 'e\n')")

    def test_one_of_them_leaves_the_other_stream_visible(self) -> None:
        cell = self.bash("echo o; echo e >&2; exit 2", "%%bash --out=o")
        self.assertEqual((cell.stdout, cell.stderr), ("", "e\n"))
        self.assertEqual(cell.error, "ShellError: exit code 2")
        self.assertEqual(self.kernel.run("o").result, r"'o\n'")

    def test_no_raise_error_only_shows_the_exit_code(self) -> None:
        self.assert_shell(self.bash("exit 3", "%%bash --no-raise-error"), "", "exit code 3\n")

    def test_timeout_ends_the_script_and_keeps_what_it_wrote(self) -> None:
        cell = self.bash("printf partial; sleep 1000", "%%bash --timeout 0.3")
        text = "timed out after 0.3 s: bash and all its processes were ended"
        self.assertEqual((cell.stdout, cell.error), ("partial", f"ShellError: {text}"))

    def test_a_wrong_option_is_named(self) -> None:
        for head, part in {
            "%%bash --timeout soon": "--timeout needs a number of seconds above 0, not 'soon'",
            "%%bash --timeout": "--timeout needs a value",
            "%%bash --out 1x": "--out needs the name of a variable",
            "%%script": "%%script needs a program",
        }.items():
            with self.subTest(head):
                self.assertIn(part, self.bash("true", head).error)

    def test_bg_does_not_wait_and_its_pipes_and_process_can_be_used(self) -> None:
        cell = self.bash("echo out; echo err >&2; exit 4", "%%bash --bg --out o --err e --proc p")
        self.assertRegex(cell.stderr, r"^started in the background: pid \d+\n$")
        self.assertEqual(self.kernel.run("(o.read(), e.read(), p.wait())").result, r"(b'out\n', b'err\n', 4)")

    def test_bg_without_variables_writes_to_log_files(self) -> None:
        cell = self.bash("echo out; sleep 1000", "%%bash --bg")
        note = re.search(r"pid (\d+); its output goes to (\S+) and (\S+)\n", cell.stderr)
        assert note is not None
        wait_until(lambda: Path(note[2]).read_text() == "out\n")
        self.kernel.run("%killbgscripts")
        wait_until(lambda: not is_alive(int(note[1])))


if __name__ == "__main__":
    unittest.main()
