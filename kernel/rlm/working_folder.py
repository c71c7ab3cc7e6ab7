"""The working directory: what happens when it vanishes, and a `%cd` that can fail."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stdout
from typing import Any

from rlm.shell_errors import FolderError

_last = ""


def install(shell: Any) -> None:
    """Checks the working directory before each cell, and makes a failing `%cd` an error."""
    ensure()
    shell.events.register("pre_run_cell", _before_cell)
    current = shell.find_line_magic("cd")
    if getattr(current, "__name__", "") != "checked_cd":
        shell.register_magic_function(_checked(current), "line", "cd")


def ensure() -> None:
    """Makes sure that there is a working directory.

    When it has been removed, goes to the same path if that is there again, else to the nearest folder
    above it, and says so on stderr.
    """
    global _last
    try:
        _last = os.getcwd()
    except OSError:
        gone, _last = _vanished(), _nearest_folder(_vanished())
        os.chdir(_last)
        back = "it was made anew, and entered again" if _last == gone else f"now in {_last}"
        sys.stderr.write(f"note: the working directory {gone} no longer exists; {back}\n")
        sys.stderr.flush()


def _before_cell(_info: Any = None) -> None:
    ensure()


def _vanished() -> str:
    """The path that the working directory had."""
    try:
        return os.readlink("/proc/self/cwd").removesuffix(" (deleted)")
    except OSError:
        return _last


def _nearest_folder(path: str) -> str:
    while path not in ("", os.sep):
        if os.path.isdir(path) and os.access(path, os.X_OK):
            return path
        path = os.path.dirname(path)
    return os.sep


def _checked(stock: Any) -> Any:
    """IPython's `%cd`, which prints a failure and goes on, as one that raises it."""

    def checked_cd(line: str = "") -> None:
        ensure()
        printed = io.StringIO()
        with redirect_stdout(printed):
            stock(line)
        text = printed.getvalue()
        # It prints the new path, or the OSError and the old path.
        if text.startswith("[Errno"):
            raise FolderError(f"%cd: {text.splitlines()[0]}")
        ensure()
        sys.stdout.write(text)

    checked_cd.__doc__ = stock.__doc__
    return checked_cd
