"""The kernel's end: at shutdown, on a signal, and when the host has died.

However it ends, its children end with it, as they do when a terminal is closed, and its folder goes,
since the host that would remove it may be killed at any moment, too.
"""

from __future__ import annotations

import atexit
import os
import select
import shutil
import signal
import threading
import time
from typing import Any

from rlm import children
from rlm.children import register_session

__all__ = [
    "begin",
    "clean_up_after",
    "end_now",
    "exit_soon",
    "handle_signals",
    "register_session",
    "remove_folder",
    "watch_hangup",
    "watch_host",
]

# A kernel that was asked to end, and whose own exit is held up by a thread or an exit handler.
EXIT_GRACE_SECONDS = 3.0
REMOVE_ROUNDS = 20
REMOVE_AGAIN_SECONDS = 0.01

_folder = ""
_handled = (signal.SIGTERM, signal.SIGHUP)


def begin(kernel_dir: str) -> None:
    """Makes this process the kernel that has this folder."""
    global _folder
    _folder = kernel_dir
    children.begin(kernel_dir)
    pid = os.getpid()
    # Before all others, so that it is called after them.
    atexit.register(lambda: remove_folder(kernel_dir) if os.getpid() == pid else None)


def watch_host(parent_fd: int) -> None:
    """Ends the kernel and removes its folder when `parent_fd` comes to its end: the host has died."""

    def wait() -> None:
        os.set_blocking(parent_fd, True)
        try:
            while os.read(parent_fd, 4096):
                pass
        except OSError:
            pass  # Closed by a cell: without the watch the kernel must not stay.
        end_now()

    threading.Thread(target=wait, name="prime-agent host watch", daemon=True).start()


def watch_hangup(fds: list[int]) -> None:
    """The same for pipes that others read too: waits until the far end of any of them is closed."""

    def wait() -> None:
        poller = select.poll()
        for fd in fds:
            poller.register(fd, 0)
        poller.poll()
        end_now()

    threading.Thread(target=wait, name="prime-agent host watch", daemon=True).start()


def end_now(code: int = 1) -> None:
    """Ends children and kernel, and removes its folder. Does not return."""
    try:
        children.end_all()
    finally:
        remove_folder(_folder)
        os._exit(code)


def clean_up_after(pid: int, kernel_dir: str) -> None:
    """Ends what a kernel left that was killed, and removes its folder."""
    children.adopt(pid, kernel_dir)
    children.end_all()
    remove_folder(kernel_dir)


def remove_folder(folder: str) -> None:
    """Removes a kernel's folder, also one in which a thread of that kernel still makes its sockets."""
    for _ in range(REMOVE_ROUNDS):
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            return
        time.sleep(REMOVE_AGAIN_SECONDS)


def handle_signals() -> None:
    """Makes SIGTERM and SIGHUP end the kernel together with its children. Main thread only."""
    for signum in _handled:
        signal.signal(signum, _end_on_signal)
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=_restore_signals
    )


def exit_soon() -> None:
    """Makes sure that the process ends even if a thread or an exit handler of a cell does not."""
    timer = threading.Timer(EXIT_GRACE_SECONDS, end_now, (0,))
    timer.daemon = True
    timer.start()


def _end_on_signal(signum: int, frame: Any) -> None:
    end_now(128 + signum)


_before_fork = threading.local()


def _hold_signals() -> None:
    """Keeps a signal that is meant for a fork from reaching it while it still has our handlers."""
    _before_fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handled)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _before_fork.mask)


def _restore_signals() -> None:
    """In a process that a cell forked: it is no kernel, and its parent may end it with SIGTERM."""
    children.end_late_fork()
    for signum in _handled:
        if signal.getsignal(signum) is _end_on_signal:
            signal.signal(signum, signal.SIG_DFL)
    _release_signals()
