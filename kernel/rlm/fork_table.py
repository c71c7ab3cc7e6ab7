"""The kernels that a fork server has forked: which live, which have exited, and signals by fork id.

A child stays a zombie, and its pid its own, until it is reaped here; so a signal sent to a live entry
reaches that child and nobody else.
"""

from __future__ import annotations

import json
import os
import signal
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

from rlm import process_identity

# So many exited forks are remembered; live ones always are.
MAX_EXITED = 256


@dataclass
class Fork:
    """One forked kernel, and the pipe on which it says how its start went (-1 once that is known)."""

    fork_id: str
    pid: int
    start: int
    ready_fd: int
    kernel_dir: str
    text: bytes = b""
    error: str = ""

    def read(self) -> bool:
        """Takes what has come; False when the line is whole, or never will be."""
        chunk = os.read(self.ready_fd, 4096)
        self.text += chunk
        return bool(chunk) and not self.text.endswith(b"\n")

    def finish(self) -> dict[str, Any]:
        """Closes the pipe and returns the kernel's line, {} when it ended without one."""
        os.close(self.ready_fd)
        self.ready_fd = -1
        line: dict[str, Any] = json.loads(self.text) if self.text.endswith(b"\n") else {}
        if not line.get("ready"):
            self.error = line.get("error", "the kernel ended before it was ready")
        return line


class ForkTable:
    """See the head of this file."""

    def __init__(self) -> None:
        self._next = 1
        self._live: dict[int, Fork] = {}
        self._by_id: dict[str, Fork] = {}
        self._exited: OrderedDict[str, None] = OrderedDict()

    def add(self, pid: int, ready_fd: int, kernel_dir: str) -> Fork:
        """Notes a child that was forked just now."""
        start = process_identity.start_of(pid) or 0
        fork = Fork(str(self._next), pid, start, ready_fd, kernel_dir)
        self._next += 1
        self._live[pid] = self._by_id[fork.fork_id] = fork
        return fork

    def live(self) -> list[Fork]:
        """Those that have not been reaped."""
        return list(self._live.values())

    def open_fds(self) -> list[int]:
        """The pipes that are still read."""
        return [fork.ready_fd for fork in self._live.values() if fork.ready_fd >= 0]

    def outcome(self, fork_id: str) -> str:
        """"running", "exited", or "unknown": never forked, or too long ago."""
        if fork_id in self._by_id:
            return "running"
        return "exited" if fork_id in self._exited else "unknown"

    def send(self, fork_id: str, signum: int, group: bool) -> str:
        """Signals a kernel or its whole process group: "signalled", or why nobody was."""
        fork = self._by_id.get(fork_id)
        if fork is None:
            return self.outcome(fork_id)
        try:
            (os.killpg if group else os.kill)(fork.pid, signum)
        except ProcessLookupError:
            # It does not lead a group yet, so soon after the fork.
            os.kill(fork.pid, signum)
        return "signalled"

    def reap(self) -> list[tuple[Fork, dict[str, Any]]]:
        """The kernels that have ended since, each with its exit code or the name of its signal."""
        ended = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                break
            if pid == 0:
                break
            fork = self._live.pop(pid, None)
            if fork is None:
                continue
            del self._by_id[fork.fork_id]
            self._exited[fork.fork_id] = None
            while len(self._exited) > MAX_EXITED:
                self._exited.popitem(last=False)
            code = os.waitstatus_to_exitcode(status)
            name = signal.Signals(-code).name if code < 0 else None
            ended.append((fork, {"code": None if code < 0 else code, "signal": name}))
        return ended
