"""`with time_limit(60):` ends its block with an exception when the time is over.

By SIGALRM, in the main thread. Code that runs is interrupted where it stands; a block that waits in a
top-level `await` has its task cancelled, since an exception out of a signal handler would then hit
the kernel's event loop instead. C code that does not look for signals is interrupted when it returns.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any

# Code that swallowed the exception (`except Exception: continue`) gets it again after this.
AGAIN_SECONDS = 5.0

_active: list[time_limit] = []
_outer_handler: Any = None
_outer_alarm = (0.0, 0.0)
_outer_since = 0.0


def install(shell: Any) -> None:
    """Preloads `time_limit` for cells."""
    shell.push({"time_limit": time_limit}, interactive=False)


class TimeLimitExceeded(TimeoutError):
    """The block of a `time_limit` took too long."""


class time_limit:  # noqa: N801 - reads like a function
    """`with time_limit(SECONDS):` or `async with`; raises TimeLimitExceeded. May be nested."""

    def __init__(self, seconds: float) -> None:
        if not 0 < seconds < float("inf"):
            raise ValueError(f"time_limit needs a number of seconds above 0, not {seconds!r}")
        self.seconds = seconds
        self.due = 0.0
        self._frame: FrameType | None = None
        self._task: asyncio.Task | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._cancelled = False

    def __enter__(self) -> time_limit:
        return self._begin(sys._getframe(1))

    def __exit__(self, kind: type | None, error: BaseException | None, _traceback: Any) -> None:
        self._end(error)

    async def __aenter__(self) -> time_limit:
        return self._begin(sys._getframe(1))

    async def __aexit__(self, kind: type | None, error: BaseException | None, _tb: Any) -> None:
        self._end(error)

    def _begin(self, frame: FrameType) -> time_limit:
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("time_limit works in the main thread only")
        self._frame = frame
        self._cancelled = False
        try:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.current_task()
        except RuntimeError:
            self._loop = self._task = None
        self.due = time.monotonic() + self.seconds
        if not _active:
            _take_alarm()
        _active.append(self)
        _arm()
        return self

    def _end(self, error: BaseException | None) -> None:
        _active.remove(self)
        self._frame = None
        if _active:
            _arm()
        else:
            _give_back_alarm()
        if self._cancelled and isinstance(error, asyncio.CancelledError):
            uncancel = getattr(self._task, "uncancel", None)
            if uncancel is not None:
                uncancel()
            raise self._exceeded() from None

    def expire(self, interrupted: FrameType | None) -> None:
        """Ends the block: raises, or cancels its task while that waits."""
        self.due = time.monotonic() + AGAIN_SECONDS
        _arm()
        if self._loop is None or self._task is None or self._is_running(interrupted):
            raise self._exceeded()
        self._cancelled = True
        self._loop.call_soon_threadsafe(self._task.cancel)

    def _is_running(self, interrupted: FrameType | None) -> bool:
        """Whether the interrupted code is inside the block: its frame is one of the callers."""
        while interrupted is not None:
            if interrupted is self._frame:
                return True
            interrupted = interrupted.f_back
        return asyncio.current_task(self._loop) is self._task

    def _exceeded(self) -> TimeLimitExceeded:
        return TimeLimitExceeded(f"the time limit of {self.seconds:g} s is over")


def _on_alarm(_number: int, frame: FrameType | None) -> None:
    now = time.monotonic()
    # The outermost: its exception has to pass through the inner blocks anyway.
    expired = next((limit for limit in _active if limit.due <= now), None)
    if expired is not None:
        expired.expire(frame)
    elif _active:
        _arm()


def _arm() -> None:
    patience = min(limit.due for limit in _active) - time.monotonic()
    signal.setitimer(signal.ITIMER_REAL, max(patience, 0.001))


def _take_alarm() -> None:
    global _outer_handler, _outer_alarm, _outer_since
    _outer_handler = signal.signal(signal.SIGALRM, _on_alarm)
    _outer_alarm = signal.setitimer(signal.ITIMER_REAL, 0)
    _outer_since = time.monotonic()


def _give_back_alarm() -> None:
    """Restores the handler, and an alarm that somebody else had set, less the time that passed."""
    signal.setitimer(signal.ITIMER_REAL, 0)
    handler = signal.SIG_DFL if _outer_handler is None else _outer_handler
    signal.signal(signal.SIGALRM, handler)
    remaining, interval = _outer_alarm
    if remaining:
        passed = time.monotonic() - _outer_since
        signal.setitimer(signal.ITIMER_REAL, max(remaining - passed, 0.001), interval)
