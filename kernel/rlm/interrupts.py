"""Where an interrupt may raise, and what keeps one from getting lost.

Left alone, ipykernel ignores SIGINT until it takes up a cell, and then lets it raise wherever the main
thread is. So one that comes a moment too early is lost, as is one that meets IPython's hooks, which
print every exception; and one that comes a moment too late costs the reply. Here SIGINT raises in the
code of a cell only, and one that comes before waits for that code.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from typing import Any, Optional

# A nap, so that the finalizer that swallowed an interrupt is over before it comes again.
AGAIN_SECONDS = 0.01


class Phase(Enum):
    """What the main thread does. While it prepares, an interrupt is kept for the code that comes."""

    IDLE = auto()
    PREPARING = auto()
    RUNNING = auto()


class Interrupts:
    """The interrupts of one kernel. Methods are for the main thread unless they say something else."""

    def __init__(self) -> None:
        self._phase = Phase.IDLE
        self._number = 0
        self._is_due = False
        self._is_overdue = False
        self._is_cancelling = False
        self._cell_id: Optional[str] = None
        self._wanted: Optional[str] = None
        self._task: Any = None

    def want(self, cell_id: str) -> bool:
        """Notes that this cell is to be interrupted. For any thread.

        True when SIGINT is to be sent now; False when it would meet another cell.
        """
        self._wanted = cell_id
        return self._cell_id in (None, cell_id)

    def prepare(self, cell_id: str) -> None:
        """Keeps interrupts from here on, and the one that `want` announced for this cell."""
        self._number += 1
        self._cell_id = cell_id
        self._phase = Phase.PREPARING
        self._is_due = self._is_overdue = self._is_cancelling = False
        signal.signal(signal.SIGINT, self._on_signal)
        # In this order: whoever calls `want` and then sends the signal finds the handler, or we find that.
        self._is_due = self._is_due or cell_id == self._wanted

    def run(self) -> None:
        """Interrupts raise from here on. KeyboardInterrupt when there is one already.

        Does nothing unless `prepare` came last: within a cell the handler may be the cell's own.
        """
        if self._phase is not Phase.PREPARING:
            return
        self._phase = Phase.RUNNING
        if self._task is None and signal.getsignal(signal.SIGINT) == self._on_signal:
            # As programs expect it; `asyncio.run` looks for this one. Trio's runner has set its own.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._is_due:
            raise KeyboardInterrupt("the cell had not begun")

    def finish(self) -> None:
        """Ignores interrupts from here on."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self._phase = Phase.IDLE
        self._cell_id = None

    @contextmanager
    def raising_in(self, task: Any) -> Iterator[None]:
        """Lets interrupts raise in `task` while that computes, and cancel it while it waits.

        ipykernel only cancels, which nothing notices until the task waits: `while True: pass` after
        an `await` would go on.
        """
        self._task = task
        try:
            yield
        finally:
            self._task = None

    def insist(self) -> None:
        """Raises what was put off now, when it takes too long to come to that. For any thread.

        That is a hook before the cell's code, or something in the event loop that keeps the cell's
        task from being cancelled.
        """
        if self._phase is Phase.PREPARING and self._is_due:
            self._is_overdue = True
            interrupt_main_thread()
        elif self._phase is Phase.RUNNING and self._is_cancelling:
            interrupt_main_thread()

    def escaped(self) -> None:
        """Takes an interrupt that was raised in the event loop itself, outside of the cell's task."""
        if self._phase is Phase.RUNNING and self._task is not None:
            self._task.cancel()

    def repeat_swallowed(self) -> None:
        """Makes an interrupt come again that Python could not raise.

        In a finalizer or a callback of the garbage collector it only prints exceptions.
        """
        stock = sys.unraisablehook

        def hook(unraisable: Any) -> None:
            is_main = threading.current_thread() is threading.main_thread()
            if not (is_main and self._phase is Phase.RUNNING and isinstance(unraisable.exc_value, KeyboardInterrupt)):
                return stock(unraisable)
            timer = threading.Timer(AGAIN_SECONDS, self._again, (self._number,))
            timer.daemon = True
            return timer.start()

        sys.unraisablehook = hook

    def heed_system(self) -> None:
        """Makes `os.system` raise the interrupt that came meanwhile.

        The C library ignores SIGINT while it waits for the command, so Python never hears of it.
        """
        stock = os.system

        def system(command: Any) -> int:
            status = stock(command)
            is_main = threading.current_thread() is threading.main_thread()
            if is_main and self._phase is Phase.RUNNING and self._cell_id and self._cell_id == self._wanted:
                raise KeyboardInterrupt
            return status

        # So that what refers to it is saved by name.
        system.__module__, system.__qualname__ = "os", "system"
        os.system = system

    def _again(self, number: int) -> None:
        if self._phase is Phase.RUNNING and self._number == number:
            interrupt_main_thread()

    def _on_signal(self, _number: int, _frame: Any) -> None:
        if self._phase is Phase.PREPARING:
            self._is_due = True
            if self._is_overdue:
                raise KeyboardInterrupt
        elif self._is_cancelling or self._task is None or self._is_computing():
            raise KeyboardInterrupt
        else:
            self._is_cancelling = True
            self._task.get_loop().call_soon_threadsafe(self._cancel, self._task)

    def _is_computing(self) -> bool:
        return asyncio.current_task(self._task.get_loop()) is self._task

    def _cancel(self, task: Any) -> None:
        self._is_cancelling = False
        task.cancel()


def interrupt_main_thread() -> None:
    """Sends SIGINT to the main thread, whose system calls it ends. For any thread."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
