"""A command that a cell runs: how it is started and how its end is told."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rlm import foreground, noninteractive, processes, working_folder
from rlm.foreground import Outcome, Sink
from rlm.pacing import paced
from rlm.shell_errors import ShellError, ShellInterrupted
from rlm.teardown import register_session


def run(argv: Sequence[str], sinks: Sequence[Sink], timeout: float | None = None) -> Outcome:
    """Runs a program for the current cell. ShellError when it can't be started."""
    working_folder.ensure()
    environment = noninteractive.child_environment()
    return foreground.run(argv, sinks, environment, timeout, register_session)


def show(outcome: Outcome, program: str, timeout: float | None) -> None:
    """Tells how a command ended. Raises when it was interrupted or timed out."""
    sys.stdout.flush()
    if outcome.ended == "interrupted":
        raise ShellInterrupted(f"interrupted: {program} and all its processes were ended")
    if outcome.ended == "timed out":
        message = f"timed out after {timeout:g} s: {program} and all its processes were ended"
        raise ShellError(outcome.returncode, program, message)
    if outcome.background:
        say(_background_note(outcome))


def say(text: str) -> None:
    """Writes a line of ours, which is not output of the command, to the cell's stderr."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def to_stdout() -> Sink:
    """A sink that writes to whatever `sys.stdout` is at the time."""
    return paced(lambda: sys.stdout)


def to_stderr() -> Sink:
    """A sink that writes to whatever `sys.stderr` is at the time."""
    return paced(lambda: sys.stderr)


def _background_note(outcome: Outcome) -> str:
    count = len(outcome.background)
    note = "1 background process is" if count == 1 else f"{count} background processes are"
    note = f"note: {note} still running ({processes.describe(outcome.background)})"
    if outcome.logs:
        note += f"; further output goes to {' and '.join(outcome.logs)}"
    return note
