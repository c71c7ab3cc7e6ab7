"""The system's processes: who started whom, and a signal that reaches the one that was meant.

Reads proc(5), or asks ps(1) where there is no /proc. A process is known by its pid and its start
time, since pids are reused.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from dataclasses import dataclass
from typing import Optional

HAS_PROC = os.path.exists("/proc/self/stat")


@dataclass(frozen=True)
class Process:
    """One process that is not a zombie. `start` is in the unit of `now()`."""

    pid: int
    parent: int
    group: int
    session: int
    start: int


def list_processes() -> dict[int, Process]:
    """All processes that can be seen, by pid."""
    if not HAS_PROC:
        return list_with_ps()
    found = (read_process(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return {process.pid: process for process in found if process}


def read_process(pid: int) -> Optional[Process]:
    """The process of this pid, or None when there is none."""
    if not HAS_PROC:
        return list_with_ps(pid).get(pid)
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The command, in parentheses, may hold spaces and parentheses itself: count from its end.
    fields = stat[stat.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    return Process(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def list_with_ps(pid: Optional[int] = None) -> dict[int, Process]:
    """The same from ps(1), whose start times are in whole seconds."""
    which = ["-A"] if pid is None else ["-p", str(pid)]
    columns = [part for name in ("pid", "ppid", "pgid", "stat", "lstart") for part in ("-o", name + "=")]
    answer = subprocess.run(
        ["ps", *which, *columns], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    found = {}
    for line in answer.stdout.splitlines():
        number, parent, group, state, *started = line.split()
        if state.startswith("Z"):
            continue
        try:
            session = os.getsid(int(number))
        except OSError:
            continue
        start = int(time.mktime(time.strptime(" ".join(started), "%a %b %d %H:%M:%S %Y")))
        found[int(number)] = Process(int(number), int(parent), int(group), session, start)
    return found


def now() -> int:
    """The start time that a process gets which starts now: clock ticks since boot, or seconds."""
    if HAS_PROC:
        return int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
    return int(time.time())


def ignores_hangup(process: Process) -> bool:
    """Whether it was started to outlive its terminal (nohup). Where that can't be seen: no."""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            masks = [line.split()[1] for line in file if line.startswith("SigIgn:")]
    except OSError:
        return False
    return bool(masks) and bool(int(masks[0], 16) & (1 << (signal.SIGHUP - 1)))


def send(process: Process, signum: int) -> None:
    """Signals a process unless it has ended, or its pid now belongs to another."""
    try:
        handle = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, an old kernel, or gone already: the check below decides, with a small race.
        if is_alive(process):
            kill_quietly(process.pid, signum)
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
    current = read_process(process.pid)
    return current is not None and current.start == process.start


def kill_quietly(pid: int, signum: int) -> None:
    """`os.kill` for a process that may have ended."""
    try:
        os.kill(pid, signum)
    except OSError:
        pass
