"""What goes wrong with the commands of a cell. Each is shown as one line, without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess

from rlm.processes import signal_name


class ShellError(subprocess.CalledProcessError):
    """A command that failed. Shown as `exit code 3`.

    `returncode` is the exit code, or minus the signal that killed it; `cmd` the program's name.
    """

    def __init__(self, returncode: int, cmd: str, message: str | None = None) -> None:
        super().__init__(returncode, cmd)
        self.message = message or exit_text(returncode)

    def __str__(self) -> str:
        return self.message

    def _render_traceback_(self) -> list[str]:
        return [self.message]


class ShellInterrupted(KeyboardInterrupt):
    """A command that was ended because the cell was interrupted."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


class FolderError(OSError):
    """A working directory that can't be entered."""

    def _render_traceback_(self) -> list[str]:
        return [str(self)]


def start_error(program: str, error: OSError) -> ShellError:
    """Says why a program could not be started."""
    if isinstance(error, FileNotFoundError):
        where = "" if os.sep in program else " on PATH"
        return ShellError(127, program, f"{program}: no such program{where}")
    return ShellError(126, program, f"{program}: can't be run: {error.strerror}")


def exit_text(returncode: int) -> str:
    """`exit code 3`, `exit code 139 (SIGSEGV)`, `killed by signal 9 (SIGKILL, …)`."""
    if returncode < 0:
        return f"killed by signal {-returncode} ({_named(-returncode)})"
    if returncode - 128 in signal.valid_signals():
        return f"exit code {returncode} ({_named(returncode - 128)})"
    return f"exit code {returncode}"


def _named(number: int) -> str:
    name = signal_name(number)
    return f"{name}, perhaps out of memory" if number == signal.SIGKILL else name
