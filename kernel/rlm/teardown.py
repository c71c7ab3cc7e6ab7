"""The kernel's end: at shutdown, on a signal, and when the host has died.

However it ends, its children end with it, as they do when a terminal is closed.
"""

from __future__ import annotations

import os
import select
import shutil
import signal
import threading
from typing import Any

from rlm import children
from rlm.children import register_session

__all__ = [
    "end_orphaned",
    "exit_soon",
    "handle_signals",
    "register_session",
    "watch_hangup",
    "watch_host",
]

# A kernel that was asked to end, and whose own exit is held up by a thread or an exit handler.
EXIT_GRACE_SECONDS = 3.0

_handled = (signal.SIGTERM, signal.SIGHUP)


def watch_host(parent_fd: int, kernel_dir: str) -> None:
    """Ends the kernel and removes its folder when `parent_fd` comes to its end: the host has died."""

    def wait() -> None:
        os.set_blocking(parent_fd, True)
        try:
            while os.read(parent_fd, 4096):
                pass
        except OSError:
            pass  # Closed by a cell: without the watch the kernel must not stay.
        end_orphaned(kernel_dir)

    threading.Thread(target=wait, name="prime-agent host watch", daemon=True).start()


def watch_hangup(fds: list[int], kernel_dir: str) -> None:
    """The same for pipes that others read too: waits until the far end of any of them is closed."""

    def wait() -> None:
        poller = select.poll()
        for fd in fds:
            poller.register(fd, 0)
        poller.poll()
        end_orphaned(kernel_dir)

    threading.Thread(target=wait, name="prime-agent host watch", daemon=True).start()


def end_orphaned(kernel_dir: str) -> None:
    """Ends children and kernel and removes what the host would have removed. Does not return."""
    try:
        children.end_all()
    finally:
        shutil.rmtree(kernel_dir, ignore_errors=True)
        os._exit(1)


def handle_signals() -> None:
    """Makes SIGTERM and SIGHUP end the kernel together with its children. Main thread only."""
    for signum in _handled:
        signal.signal(signum, _end_on_signal)
    os.register_at_fork(
        before=_hold_signals, after_in_parent=_release_signals, after_in_child=_restore_signals
    )


def exit_soon() -> None:
    """Makes sure that the process ends even if a thread or an exit handler of a cell does not."""
    timer = threading.Timer(EXIT_GRACE_SECONDS, os._exit, (0,))
    timer.daemon = True
    timer.start()


def _end_on_signal(signum: int, frame: Any) -> None:
    try:
        children.end_all()
    finally:
        os._exit(128 + signum)


_before_fork = threading.local()


def _hold_signals() -> None:
    """Keeps a signal that is meant for a fork from reaching it while it still has our handlers."""
    _before_fork.mask = signal.pthread_sigmask(signal.SIG_BLOCK, _handled)


def _release_signals() -> None:
    signal.pthread_sigmask(signal.SIG_SETMASK, _before_fork.mask)


def _restore_signals() -> None:
    """In a process that a cell forked: it is no kernel, and its parent may end it with SIGTERM."""
    for signum in _handled:
        if signal.getsignal(signum) is _end_on_signal:
            signal.signal(signum, signal.SIG_DFL)
    _release_signals()
