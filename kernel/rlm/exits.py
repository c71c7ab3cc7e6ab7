"""`exit()`, `quit()` and `sys.exit(n)` end the cell, as they would a script, never the kernel.

Shown as `script called exit(3)`. Without a code, or with 0, the cell counts as a success.
"""

from __future__ import annotations

import sys
from typing import Any

import IPython.core.interactiveshell as interactiveshell

_stock_warn = interactiveshell.warn


def install(shell: Any) -> None:
    """Teaches the shell. May be called again."""
    if getattr(shell.showtraceback, "__name__", "") == "showtraceback_or_exit":
        return
    stock = shell.showtraceback

    def showtraceback_or_exit(exc_tuple: Any = None, *args: Any, **kwargs: Any) -> None:
        error = exc_tuple[1] if exc_tuple else sys.exc_info()[1]
        if isinstance(error, SystemExit):
            show_exit(shell, error)
        else:
            stock(exc_tuple, *args, **kwargs)

    shell.showtraceback = showtraceback_or_exit
    shell.ask_exit = lambda: raise_exit(shell)
    shell.events.register("post_run_cell", forgive_success)
    interactiveshell.warn = warn_without_exit_advice


def raise_exit(shell: Any) -> None:
    """What `exit` and `quit` do. ipykernel passes their argument by this attribute."""
    code = getattr(shell, "keepkernel_on_exit", None)
    raise SystemExit(0 if code in (None, False) else code)


def show_exit(shell: Any, error: SystemExit) -> None:
    """Shows the exit as a note, or as the error of the cell."""
    if exit_code(error) == 0:
        sys.stdout.flush()
        sys.stderr.write("script called exit(0)\n")
        return
    text = f"script called exit({error.code})"
    if not isinstance(error.code, int):
        text = f"{error.code}\nscript called exit(1)"
    shell._showtraceback(SystemExit, error, [text])


def exit_code(error: SystemExit) -> int:
    """The exit code that Python would end with."""
    if error.code is None:
        return 0
    return error.code & 0xFF if isinstance(error.code, int) else 1


def forgive_success(result: Any = None) -> None:
    """Takes a successful exit out of the cell's errors."""
    error = getattr(result, "error_in_exec", None)
    if isinstance(error, SystemExit) and exit_code(error) == 0:
        result.error_in_exec = None


def warn_without_exit_advice(message: Any, *args: Any, **kwargs: Any) -> None:
    """`warnings.warn` for IPython, without its advice on how to leave it."""
    if not str(message).startswith("To exit: use"):
        kwargs["stacklevel"] = kwargs.get("stacklevel", 1) + 1
        _stock_warn(message, *args, **kwargs)
