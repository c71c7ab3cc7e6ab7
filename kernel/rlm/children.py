"""The processes that cells start, and how they are ended.

Two things belong to the kernel beside its own process group: the sessions of shell cells, which are
registered here, and what descends from either. Spared is what was meant to outlive the kernel, as when
a terminal is closed: processes that ignore SIGHUP (nohup), and those that left for a session of their
own (setsid, daemons).
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Optional

from rlm import process_identity, processes
from rlm.process_identity import started_at
from rlm.processes import Process

POLL_SECONDS = 0.02
# After SIGTERM: shells ignore it and go at SIGHUP, what ignores both goes at SIGKILL.
HANGUP_AFTER_SECONDS = 0.3
KILL_AFTER_SECONDS = 1.0
# A process that forks while it is being killed can leave a child behind; a few rounds get it.
KILL_ROUNDS = 25


# More recorded sessions than this are worth a look at which have ended.
PRUNE_ABOVE = 32


@dataclass(frozen=True)
class Session:
    """A session that a shell cell leads or led. `start` is when its leader started."""

    sid: int
    start: int


@dataclass
class _Kernel:
    """What is known about the kernel whose children are meant."""

    pid: int = 0
    session: int = 0
    record_path: str = ""
    sessions: list[Session] = field(default_factory=list)
    is_ending: bool = False
    cell_start: int = 0
    cell_id: Optional[str] = None


_kernel = _Kernel()


def begin(kernel_dir: str) -> None:
    """Makes this process the kernel whose children are meant, with its record in `kernel_dir`."""
    _kernel.pid = os.getpid()
    _kernel.session = os.getsid(0)
    _kernel.record_path = os.path.join(kernel_dir, "sessions")
    _kernel.sessions = []
    note_cell_start(None)


def adopt(pid: int, kernel_dir: str) -> None:
    """Makes the children of a kernel that was killed the ones that are meant."""
    begin(kernel_dir)
    _kernel.pid = pid
    try:
        with open(_kernel.record_path, encoding="ascii") as file:
            pairs = [line.split() for line in file]
    except OSError:
        return  # It never had a shell cell.
    _kernel.sessions = [Session(int(sid), int(start)) for sid, start in pairs]


def note_cell_start(cell_id: Optional[str]) -> None:
    """Notes that a cell begins: what starts from now on is that cell's."""
    _kernel.cell_start = process_identity.now()
    _kernel.cell_id = cell_id


def register_session(sid: int) -> None:
    """Notes the session of a shell cell (`start_new_session=True`), to be ended with the kernel.

    It is also recorded in the kernel's folder, one `sid start_time` a line, so that the host can end
    it when the kernel was killed.
    """
    start = process_identity.start_of(sid)
    _kernel.sessions.append(Session(sid, process_identity.now() if start is None else start))
    if len(_kernel.sessions) > PRUNE_ABOVE:
        table = processes.living()
        inhabited = {process.session for process in table.values()}
        _kernel.sessions = [s for s in _live_sessions(table) if s.sid in inhabited]
    if _kernel.record_path:
        _write_record()


def end_all() -> None:
    """Ends the kernel's children as a closing terminal does. Takes little more than a second at most."""
    # Of this process only if it is the kernel itself: a fork server lives on.
    _kernel.is_ending = _kernel.pid == os.getpid()
    _end(kernel_children)


def end_late_fork() -> None:
    """In a process that was just forked: ends it when the kernel is ending, or a pool would replace its workers."""
    if _kernel.is_ending:
        os._exit(1)


def end_cell_children(cell_id: Optional[str] = None) -> int:
    """Ends what the running cell, or the last one, has started; returns how many processes that were.

    Nothing is ended when `cell_id` (the msg_id of its request) is given and it is another cell by now.
    """
    if cell_id is not None and cell_id != _kernel.cell_id:
        return 0
    return _end(cell_children)


def kernel_children() -> list[Process]:
    """All that belongs to the kernel, without the kernel itself."""
    return _select(_is_member)


def cell_children() -> list[Process]:
    """What the running cell started: descendants of the kernel, and orphans of its sessions."""
    return _select(_is_of_cell)


def cell_group() -> list[Process]:
    """The part of it that is in the kernel's own process group, without the sessions of shell cells."""
    return [process for process in cell_children() if _group_of(process.pid) == _kernel.pid]


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except ProcessLookupError:
        return 0


def _select(belongs: Callable[[Process, dict[int, Process], set[int]], bool]) -> list[Process]:
    """The processes that belong to the kernel and were not meant to outlive it."""
    if not _kernel.pid:
        return []  # A kernel that somebody else started: what belongs to it was never noted.
    table = processes.living()
    sids = {session.sid for session in _live_sessions(table)} | {_kernel.pid}
    return [
        process
        for process in table.values()
        if process.pid not in (_kernel.pid, os.getpid())
        and belongs(process, table, sids)
        and not process_identity.ignores_hangup(process)
    ]


def _is_of_cell(process: Process, table: dict[int, Process], sids: set[int]) -> bool:
    """Whether it and all between it and the kernel, or it and the orphan above it, began with the cell.

    A worker that a server of an earlier cell starts now is the server's, not the cell's.
    """
    current = process
    while started_at(current) >= _kernel.cell_start:
        if current.parent == _kernel.pid:
            return True
        above = table.get(current.parent)
        if above is None or not (_is_member(above, table, sids) or started_at(above) >= _kernel.cell_start):
            return _is_member(process, table, sids)
        current = above
    return False


def _is_member(process: Process, table: dict[int, Process], sids: set[int]) -> bool:
    """Whether it is in one of the sessions, or in the group of a kernel that could not lead a session."""
    if process.session in sids:
        return True
    try:
        return process.session == _kernel.session and os.getpgid(process.pid) == _kernel.pid
    except OSError:
        return False


def _live_sessions(table: dict[int, Process]) -> list[Session]:
    """The registered sessions whose number has not gone to another leader since."""

    def is_same(session: Session) -> bool:
        leader = table.get(session.sid)
        return leader is None or started_at(leader) == session.start

    return [session for session in _kernel.sessions if is_same(session)]


def _write_record() -> None:
    """Replaces the record at once, so that a reader never sees half of it."""
    os.makedirs(os.path.dirname(_kernel.record_path), 0o700, exist_ok=True)
    unfinished = _kernel.record_path + ".new"
    with open(unfinished, "w", encoding="ascii") as file:
        file.writelines(f"{session.sid} {session.start}\n" for session in _kernel.sessions)
    os.replace(unfinished, _kernel.record_path)


def _end(select: Callable[[], list[Process]]) -> int:
    """Ends what `select` finds, by and by harder, until it finds nothing; counts the processes."""
    left = select()
    ended = {process.pid for process in left}
    started = time.monotonic()
    sent_hangup = False
    _signal(left, signal.SIGTERM)
    while left and time.monotonic() - started < KILL_AFTER_SECONDS:
        if not sent_hangup and time.monotonic() - started > HANGUP_AFTER_SECONDS:
            sent_hangup = True
            _signal(left, signal.SIGHUP)
        time.sleep(POLL_SECONDS)
        left = select()
    for _ in range(KILL_ROUNDS):
        if not left:
            break
        ended.update(process.pid for process in left)
        _signal(left, signal.SIGKILL)
        time.sleep(POLL_SECONDS)
        left = select()
    return len(ended)


def _signal(processes: Iterable[Process], signum: int) -> None:
    for process in processes:
        process_identity.send(process, signum)
        if signum != signal.SIGKILL:
            # One that is stopped would not see the signal.
            process_identity.send(process, signal.SIGCONT)
