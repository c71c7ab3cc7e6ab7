"""`input()`, `getpass()`, `breakpoint()` and debuggers fail at once: nobody can answer them."""

from __future__ import annotations

import sys
import traceback
from typing import Any, NoReturn

from IPython.core.error import StdinNotImplementedError


class NoInteractiveInput(StdinNotImplementedError):
    """A cell asked for input. Shown as one line with the line of the cell, whatever a debugger adds."""

    def _render_traceback_(self) -> list[str]:
        frames = traceback.walk_tb(self.__traceback__)
        lines = [line for frame, line in frames if frame.f_globals.get("__name__") == "__main__"]
        return [f"line {lines[-1]}: {self}" if lines else str(self)]


def install(shell: Any) -> None:
    """Replaces what ipykernel puts in the place of `input` and `getpass` while a cell runs."""
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        kernel.raw_input = _refusal("input()")
        kernel.getpass = _refusal("getpass()")
    sys.breakpointhook = _refusal("breakpoint()")


def _refusal(what: str) -> Any:
    def refuse(*_args: Any, **_kwargs: Any) -> NoReturn:
        raise NoInteractiveInput(
            f"no interactive input here: {what} can't be answered. Put the value into the code, "
            "a file or an environment variable; to look at state, print it."
        )

    return refuse
