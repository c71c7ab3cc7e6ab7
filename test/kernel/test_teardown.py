"""The end of a kernel: everything of it goes, except what was meant to stay."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from support import (
    LAUNCHER,
    WAIT_SECONDS,
    RunningKernel,
    hold_interpreter_lock,
    is_alive,
    start_kernel,
    wait_until,
)

# A child that goes on, whatever a polite end sends; it does not ignore SIGHUP, which would spare it.
STUBBORN = "trap '' INT; trap : TERM HUP; while :; do sleep 0.1; done"


def start_child(kernel: RunningKernel, shell_command: str) -> int:
    """Starts a process in the kernel's own group; its pid."""
    code = f"import subprocess; subprocess.Popen({shell_command!r}, shell=True).pid"
    return int(kernel.run(code).result)


def start_in_session(kernel: RunningKernel, script: str) -> int:
    """Starts what a shell cell does: a session of its own, registered with the kernel; its leader's pid."""
    code = (
        "import subprocess\nfrom rlm.teardown import register_session\n"
        f"child = subprocess.Popen(['bash', '-c', {script!r}], start_new_session=True)\n"
        "register_session(child.pid)\nchild.pid"
    )
    return int(kernel.run(code).result)


def pid_from(path: str) -> int:
    """The pid that a shell has written into a file."""
    return int(wait_until(lambda: os.path.exists(path) and Path(path).read_text().strip()))


class Ending(unittest.TestCase):
    """Each way to end a kernel ends the same processes."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.kernel = start_kernel()
        self.addCleanup(self.kernel.close)

    def path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def assert_gone(self, *pids: int) -> None:
        for pid in pids:
            wait_until(lambda: not is_alive(pid))

    def test_when_the_host_dies_the_kernel_its_children_and_its_folder_go(self) -> None:
        child = start_child(self.kernel, "sleep 1000")
        leader = start_in_session(self.kernel, "sleep 1000; true")
        self.kernel.host_dies()
        self.assert_gone(self.kernel.process.pid, child, leader)
        self.assertFalse(os.path.exists(self.kernel.folder))

    def test_when_the_host_dies_during_a_cell_the_kernel_goes_at_once(self) -> None:
        self.kernel.begin_running("import time\nwhile True: time.sleep(0.01)")
        self.kernel.host_dies()
        self.assertEqual(self.kernel.process.wait(5), 1)

    def test_what_ignores_term_is_killed(self) -> None:
        child = start_child(self.kernel, STUBBORN)
        leader = start_in_session(self.kernel, STUBBORN)
        self.kernel.host_dies()
        self.assert_gone(self.kernel.process.pid, child, leader)

    def test_a_shutdown_request_ends_children_and_answers(self) -> None:
        child = start_child(self.kernel, STUBBORN)
        leader = start_in_session(self.kernel, STUBBORN)
        self.assertEqual(self.kernel.shutdown(), 0)
        self.assert_gone(child, leader)

    def test_a_kernel_whose_threads_do_not_end_still_ends(self) -> None:
        self.kernel.run(
            "import atexit, threading, time\n"
            "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
            "atexit.register(time.sleep, 1000)"
        )
        self.assertEqual(self.kernel.shutdown(), 0)

    def test_requests_behind_a_shutdown_request_do_not_keep_it_from_its_end(self) -> None:
        for _ in range(5):
            with tempfile.TemporaryDirectory() as folder, start_kernel() as kernel:
                mark = os.path.join(folder, "finalized")
                kernel.run(
                    "import os\nclass Last:\n    def __del__(self, mark=os.mkdir):\n"
                    f"        mark({mark!r})\nlast = Last()"
                )
                kernel._send("control", "shutdown_request", {"restart": False})
                for _ in range(100):
                    kernel._send("control", "kernel_info_request", {})
                self.assertEqual(kernel.process.wait(WAIT_SECONDS), 0)
                # One that hangs is cut off before it gets there.
                self.assertTrue(os.path.exists(mark))

    def test_the_kernels_folder_goes_with_it_however_it_ends(self) -> None:
        ends = {
            "a shutdown request": lambda kernel: kernel._send("control", "shutdown_request", {"restart": False}),
            "SIGTERM": lambda kernel: kernel.process.terminate(),
            "the host's death": lambda kernel: kernel.host_dies(),
        }
        for title, end in ends.items():
            with self.subTest(title), start_kernel() as kernel:
                end(kernel)
                kernel.process.wait(WAIT_SECONDS)
                self.assertFalse(os.path.exists(kernel.folder))

    def test_exit_handlers_of_cells_run_at_shutdown(self) -> None:
        self.kernel.run(f"import atexit; atexit.register(lambda: open({self.path('ran')!r}, 'w'))")
        self.kernel.shutdown()
        self.assertTrue(os.path.exists(self.path("ran")))

    def test_term_and_hup_end_the_children_too(self) -> None:
        for signum in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signum=signum), start_kernel() as kernel:
                child = start_child(kernel, "sleep 1000")
                leader = start_in_session(kernel, "sleep 1000; true")
                kernel.process.send_signal(signum)
                self.assertEqual(kernel.process.wait(10), 128 + signum)
                self.assert_gone(child, leader)

    def test_orphans_of_a_shell_session_end_with_the_kernel(self) -> None:
        start_in_session(self.kernel, f"sleep 1000 & echo $! > {self.path('pid')}")
        orphan = pid_from(self.path("pid"))
        self.kernel.host_dies()
        self.assert_gone(self.kernel.process.pid, orphan)

    def test_nohup_and_setsid_processes_stay(self) -> None:
        start_in_session(
            self.kernel,
            f"nohup sleep 1000 >/dev/null 2>&1 & echo $! > {self.path('nohup')}\n"
            f"setsid sleep 1000 >/dev/null 2>&1 & sleep 0.2; pgrep -n -x sleep > {self.path('setsid')}",
        )
        staying = [pid_from(self.path("nohup")), pid_from(self.path("setsid"))]
        self.addCleanup(lambda: [os.kill(pid, signal.SIGKILL) for pid in staying])
        self.kernel.host_dies()
        self.assert_gone(self.kernel.process.pid)
        self.assertEqual([is_alive(pid) for pid in staying], [True, True])

    def test_workers_of_a_pool_can_be_terminated(self) -> None:
        cell = self.kernel.run(
            "import multiprocessing, time\n"
            "worker = multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,))\n"
            "worker.start(); worker.terminate(); worker.join(); worker.exitcode"
        )
        self.assertEqual(cell.result, "-15")


class Record(unittest.TestCase):
    """The file from which the host learns the sessions of a kernel that was killed."""

    def test_it_has_a_line_with_sid_and_start_time_for_each_session(self) -> None:
        with start_kernel() as kernel:
            leader = start_in_session(kernel, "sleep 1000")
            with open(f"/proc/{leader}/stat") as file:
                start = file.read().rpartition(")")[2].split()[19]
            with open(os.path.join(kernel.folder, "sessions")) as file:
                self.assertEqual(file.read(), f"{leader} {start}\n")

    def test_sessions_without_processes_are_forgotten_in_time(self) -> None:
        with start_kernel() as kernel:
            living = start_in_session(kernel, "sleep 1000")
            kernel.run(
                "for _ in range(40):\n"
                "    child = subprocess.Popen(['true'], start_new_session=True)\n"
                "    register_session(child.pid); child.wait()"
            )
            with open(os.path.join(kernel.folder, "sessions")) as file:
                lines = file.read().splitlines()
            self.assertLess(len(lines), 40)
            self.assertEqual(lines[0].split()[0], str(living))


class EndingACell(unittest.TestCase):
    """`end_children` ends what the running cell started, and only that."""

    def setUp(self) -> None:
        self.kernel = start_kernel()
        self.addCleanup(self.kernel.close)

    def end_children(self, **args: object) -> int:
        return self.kernel.call("end_children", args, channel="control")["ended"]

    def running(self, code: str) -> tuple[str, list[int]]:
        """Begins a cell that prints the pids of its children and goes on; its msg_id and the pids."""
        msg_id = self.kernel.begin(f"{code}\nimport time\nwhile True: time.sleep(0.01)")

        def pids() -> list[int]:
            texts = [m["content"]["text"] for m in self.kernel.messages(msg_id) if m["msg_type"] == "stream"]
            return [int(word) for word in "".join(texts).split()]

        self.kernel.wait_for(lambda: pids())
        return msg_id, pids()

    def stop(self, msg_id: str) -> None:
        self.kernel.interrupt()
        self.kernel.finish(msg_id)

    def test_children_that_ignore_signals_and_their_children_are_ended(self) -> None:
        msg_id, pids = self.running(
            "import subprocess\n"
            f"child = subprocess.Popen(['bash', '-c', 'sleep 1000 & echo $! $$; ' + {STUBBORN!r}])"
        )
        self.assertEqual(len(pids), 2)
        self.assertGreaterEqual(self.end_children(cell=msg_id), 2)
        self.assertEqual([is_alive(pid) for pid in pids], [False, False])
        self.stop(msg_id)
        self.assertEqual(self.kernel.run("1 + 1").result, "2")

    def test_orphans_and_children_in_sessions_of_their_own_are_ended(self) -> None:
        msg_id, pids = self.running(
            "import subprocess\n"
            "subprocess.run(['bash', '-c', 'sleep 1000 >/dev/null 2>&1 & echo $!'])\n"
            "print(subprocess.Popen(['sleep', '1000'], start_new_session=True).pid, flush=True)"
        )
        self.end_children()
        for pid in pids:
            wait_until(lambda: not is_alive(pid))
        self.stop(msg_id)

    def test_a_server_of_an_earlier_cell_and_its_new_workers_stay(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            go, out = os.path.join(folder, "go"), os.path.join(folder, "pid")
            script = f"while [ ! -e {go} ]; do sleep 0.05; done; sleep 1000 & echo $! > {out}; wait"
            server = start_child(self.kernel, script)
            # Start times count clock ticks: the next cell must begin in another one.
            started = time.monotonic()
            wait_until(lambda: time.monotonic() - started > 1 / os.sysconf("SC_CLK_TCK"))
            msg_id, pids = self.running(f"print(subprocess.Popen(['sleep', '1000']).pid); open({go!r}, 'w')")
            worker = pid_from(out)
            self.end_children()
            alive = [is_alive(pid) for pid in (pids[0], server, worker)]
            self.assertEqual(alive, [False, True, True])
            self.stop(msg_id)

    def test_nothing_is_ended_for_a_cell_that_is_not_the_last(self) -> None:
        first = self.kernel.begin("1")
        self.kernel.finish(first)
        child = start_child(self.kernel, "sleep 1000")
        self.assertEqual(self.end_children(cell=first), 0)
        self.assertTrue(is_alive(child))

    def test_the_control_channel_answers_meanwhile(self) -> None:
        msg_id, _ = self.running(
            f"import subprocess; print(subprocess.Popen(['bash', '-c', {STUBBORN!r}]).pid, flush=True)"
        )
        content = {"op": "end_children", "args": {}}
        slow = self.kernel._send("control", "prime_agent_request", content)
        self.assertIn("pid", self.kernel.call("ping", channel="control"))
        reply = self.kernel._reply("control", slow, 10)
        self.assertEqual(reply["content"]["status"], "ok")
        self.stop(msg_id)


class NotAKernel(unittest.TestCase):
    def test_in_a_process_that_did_not_begin_as_a_kernel_nothing_is_found(self) -> None:
        program = (
            "import subprocess, sys; sys.path.append(sys.argv[1])\nfrom rlm import children\n"
            "child = subprocess.Popen(['sleep', '1000'], start_new_session=True)\n"
            "children.register_session(child.pid)\n"
            "print(children.kernel_children(), children.cell_children())\n"
            "child.kill(); child.wait()"
        )
        command = [sys.executable, "-c", program, str(LAUNCHER.parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout, "[] []\n")


class PidReuse(unittest.TestCase):
    """A pid that now belongs to another process is left alone."""

    def test_a_signal_goes_only_to_the_process_that_was_seen(self) -> None:
        with start_kernel() as kernel:
            bystander = subprocess.Popen(["sleep", "1000"])
            self.addCleanup(bystander.wait)
            self.addCleanup(bystander.kill)
            kernel.run(
                "import dataclasses\nfrom rlm import process_identity, processes\n"
                f"seen = processes.living()[{bystander.pid}]\n"
                "process_identity.send(dataclasses.replace(seen, started='1'), 9)\n"
                "process_identity.send(seen, 0)"
            )
            self.assertIsNone(bystander.poll())

    def test_a_session_number_that_went_to_another_leader_is_left_alone(self) -> None:
        bystander = subprocess.Popen(["sleep", "1000"], start_new_session=True)
        self.addCleanup(bystander.wait)
        self.addCleanup(bystander.kill)
        with start_kernel() as kernel:
            kernel.run(
                "from rlm import children\n"
                f"children._kernel.sessions.append(children.Session({bystander.pid}, 1))"
            )
            kernel.host_dies()
            kernel.process.wait(10)
        self.assertIsNone(bystander.poll())


@unittest.skipUnless(sys.platform == "linux", "reads /proc")
class Guard(unittest.TestCase):
    """What the host's guard process does when the host has died."""

    def guard(self, kernel: RunningKernel, start_time: int) -> None:
        config = {"pid": kernel.ready["pid"], "start_time": start_time, "kernel_dir": kernel.folder}
        command = [sys.executable, "-I", str(LAUNCHER), json.dumps({"guard": config})]
        subprocess.run(command, check=True)

    def test_it_ends_a_kernel_whose_cell_holds_the_interpreter_lock_and_its_children(self) -> None:
        with start_kernel() as kernel:
            child = start_child(kernel, "sleep 1000")
            leader = start_in_session(kernel, STUBBORN)
            hold_interpreter_lock(kernel, kernel.process.pid)
            kernel.host_dies()
            self.guard(kernel, kernel.ready["start_time"])
            self.assertEqual(kernel.process.wait(WAIT_SECONDS), -signal.SIGKILL)
            self.assertEqual([is_alive(child), is_alive(leader)], [False, False])
            self.assertFalse(os.path.exists(kernel.folder))

    def test_it_lets_a_kernel_end_that_does_so_by_itself(self) -> None:
        with start_kernel() as kernel:
            kernel.host_dies()
            self.guard(kernel, kernel.ready["start_time"])
            self.assertEqual(kernel.process.wait(WAIT_SECONDS), 1)

    def test_it_ends_the_workers_that_a_pool_has_just_replaced(self) -> None:
        with start_kernel() as kernel:
            kernel.run(
                "import multiprocessing, os; pool = multiprocessing.get_context('fork').Pool(2)\n"
                "pids = pool.map(abs, [1, 2])"
            )
            session = kernel.process.pid
            kernel.host_dies()
            self.guard(kernel, kernel.ready["start_time"])
            kernel.process.wait(WAIT_SECONDS)
            listing = subprocess.run(["ps", "-o", "stat=,args=", "--sid", str(session)], capture_output=True, text=True)
            # Zombies are init's to collect.
            self.assertEqual([line for line in listing.stdout.splitlines() if not line.startswith("Z")], [])

    def test_it_does_nothing_to_another_process_with_the_pid(self) -> None:
        with start_kernel() as kernel:
            self.guard(kernel, kernel.ready["start_time"] - 1)
            self.assertEqual(kernel.run("1 + 1").result, "2")


if __name__ == "__main__":
    unittest.main()
