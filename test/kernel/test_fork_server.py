"""The fork server: kernels that are as good as started ones, and a protocol that names them safely."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from fork_support import ForkServer
from support import hold_interpreter_lock, is_alive, start_kernel, wait_until

# What must be each kernel's own, though all were one process once.
OWN = (
    "import os, random, uuid, tempfile, threading\n"
    "kernel = get_ipython().kernel\n"
    "print(os.getpid() == kernel.session.pid, os.getsid(0) == os.getpid())\n"
    "[kernel.ident, kernel.session.session, random.random(), uuid.uuid4().hex, kernel.profile_dir.location]"
)


@unittest.skipUnless(sys.platform == "linux", "forking kernels is for Linux only")
class ForkServerTest(unittest.TestCase):
    """One server for all tests of a class."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.server = ForkServer()
        cls.addClassCleanup(cls.server.close)


class ForkedKernels(ForkServerTest):
    def test_a_forked_kernel_runs_cells_and_reports_like_a_started_one(self) -> None:
        with self.server.fork() as kernel, start_kernel() as started:
            self.assertEqual(kernel.run("import os; os.getpid()").result, str(kernel.pid))
            self.assertEqual(kernel.ready["pid"], kernel.pid)
            same = ("python", "ipykernel", "ipython", "cwd")
            self.assertEqual([kernel.ready[n] for n in same], [started.ready[n] for n in same])
            with open(f"/proc/{kernel.pid}/stat") as file:
                start = file.read().rpartition(")")[2].split()[19]
            self.assertEqual(str(kernel.response["start_time"]), start)

    def test_what_identifies_a_kernel_is_its_own(self) -> None:
        found = []
        for _ in range(2):
            with self.server.fork() as kernel:
                cell = kernel.run(OWN)
                self.assertEqual(cell.stdout, "True True\n")
                found.append(cell.result)
        first, second = (eval(text) for text in found)  # noqa: S307  Lists of our own kernels.
        self.assertEqual([a for a, b in zip(first, second) if a == b], [])

    def test_bootstrap_interrupts_calls_and_shutdown_work(self) -> None:
        with self.server.fork() as kernel:
            kernel.host["t"] = lambda payload: {"status": "ok", "n": 1}
            kernel.call("bootstrap", {})
            self.assertEqual(kernel.run("await rlm.host_request('t')").result, "{'n': 1}")
            msg_id = kernel.begin_running("await asyncio.sleep(1000)")
            kernel.interrupt()
            self.assertIn(kernel.finish(msg_id, timeout=10).reply["ename"], ("CancelledError", "KeyboardInterrupt"))
            self.assertEqual(kernel.run("%%bash\necho fine").stdout.splitlines()[0], "fine")
            kernel.request("control", "shutdown_request", {"restart": False})
            exit = self.server.event(kernel.fork_id, "exit")
            self.assertEqual((exit["pid"], exit["code"], exit["signal"]), (kernel.pid, 0, None))

    def test_the_environment_is_the_configurations_and_nothing_else(self) -> None:
        env = {**self.server.env, "ONLY_HERE": "1", "TZ": "Asia/Tokyo", "TMPDIR": "/var/tmp"}
        env.pop("HOME", None)
        with self.server.fork(env=env) as kernel:
            cell = kernel.run(
                "import os, tempfile, time\n"
                "os.environ['ONLY_HERE'], 'HOME' in os.environ, time.tzname[0], tempfile.gettempdir()"
            )
            self.assertEqual(cell.result, "('1', False, 'JST', '/var/tmp')")

    def test_folder_and_paths_are_the_configurations(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "mine.py").write_text("x = 3")
            missing = os.path.join(folder, "gone")
            with self.server.fork(cwd=missing, paths=[folder]) as kernel:
                self.assertEqual(kernel.ready["cwd_missing"], missing)
                cell = kernel.run("import os, mine; mine.x, os.getcwd(), _dh")
                self.assertEqual(cell.result, repr((3, folder, [folder])))

    def test_children_get_no_descriptor_of_kernel_or_server(self) -> None:
        with self.server.fork() as kernel:
            code = (
                "import subprocess, sys\n"
                "list_fds = 'import os; print(sorted(map(int, os.listdir(\"/proc/self/fd\"))))'\n"
                "subprocess.check_output([sys.executable, '-c', list_fds], close_fds=False)"
            )
            self.assertEqual(kernel.run(code).result, repr(b"[0, 1, 2, 3]\n"))

    def test_a_crash_is_reported_on_the_hosts_socket_and_as_an_exit(self) -> None:
        with self.server.fork() as kernel:
            kernel.begin("import ctypes; ctypes.string_at(0)")
            exit = self.server.event(kernel.fork_id, "exit")
            self.assertEqual((exit["code"], exit["signal"]), (None, "SIGSEGV"))
            wait_until(lambda: "Segmentation fault" in kernel.stderr)

    def test_a_start_that_fails_is_an_exit_with_the_reason(self) -> None:
        kernel = self.server.fork(connection_file="/nowhere/c.json")
        exit = self.server.event(kernel.fork_id, "exit")
        self.assertIn("/nowhere/c.json", exit["error"])
        self.assertEqual(exit["code"], 1)
        kernel.close()

    def test_many_at_once_are_all_ready(self) -> None:
        kernels = [self.server.fork() for _ in range(8)]
        for kernel in kernels:
            self.server.event(kernel.fork_id, "ready")
        self.assertEqual(len({kernel.pid for kernel in kernels}), 8)
        for kernel in kernels:
            kernel.close()


class Protocol(ForkServerTest):
    def test_a_signal_ends_a_kernel_and_its_state_is_known_afterwards(self) -> None:
        kernel = self.server.fork().start()
        outcome = lambda: self.server.request("status", fork_id=kernel.fork_id)["outcome"]  # noqa: E731
        self.assertEqual(outcome(), "running")
        self.assertEqual(kernel.signal("TERM"), "signalled")
        self.assertEqual(self.server.event(kernel.fork_id, "exit")["code"], 128 + signal.SIGTERM)
        self.assertEqual(outcome(), "exited")
        self.assertEqual(kernel.signal("KILL"), "exited")
        kernel.close()

    def test_an_id_that_was_never_given_is_unknown_and_nobody_is_signalled(self) -> None:
        for fork_id in ("999", "", str(os.getpid())):
            response = self.server.request("signal", fork_id=fork_id, signal="KILL", group=True)
            self.assertEqual((response["ok"], response["outcome"]), (True, "unknown"))
            self.assertEqual(self.server.request("status", fork_id=fork_id)["outcome"], "unknown")

    def test_a_kernel_that_dies_by_itself_is_noticed(self) -> None:
        with self.server.fork() as kernel:
            os.kill(kernel.pid, signal.SIGKILL)
            self.assertEqual(self.server.event(kernel.fork_id, "exit")["signal"], "SIGKILL")

    def test_a_group_signal_reaches_children_even_right_after_the_fork(self) -> None:
        kernel = self.server.fork()
        self.assertEqual(kernel.signal("KILL", group=True), "signalled")
        self.assertEqual(self.server.event(kernel.fork_id, "exit")["signal"], "SIGKILL")
        kernel.close()

    def test_siblings_that_die_at_once_are_told_apart(self) -> None:
        kernels = [self.server.fork() for _ in range(6)]
        for kernel in kernels[::2]:
            kernel.signal("KILL")
        for kernel in kernels[::2]:
            self.assertEqual(self.server.event(kernel.fork_id, "exit")["pid"], kernel.pid)
        for kernel in kernels[1::2]:
            self.server.event(kernel.fork_id, "ready")
            self.assertEqual(self.server.request("status", fork_id=kernel.fork_id)["outcome"], "running")
        for kernel in kernels:
            kernel.close()

    def test_an_environment_that_only_a_fresh_process_can_have_is_refused(self) -> None:
        for name in ("PYTHONPATH", "PYTHONHASHSEED", "LD_PRELOAD", "LC_ALL"):
            kernel = self.server.fork(env={**self.server.env, name: "x"})
            self.assertFalse(kernel.response["ok"])
            self.assertIn(name, kernel.response["error"])
            kernel.disconnect()

    def test_requests_that_make_no_sense_are_answered(self) -> None:
        self.assertIn("unknown operation", self.server.request("dance")["error"])
        self.assertFalse(self.server.request("fork")["ok"])
        self.assertIn("KeyError", self.server.request("signal", fork_id="1", signal="NONE")["error"])
        self.server.write("this is no JSON")
        self.assertTrue(self.server.request("status", fork_id="1")["ok"])


class History(unittest.TestCase):
    """Exited forks are forgotten in order once there are many; live ones never are."""

    def test_only_the_oldest_exited_ones_are_forgotten(self) -> None:
        program = (
            "import os, sys, time\nsys.path.append(sys.argv[1])\n"
            "from rlm import fork_table\nfork_table.MAX_EXITED = 2\n"
            "table = fork_table.ForkTable()\n"
            "def fork(seconds):\n"
            "    pid = os.fork()\n"
            "    if pid == 0: time.sleep(seconds); os._exit(0)\n"
            "    return table.add(pid, os.open(os.devnull, os.O_RDONLY), '/none').fork_id\n"
            "lives = fork(1000)\n"
            "gone = []\n"
            "for _ in range(4):\n"
            "    gone.append(fork(0))\n"
            "    while table.outcome(gone[-1]) == 'running': table.reap()\n"
            "print([table.outcome(i) for i in gone], table.outcome(lives))\n"
            "table.send(lives, 9, group=False)\n"
        )
        kernel_folder = str(Path(__file__).parents[2] / "kernel")
        done = subprocess.run(
            [sys.executable, "-c", program, kernel_folder], capture_output=True, text=True, check=True
        )
        self.assertEqual(done.stdout, "['unknown', 'unknown', 'exited', 'exited'] running\n")


@unittest.skipUnless(sys.platform == "linux", "forking kernels is for Linux only")
class WithoutALocale(unittest.TestCase):
    def test_kernels_fork_and_have_the_locale_that_a_started_one_has(self) -> None:
        unset = ("LANG", "LC_ALL", "LC_CTYPE")
        server = ForkServer({name: None for name in unset})
        self.addCleanup(server.close)
        kernel = server.fork().start()
        self.addCleanup(kernel.close)
        cell = kernel.run("import os, sys; os.environ.get('LC_CTYPE', '')[:2], sys.getfilesystemencoding()")
        self.assertEqual(cell.result, "('C.', 'utf-8')")


@unittest.skipUnless(sys.platform == "linux", "forking kernels is for Linux only")
class TheEnd(unittest.TestCase):
    """Kernels end with the host and with the server, together with what they started."""

    def setUp(self) -> None:
        self.server = ForkServer()
        self.addCleanup(self.server.close)
        self.kernel = self.server.fork().start()
        self.addCleanup(self.kernel.disconnect)
        cell = self.kernel.run(
            "import subprocess\nfrom rlm.teardown import register_session\n"
            "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "register_session(child.pid); child.pid"
        )
        self.child = int(cell.result)

    def assert_all_gone(self) -> None:
        for pid in (self.kernel.pid, self.child, self.server.process.pid):
            wait_until(lambda: not is_alive(pid))
        self.assertFalse(os.path.exists(self.kernel.folder))

    def test_when_the_host_dies(self) -> None:
        self.server.host_dies()
        self.assertEqual(self.server.process.wait(10), 0)
        self.assert_all_gone()

    def test_when_the_host_dies_while_a_cell_holds_the_interpreter_lock(self) -> None:
        hold_interpreter_lock(self.kernel, self.kernel.pid)
        self.server.host_dies()
        self.assert_all_gone()

    def test_when_the_server_is_killed(self) -> None:
        self.server.process.kill()
        self.server.process.wait()
        self.assert_all_gone()

    def test_when_the_host_says_exit(self) -> None:
        self.assertTrue(self.server.request("exit")["ok"])
        self.assertEqual(self.server.process.wait(10), 0)
        for pid in (self.kernel.pid, self.child):
            wait_until(lambda: not is_alive(pid))


if __name__ == "__main__":
    unittest.main()
