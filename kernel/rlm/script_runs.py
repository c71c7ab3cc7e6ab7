"""`%run` of a script that fails fails its cell.

IPython only shows the error and goes on, so the reply says "ok". A host that sees an error followed by a
display, such as a figure that the script left open, would take the cell for a success.
"""

from __future__ import annotations

import sys
from typing import Any, Optional

_failure: Optional[BaseException] = None


def install(shell: Any) -> None:
    """Teaches the shell. May be called again."""
    if getattr(shell.safe_execfile, "__name__", "") == "noted_execfile":
        return
    stock = shell.safe_execfile

    def noted_execfile(*args: Any, **kwargs: Any) -> Any:
        stock_show = shell.showtraceback

        def show(*show_args: Any, **show_kwargs: Any) -> None:
            global _failure
            _failure = sys.exc_info()[1]
            stock_show(*show_args, **show_kwargs)

        shell.showtraceback = show
        try:
            return stock(*args, **kwargs)
        finally:
            shell.showtraceback = stock_show

    shell.safe_execfile = noted_execfile
    shell.events.register("post_run_cell", fail_cell)


def fail_cell(result: Any = None) -> None:
    """Makes the error of a script that of the cell, unless that has one of its own."""
    global _failure
    failure, _failure = _failure, None
    if failure is not None and result is not None and result.error_in_exec is None:
        result.error_in_exec = failure
