"""When a process started, whether it was meant to stay, and a signal that reaches the one meant.

A process is known by its pid and its start time, since pids are reused.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Optional

from rlm import processes
from rlm.processes import Process

HAS_PROC = os.path.exists("/proc/self/stat")
LSTART_FORMAT = "%a %b %d %H:%M:%S %Y"


def started_at(process: Process) -> int:
    """Its start on the clock of `now()`; 0, older than all else, where ps(1) writes dates in its own way."""
    if HAS_PROC:
        return int(process.started)
    try:
        return int(time.mktime(time.strptime(process.started, LSTART_FORMAT)))
    except ValueError:
        return 0


def now() -> int:
    """The start time of a process that starts now: clock ticks since boot, or seconds where ps(1) tells."""
    if HAS_PROC:
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return int(time.time())


def ignores_hangup(process: Process) -> bool:
    """Whether it was started to outlive its terminal (nohup). Where that can't be seen: no."""
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii", errors="replace") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigIgn:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) & (1 << (signal.SIGHUP - 1)))


def send(process: Process, signum: int) -> None:
    """Signals a process unless it has ended, or its pid now belongs to another."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, an old one, or the process has ended: the check decides, with a small race.
        if is_alive(process):
            processes.send([process], signum)
        return
    try:
        # The handle keeps naming whoever had the pid when it was opened: checked, it can't go wrong.
        if is_alive(process):
            signal.pidfd_send_signal(handle, signum)
    except OSError:
        pass  # It ended meanwhile, or is not ours to signal.
    finally:
        os.close(handle)


def is_alive(process: Process) -> bool:
    """Whether this very process still runs."""
    return start_of(process.pid) == started_at(process)


def start_of(pid: int) -> Optional[int]:
    """The start, on the clock of `now()`, of the process that has this pid; None when there is none."""
    if not HAS_PROC:
        process = processes.living().get(pid)
        return started_at(process) if process else None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The command, in parentheses, may hold spaces and parentheses itself: count from its end.
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return None if fields[0] in (b"Z", b"X") else int(fields[19])
