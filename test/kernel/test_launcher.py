"""Starting a kernel: what it reports, what can't disturb it, and what it leaves alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import LAUNCHER, KernelDied, is_alive, start_kernel

# A project may have files of these names; each would break or change a kernel that imported it.
SHADOWING = (
    "IPython", "asyncio", "bootstrap", "colorsys", "ipykernel", "json", "jupyter_client", "launcher", "logging",
    "queue", "random", "rlm", "sitecustomize", "tempfile", "tornado", "traitlets", "usercustomize", "zmq",
)


class ReadyLine(unittest.TestCase):
    """The one line that says that clients can connect."""

    def test_it_names_the_process_and_the_versions(self) -> None:
        with start_kernel() as kernel:
            versions = kernel.run(
                "import IPython, ipykernel, os, platform\n"
                "(os.getpid(), platform.python_version(), ipykernel.__version__, IPython.__version__)"
            ).result
            ready = kernel.ready
            reported = (ready["pid"], ready["python"], ready["ipykernel"], ready["ipython"])
            self.assertEqual(versions, repr(reported))
            self.assertGreater(ready["boot_ms"], 0)

    def test_with_tcp_it_names_the_ports_that_the_kernel_picked(self) -> None:
        with start_kernel(transport="tcp") as kernel:
            self.assertEqual(kernel.run("1 + 1").result, "2")
            self.assertTrue(all(port > 0 for port in kernel.ready["ports"].values()))
            self.assertEqual(kernel.stderr, "")

    def test_one_message_lists_everything_that_the_interpreter_lacks(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
            with self.assertRaises(KernelDied) as caught:
                start_kernel(python=os.path.join(folder, "bin", "python"))
        message = str(caught.exception)
        for name in ("IPython", "ipykernel", "jupyter_client", "tornado", "traitlets", "zmq"):
            self.assertIn(name, message.splitlines()[0])

    def test_an_address_that_can_not_be_bound_is_reported_with_the_reason(self) -> None:
        with start_kernel() as kernel:
            with open(kernel.connection_file) as file:
                info = file.read().replace(kernel.folder, "/nowhere" + "x" * 120)
            with open(kernel.connection_file, "w") as file:
                file.write(info)
            with self.assertRaises(KernelDied) as caught:
                start_kernel(connection_file=kernel.connection_file)
        self.assertIn("ZMQError", str(caught.exception))


class Project(unittest.TestCase):
    """Files of the project are importable, last, and can't get in the kernel's way."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name: str, text: str) -> None:
        Path(self.folder, name).write_text(text)

    def test_modules_that_shadow_others_neither_stop_nor_change_the_kernel(self) -> None:
        for name in SHADOWING:
            self.write(f"{name}.py", "raise SystemExit('a file of the project was imported')")
        with start_kernel(self.folder, env={"PYTHONPATH": self.folder}, bootstrap={}) as kernel:
            cell = kernel.run("import random, queue, json, IPython, colorsys\nrandom.__file__, colorsys.__file__")
            self.assertNotIn(self.folder, cell.result)
            self.assertEqual(kernel.run("%%bash\necho fine").stdout.splitlines()[0], "fine")

    def test_its_own_modules_are_found_in_cwd_first_then_on_pythonpath(self) -> None:
        other = os.path.join(self.folder, "other")
        os.mkdir(other)
        self.write("one.py", "where = 'cwd'")
        self.write("other/one.py", "where = 'path'")
        self.write("other/two.py", "where = 'path'")
        with start_kernel(self.folder, paths=[self.folder, other]) as kernel:
            cell = kernel.run("import one, two\none.where, two.where")
            self.assertEqual(cell.result, "('cwd', 'path')")

    def test_modules_named_like_files_of_the_kernel_are_the_projects(self) -> None:
        for name in ("bootstrap", "launcher", "process", "host"):
            self.write(f"{name}.py", "mine = True")
        with start_kernel(self.folder, bootstrap={}) as kernel:
            cell = kernel.run("import bootstrap, launcher, process, host\nbootstrap.mine and host.mine")
            self.assertEqual(cell.result, "True")
            self.assertEqual(kernel.run(f"import sys; {str(LAUNCHER.parent)!r} in sys.path").result, "False")

    def test_after_a_change_of_folder_that_folder_is_importable(self) -> None:
        inner = os.path.join(self.folder, "inner")
        os.mkdir(inner)
        self.write("inner/three.py", "x = 3")
        with start_kernel(self.folder) as kernel:
            self.assertEqual(kernel.run(f"import os; os.chdir({inner!r})\nimport three; three.x").result, "3")


class WorkingFolder(unittest.TestCase):
    """A folder that can't be entered is replaced, and reported."""

    def test_a_missing_folder_gives_way_to_the_nearest_one_above(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            missing = os.path.join(folder, "gone", "deeper")
            with start_kernel(missing) as kernel:
                self.assertEqual(kernel.ready["cwd_missing"], missing)
                self.assertEqual(kernel.ready["cwd"], os.path.realpath(folder))
                where = kernel.run("import os; os.getcwd(), os.environ['PWD']").result
                self.assertEqual(where, repr((kernel.ready["cwd"], folder)))

    def test_a_file_is_no_folder(self) -> None:
        with tempfile.NamedTemporaryFile() as file, start_kernel(file.name) as kernel:
            self.assertEqual(kernel.ready["cwd_missing"], file.name)

    def test_an_existing_folder_is_not_called_missing(self) -> None:
        with start_kernel("/") as kernel:
            self.assertEqual((kernel.ready["cwd"], "cwd_missing" in kernel.ready), ("/", False))


class Surroundings(unittest.TestCase):
    """What the kernel's process passes on, keeps for itself, and writes."""

    def test_children_get_neither_the_pipes_nor_the_sockets_of_the_kernel(self) -> None:
        with start_kernel() as kernel:
            code = (
                "import subprocess, sys\n"
                "list_fds = 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\"))))'\n"
                "subprocess.check_output([sys.executable, '-c', list_fds], close_fds=False)"
            )
            # The fourth is that of the listing itself.
            self.assertEqual(kernel.run(code).result, repr(b"[0, 1, 2, 3]\n"))

    def test_signals_that_the_starter_ignored_work_in_the_kernel_and_its_children(self) -> None:
        signals = (signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1)
        before = [signal.signal(signum, signal.SIG_IGN) for signum in signals]
        try:
            kernel = start_kernel()
        finally:
            for signum, handler in zip(signals, before):
                signal.signal(signum, handler)
        with kernel:
            code = "import subprocess; print(subprocess.getoutput('grep SigIgn /proc/self/status'))"
            ignored = int(kernel.run(code).stdout.split()[1], 16)
            self.assertEqual([s for s in signals if ignored & (1 << (s - 1))], [])

    def test_the_kernel_leads_a_session_without_a_terminal(self) -> None:
        with start_kernel() as kernel:
            pid = kernel.process.pid
            self.assertEqual((os.getsid(pid), os.getpgid(pid)), (pid, pid))
            self.assertIn("OSError", kernel.execute("open('/dev/tty')").error)

    def test_nothing_is_read_from_or_written_to_the_home_folder(self) -> None:
        with tempfile.TemporaryDirectory() as home:
            startup = os.path.join(home, "startup.py")
            Path(startup).write_text("started = True")
            env = {"HOME": home, "PYTHONSTARTUP": startup}
            with start_kernel(env=env, bootstrap={}) as kernel:
                kernel.run("x = 1")
                self.assertEqual(kernel.execute("started").error[:9], "NameError")
                self.assertEqual(kernel.stderr, "")
            self.assertEqual(os.listdir(home), ["startup.py"])

    def test_an_active_virtual_environment_does_not_get_in_front(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
            with start_kernel(env={"VIRTUAL_ENV": folder}) as kernel:
                cell = kernel.run("import os, sys; sys.path, os.environ['VIRTUAL_ENV']")
                self.assertEqual(cell.result.count(folder), 1)
                self.assertEqual(cell.stderr, "")

    def test_variables_of_the_configuration_are_set(self) -> None:
        with start_kernel(env={"A": "1"}) as kernel:
            self.assertEqual(kernel.run("import os; os.environ['A']").result, "'1'")

    def test_argv_holds_nothing_of_the_launchers(self) -> None:
        with start_kernel() as kernel:
            self.assertEqual(kernel.run("import sys; sys.argv").result, "['']")


class Output(unittest.TestCase):
    """What cells write is sent once and copied nowhere; what crashes the kernel reaches its stderr."""

    def test_a_flood_of_a_child_process_is_sent_once_and_fills_no_pipe(self) -> None:
        with start_kernel() as kernel:
            cell = kernel.run(
                "import subprocess; subprocess.run('seq 1 100000; seq 1 100000 >&2', shell=True)"
            )
            kernel.wait_for(lambda: "100000\n" in cell_stderr(kernel))
            self.assertEqual(kernel.stderr, "")
            self.assertLessEqual(cell.stdout.count("\n77777\n"), 1)

    def test_a_crash_leaves_its_traceback_on_stderr(self) -> None:
        with start_kernel() as kernel:
            with self.assertRaises(KernelDied):
                kernel.execute("import ctypes; ctypes.string_at(0)")
            self.assertEqual(kernel.process.wait(), -signal.SIGSEGV)
            kernel.close()
            self.assertIn("Segmentation fault", kernel.stderr)

    def test_tracebacks_have_no_colours(self) -> None:
        with start_kernel(env={"FORCE_COLOR": "1"}) as kernel:
            cell = kernel.execute("1/0")
            self.assertNotIn("\x1b", "".join(cell.reply["traceback"]))
            self.assertEqual(cell.error, "ZeroDivisionError: division by zero")

    def test_there_is_no_history_thread_but_a_history(self) -> None:
        with start_kernel() as kernel:
            kernel.run("a = 41")
            cell = kernel.run("import threading; In[1], [t.name for t in threading.enumerate()]")
            self.assertIn("'a = 41'", cell.result)
            self.assertNotIn("History", cell.result)


def cell_stderr(kernel) -> str:
    """All text on stderr so far, whichever cell it was attributed to."""
    contents = [m["content"] for found in kernel._messages.values() for m in found if m["msg_type"] == "stream"]
    return "".join(c["text"] for c in contents if c["name"] == "stderr")


class Ended(unittest.TestCase):
    def test_a_kernel_that_was_closed_is_gone(self) -> None:
        with start_kernel() as kernel:
            pid = kernel.process.pid
        self.assertFalse(is_alive(pid))


if __name__ == "__main__":
    unittest.main()
