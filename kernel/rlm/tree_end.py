"""Ends all processes of a session, also those that ignore INT and TERM, within half a second."""

from __future__ import annotations

import signal

from rlm import processes
from rlm.processes import Process

# Signals, each with the time that it is given before the next.
STAGES = ((signal.SIGINT, 0.25), (signal.SIGTERM, 0.15))
# The last is repeated, against children that were made while it went out.
KILL_AGAIN_SECONDS = 0.02
# A killed process that is stuck in the system is not waited for longer.
GIVE_UP_SECONDS = 1.0


class TreeEnd:
    """The end of one session's tree, step by step, so that its owner can read its output meanwhile.

    `reason` is None until it has begun. The first reason stands: an interrupt after a time-out does
    not relabel it.
    """

    def __init__(self, session: int) -> None:
        self.session = session
        self.reason: str | None = None
        self._seen: list[Process] = []
        self._stages = list(STAGES)
        self._due = 0.0
        self._killed_at: float | None = None

    def begin(self, reason: str) -> None:
        """Lets `step` send signals from now on."""
        self.reason = self.reason or reason

    def step(self, now: float) -> None:
        """Sends the next signal when its time has come."""
        if self.reason is None or now < self._due:
            return
        number, patience = signal.SIGKILL, KILL_AGAIN_SECONDS
        if self._stages:
            number, patience = self._stages.pop(0)
        elif self._killed_at is None:
            self._killed_at = now
        self._due = now + patience
        self.send(number)

    def send(self, number: int) -> None:
        """Sends a signal to everything that lives."""
        processes.send(self.members(), number)

    def members(self) -> list[Process]:
        """What still lives of the tree."""
        self._seen = processes.tree(self.session, self._seen)
        return self._seen

    def gave_up(self, now: float) -> bool:
        """Whether something has outlived SIGKILL for so long that waiting is no use."""
        return self._killed_at is not None and now >= self._killed_at + GIVE_UP_SECONDS
