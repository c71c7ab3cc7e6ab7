"""Advice after errors that cells run into because they are cells."""

from __future__ import annotations

import sys
from typing import Any

AWAIT = "hint: a cell runs inside an event loop already; use top-level await: `await main()`\n"
WORKER = (
    "hint: a worker process ended before its work was done: it crashed, or it could not import what a "
    "cell defines; then use multiprocessing.get_context('fork'), or put the function into a module\n"
)

# (part of the error's text, hint)
HINTS = (
    ("cannot be called from a running event loop", AWAIT),
    ("This event loop is already running", AWAIT),
    ("Cannot run the event loop while another loop is running", AWAIT),
    ("from <module '__main__'", WORKER),
    ("on <module '__main__'", WORKER),
    ("terminated abruptly while the future was running", WORKER),
)


def install(shell: Any) -> None:
    """Shows a hint after a cell that failed with such an error."""
    shell.events.register("post_run_cell", give)


def give(result: Any = None) -> None:
    """Writes the hint for the cell's error to its stderr."""
    error = getattr(result, "error_in_exec", None)
    if not isinstance(error, (RuntimeError, AttributeError)):
        return
    text = str(error)
    for part, hint in HINTS:
        if part in text:
            sys.stderr.write(hint)
            return
