"""Revives a namespace from a state file, name by name. Never raises, never changes the file.

What a value does while it is loaded (raise anything, print, sleep) costs only its name. Names that are
in use are left alone.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rlm.state_file import DamagedState, End, Frame, read
from rlm.state_manifest import STATE_FILE, read_manifest
from rlm.value_pickle import NeedsAnother, load

# Holds the name that is being restored: when it is still there, restoring that ended the kernel.
TRACE_FILE = "kernel-state.restoring"

NAME_SECONDS = 20.0
TOTAL_SECONDS = 100.0
REASON_CHARS = 200

# Folders whose state file may be replaced: it was restored, or written, by this kernel.
_restored_folders: set[str] = set()


def restore(shell: Any, folder: str) -> dict[str, Any] | None:
    """`{restored, failed}`, or None when nothing was saved.

    Also `python_version_mismatch: {saved, now}`: functions and classes then stay away, since compiled
    code only fits the Python that made it.
    """
    path = os.path.join(folder, STATE_FILE)
    if not os.path.exists(path):
        return None
    restoring = _Restore(shell, folder)
    frames, end, damage = _read_all(path)
    report: dict[str, Any] = {}
    now = sys.version.split()[0]
    if end is not None and end.python.split(".")[:2] != now.split(".")[:2]:
        report["python_version_mismatch"] = {"saved": end.python, "now": now}
        restoring.leave_code(frames, f"was saved by Python {end.python}; this is {now}")
    restoring.run(frames)
    if damage:
        restoring.note_missing(read_manifest(folder).get("saved", []), f"{STATE_FILE}: {damage}")
        report["error"] = damage
    if not restoring.failed and not damage:
        _restored_folders.add(os.path.realpath(folder))
    failed = [{"name": name, "reason": reason} for name, reason in restoring.failed.items()]
    return {"restored": restoring.restored, "failed": failed, **report}


def is_restored(folder: str) -> bool:
    """Whether the state file there may be replaced without losing anything that failed to come back."""
    return os.path.realpath(folder) in _restored_folders


def note_saved(folder: str) -> None:
    """What is in the folder is now this kernel's own."""
    _restored_folders.add(os.path.realpath(folder))


class _Restore:
    """One restore: what came back, and why the rest did not."""

    def __init__(self, shell: Any, folder: str) -> None:
        self.names: dict[str, Any] = shell.user_ns
        self.shell = shell
        self.trace_path = os.path.join(folder, TRACE_FILE)
        self.restored: list[str] = []
        self.failed: dict[str, str] = {}
        self.deadline = time.monotonic() + TOTAL_SECONDS

    def leave_code(self, frames: list[Frame], reason: str) -> None:
        """Does without what holds compiled code."""
        for frame in [frame for frame in frames if frame.has_code]:
            frames.remove(frame)
            self.failed[frame.name] = reason

    def run(self, frames: list[Frame]) -> None:
        """Loads the frames; those that need another one wait until it is there."""
        crashed = self._last_crash()
        waiting = [frame for frame in frames if not self._is_left_alone(frame.name, crashed)]
        with _silence():
            while waiting:
                left = [frame for frame in waiting if not self._restore(frame)]
                if len(left) == len(waiting):
                    break
                waiting = left
        for frame in waiting:
            self.failed.setdefault(frame.name, "needs a variable that is not there")
        with suppress(FileNotFoundError):
            os.unlink(self.trace_path)

    def note_missing(self, names: list[str], reason: str) -> None:
        """Names of the manifest that were not in the part of the file that could be read."""
        for name in names:
            if name not in self.restored:
                self.failed.setdefault(name, reason)

    def _is_left_alone(self, name: str, crashed: str) -> bool:
        if name == crashed:
            self.failed[name] = "restoring it ended the kernel last time"
        elif name in self.names or name in self.shell.user_ns_hidden:
            self.failed[name] = "the name is in use"
        return name in self.failed

    def _restore(self, frame: Frame) -> bool:
        """Loads one frame. False when it needs another one first."""
        self._trace(frame.name)
        try:
            with _time_slice(min(NAME_SECONDS, self.deadline - time.monotonic())):
                value = load(frame.blob)
        except NeedsAnother as error:
            self.failed[frame.name] = str(error)
            return False
        except BaseException as error:
            self.failed[frame.name] = _reason(error)
            return True
        self.names[frame.name] = value
        self.restored.append(frame.name)
        self.failed.pop(frame.name, None)
        return True

    def _last_crash(self) -> str:
        try:
            with io.open(self.trace_path, encoding="utf-8") as file:
                return file.read()
        except OSError:
            return ""

    def _trace(self, name: str) -> None:
        with suppress(OSError), io.open(self.trace_path, "w", encoding="utf-8") as file:
            file.write(name)


class _SliceOver(BaseException):
    """The time of one name is over."""


@contextmanager
def _time_slice(seconds: float) -> Iterator[None]:
    """Interrupts the block after this time. In the main thread only."""
    if seconds <= 0:
        raise _SliceOver
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def over(_number: int, _frame: Any) -> None:
        raise _SliceOver

    previous = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous or signal.SIG_DFL)


@contextmanager
def _silence() -> Iterator[None]:
    """Lets prints go nowhere."""
    streams = sys.stdout, sys.stderr
    with io.open(os.devnull, "w", encoding="utf-8", errors="replace") as null:
        sys.stdout = sys.stderr = null
        try:
            yield
        finally:
            sys.stdout, sys.stderr = streams


def _read_all(path: str) -> tuple[list[Frame], End | None, str]:
    """The intact frames, the end if it is there, and what is wrong with the file."""
    frames: list[Frame] = []
    try:
        for item in read(path):
            if isinstance(item, End):
                return frames, item, ""
            frames.append(item)
    except (DamagedState, OSError) as error:
        return frames, None, str(error)
    return frames, None, "it has no end"


def _reason(error: BaseException) -> str:
    if isinstance(error, _SliceOver):
        return "takes too long to restore"
    return f"{type(error).__name__}: {error}".rstrip(": ")[:REASON_CHARS]
