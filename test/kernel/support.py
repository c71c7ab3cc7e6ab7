"""A real kernel for tests, started through the launcher.

    with start_kernel() as kernel:
        kernel.host["goal.get"] = lambda payload: {"status": "ok", "goal": None}
        cell = kernel.execute("1 + 1")
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

from client import CONTRACT, PROJECT, WAIT_SECONDS, Cell, KernelClient, KernelDied

__all__ = [
    "CONTRACT", "LAUNCHER", "PROJECT", "WAIT_SECONDS", "Cell", "KernelDied", "RunningKernel",
    "is_alive", "start_kernel", "wait_until", "write_connection_file",
]

LAUNCHER = PROJECT / "kernel" / "launcher.py"
CLOSE_SECONDS = 5.0


class RunningKernel(KernelClient):
    """One kernel process and its client. Close it, or use it in a `with`."""

    def __init__(self, python: str, cwd: str, env: dict, paths: list, arguments: dict) -> None:
        super().__init__()
        # Short, because the path of a unix socket is.
        self.folder = tempfile.mkdtemp(prefix="pk-", dir="/tmp")
        self.connection_file = os.path.join(self.folder, "c.json")
        address = write_connection_file(self.connection_file, arguments.pop("transport", "ipc"))
        self._start(python, cwd, env, paths, arguments)
        self.connect({**address, **self.ready["ports"]})

    def __enter__(self) -> RunningKernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def exit_note(self) -> str:
        code = self.process.poll()
        return "" if code is None else str(code)

    @property
    def stderr(self) -> str:
        return "".join(self._stderr)

    def shutdown(self) -> int:
        """Asks for shutdown and returns the process's exit code."""
        self.request("control", "shutdown_request", {"restart": False})
        return self.process.wait(WAIT_SECONDS)

    def host_dies(self) -> None:
        """Closes the pipe that the kernel watches, as the kernel of a killed host sees it."""
        os.close(self._parent_pipe)
        self._parent_pipe = -1

    def close(self) -> None:
        """Ends the process as the host's death does, by force if need be, and removes everything."""
        if self._parent_pipe >= 0:
            self.host_dies()
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._drain.join(WAIT_SECONDS)
        self.disconnect()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, python: str, cwd: str, env: dict, paths: list, arguments: dict) -> None:
        ready, ready_child = os.pipe()
        parent_child, self._parent_pipe = os.pipe()
        config = {"connection_file": self.connection_file, "ready_fd": ready_child,
                  "parent_fd": parent_child, "cwd": cwd, "paths": paths,
                  "kernel_dir": self.folder, **arguments}
        self.process = subprocess.Popen(
            [python, "-I", str(LAUNCHER), json.dumps(config)],
            env={**os.environ, **env}, pass_fds=(ready_child, parent_child),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        os.close(ready_child)
        os.close(parent_child)
        self._stderr: list[str] = []
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()
        with open(ready) as lines:
            line = lines.readline()
        self.ready: dict = json.loads(line) if line else {}
        if not self.ready.get("ready"):
            self.process.wait(WAIT_SECONDS)
            self.close()
            raise KernelDied(f"not ready: {self.ready.get('error')}\n{self.stderr}")

    def _read_stderr(self) -> None:
        with self.process.stderr as lines:
            for line in lines:
                self._stderr.append(line)


def start_kernel(
    cwd: Optional[str] = None,
    env: Optional[dict] = None,
    paths: Optional[list] = None,
    bootstrap: Optional[dict] = None,
    python: str = sys.executable,
    **arguments: Any,
) -> RunningKernel:
    """Starts a kernel in `cwd` (default: the temporary folder). `env` adds to our environment.

    `bootstrap` holds the options of the `bootstrap` call, which is made when it is given. `transport`
    is "ipc" or "tcp"; other `arguments` go into the launcher's JSON.
    """
    cwd = cwd or tempfile.gettempdir()
    kernel = RunningKernel(python, cwd, env or {}, [cwd] if paths is None else paths, arguments)
    if bootstrap is not None:
        kernel.call("bootstrap", bootstrap)
    return kernel


def write_connection_file(path: str, transport: str = "ipc") -> dict:
    """Writes a connection file and returns what is in it. With tcp the kernel picks the ports."""
    channels = enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)
    ipc = transport == "ipc"
    info = {
        "transport": transport,
        "ip": os.path.join(os.path.dirname(path), "k") if ipc else "127.0.0.1",
        "key": os.urandom(16).hex(),
        "signature_scheme": "hmac-sha256",
        **{f"{name}_port": number if ipc else 0 for number, name in channels},
    }
    with open(path, "w") as file:
        json.dump(info, file)
    return info


def wait_until(condition: Callable[[], Any], timeout: float = WAIT_SECONDS) -> Any:
    """Waits for something that no message announces; returns its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("what the test waits for did not happen")
        time.sleep(0.01)
    return value


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def processor_ticks(pid: int) -> int:
    """How long a process has computed so far. Linux only."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


def hold_interpreter_lock(kernel: KernelClient, pid: int) -> None:
    """Runs C code in the kernel with this pid that gives the interpreter lock back to nobody, ever."""
    kernel.begin_running("import re, time; time.sleep(0.1); re.match('(a*)*b', 'a' * 100)")
    busy = processor_ticks(pid) + 20
    wait_until(lambda: processor_ticks(pid) > busy)
