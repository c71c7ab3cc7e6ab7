"""The processes of one session, and how to end all of them.

A shell cell leads a session of its own, so its processes are those of that session and whatever
descends from them. Reads /proc where there is one, else asks `ps`.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

COMMAND_CHARS = 80


@dataclass(frozen=True)
class Process:
    """A living process. `started` tells it apart from a later one with the same pid."""

    pid: int
    parent: int
    session: int
    started: str

    @property
    def command(self) -> str:
        """Its command line, shortened to one line; empty when it has just ended."""
        text = " ".join(command_line(self.pid).split())
        return text if len(text) <= COMMAND_CHARS else text[: COMMAND_CHARS - 1] + "…"


def living() -> dict[int, Process]:
    """Every process that has not ended, by pid. Zombies are left out."""
    return _from_proc() if os.path.isdir("/proc/self") else _from_ps()


def tree(session: int, known: Iterable[Process] = ()) -> list[Process]:
    """The living members of a session, its leader's descendants, and theirs.

    `known` are processes that belonged to it before: a child that left the session can be found by
    its parent only while that lives, so an earlier sighting counts.
    """
    everyone = living()
    found = {p.pid for p in everyone.values() if session in (p.session, p.pid)}
    found |= {p.pid for p in known if _is_alive(p, everyone)}
    children: dict[int, list[int]] = {}
    for process in everyone.values():
        children.setdefault(process.parent, []).append(process.pid)
    queue = [session, *found]
    while queue:
        for child in children.get(queue.pop(), ()):
            if child not in found:
                found.add(child)
                queue.append(child)
    found.discard(os.getpid())
    return [everyone[pid] for pid in sorted(found)]


def holders(pipe: int) -> list[Process]:
    """The processes, other than this one, that have the pipe of this descriptor open. Linux only."""
    try:
        wanted = os.readlink(f"/proc/self/fd/{pipe}")
    except OSError:
        return []
    return [p for p in living().values() if p.pid != os.getpid() and _has_open(p.pid, wanted)]


def send(processes: Iterable[Process], number: int) -> None:
    """Sends a signal to each; those that are gone, or belong to somebody else, are passed over."""
    for process in processes:
        try:
            os.kill(process.pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def command_line(pid: int) -> str:
    """The arguments of a process joined by spaces, its name for a kernel thread, or nothing."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read(4096).replace(b"\0", b" ").decode("utf-8", "replace").strip()
    except OSError:
        return "" if os.path.isdir("/proc/self") else _ps("command=", "-p", str(pid)).strip()


def describe(processes: list[Process], shown: int = 3) -> str:
    """`pid 12: sleep 9; pid 13: cat; and 4 more`."""
    parts = [f"pid {p.pid}: {p.command}".rstrip(": ") for p in processes[:shown]]
    if len(processes) > shown:
        parts.append(f"and {len(processes) - shown} more")
    return "; ".join(parts)


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; the number itself for one without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _is_alive(process: Process, everyone: dict[int, Process]) -> bool:
    """Whether it still lives, perhaps with another parent or session by now."""
    now = everyone.get(process.pid)
    return now is not None and now.started == process.started


def _has_open(pid: int, wanted: str) -> bool:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)
    except OSError:
        return False
    for name in names:
        try:
            if os.readlink(f"{folder}/{name}") == wanted:
                return True
        except OSError:
            continue
    return False


def _from_proc() -> dict[int, Process]:
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                stat = file.read()
        except OSError:
            continue
        # The second field is the name in parentheses, which may hold spaces and parentheses.
        state, parent, _, session, *rest = stat[stat.rindex(b")") + 2 :].split()
        if state not in (b"Z", b"X"):
            found[int(name)] = Process(int(name), int(parent), int(session), rest[15].decode())
    return found


def _from_ps() -> dict[int, Process]:
    found = {}
    for line in _ps("pid=,ppid=,stat=,lstart=", "-A").splitlines():
        pid, parent, state, started = line.split(None, 3)
        if state.startswith("Z"):
            continue
        try:
            found[int(pid)] = Process(int(pid), int(parent), os.getsid(int(pid)), started.strip())
        except OSError:
            continue
    return found


def _ps(columns: str, *which: str) -> str:
    command = ["ps", *which, "-o", columns]
    # Start times are compared as text, and the locale of a cell is no concern of theirs.
    env = {**os.environ, "LC_ALL": "C"}
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, env=env).stdout
