"""Ends a kernel whose host has died and that does not end by itself, as the host's guard process does.

A kernel watches its host in a thread, which C code that never gives the interpreter lock back keeps
from running. Kernels of a fork server have the server for this.
"""

from __future__ import annotations

import os
import signal
import time
from typing import Any

from rlm import process_identity, teardown

# A kernel that notices the host's death ends its children first.
END_SECONDS = 4.0
POLL_SECONDS = 0.05


def main(config: dict[str, Any]) -> None:
    """Waits, not for long, for the end of the kernel with this `pid` and `start_time`; then ends it by force.

    `config` also has `kernel_dir`, the kernel's private folder, which goes too.
    """
    pid = config["pid"]

    def lives() -> bool:
        return process_identity.start_of(pid) == config["start_time"]

    deadline = time.monotonic() + END_SECONDS
    while lives() and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    if lives():
        os.killpg(pid, signal.SIGKILL)
    elif process_identity.start_of(pid) is not None:
        return  # Its number has gone to another process.
    # Also when it has ended by itself: what it forked just then is left.
    teardown.clean_up_after(pid, config["kernel_dir"])
