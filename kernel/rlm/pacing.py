"""Keeps a flood of output from filling the kernel's memory.

Writing to the kernel's streams takes any amount at once; what the sender thread has not sent yet waits
in memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

# Text is handed to the sender thread in pieces of this size, so that a flood waits for it.
FLUSH_CHARS = 1024 * 1024
# After so many pieces a flood is slowed down to one in this time: what the host has not read yet would
# fill the kernel's memory, and in the end be lost.
BURST_PIECES = 16
PIECE_SECONDS = 1 / 32


def paced(stream: Callable[[], Any]) -> Callable[[str], None]:
    """A function that writes to whatever `stream` gives at the time, and holds up who floods it."""
    waiting = pieces = 0
    sent_at = 0.0

    def write(text: str) -> None:
        nonlocal waiting, pieces, sent_at
        stream().write(text)
        waiting += len(text)
        if waiting < FLUSH_CHARS:
            return
        stream().flush()
        waiting, pieces = 0, pieces + 1
        if pieces > BURST_PIECES:
            time.sleep(max(0.0, sent_at + PIECE_SECONDS - time.monotonic()))
        sent_at = time.monotonic()

    return write
