"""`!command` and `x = !command`, without IPython's pseudo-terminal.

What they mean is IPython's: run by `$SHELL -c`, `{name}` and `$name` replaced by Python values,
`_exit_code` set, no exception when the command fails. New is that a failure shows its exit code,
that stdin is empty, and that an interrupt ends the command, all its children and the cell.
"""

from __future__ import annotations

import os
import shutil
from typing import Any

from IPython.utils.text import LSString, SList

from rlm import cell_command
from rlm.cell_command import say, to_stdout
from rlm.foreground import Sink
from rlm.shell_errors import ShellError, exit_text


def install(shell: Any) -> None:
    """Replaces the shell's `system` and `getoutput`."""

    def system(command: str) -> None:
        """Runs a command of the system's shell and shows its output."""
        _run(shell, shell.var_expand(command, depth=1), to_stdout())

    def getoutput(command: str, split: bool = True, depth: int = 0) -> Any:
        """Runs a command of the system's shell: its output as a list of lines, or as one string."""
        chunks: list[str] = []
        _run(shell, shell.var_expand(command, depth=depth + 1), chunks.append)
        text = "".join(chunks)
        return SList(text.splitlines()) if split else LSString(text)

    shell.system = shell.system_piped = shell.system_raw = system
    shell.getoutput = getoutput


def _run(shell: Any, command: str, sink: Sink) -> None:
    program = shutil.which(os.environ.get("SHELL", "sh")) or "sh"
    outcome = cell_command.run([program, "-c", command], [sink])
    code = outcome.returncode
    # IPython's convention: minus the signal, also when a shell reports it as 128 more.
    shell.user_ns["_exit_code"] = code if code <= 128 else 128 - code
    cell_command.show(outcome, command, None)
    if code != 0:
        if getattr(shell, "system_raise_on_error", False):
            raise ShellError(code, command)
        say(exit_text(code))
