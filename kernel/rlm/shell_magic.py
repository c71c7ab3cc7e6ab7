"""`%%bash`, `%%sh`, `%%script` and their family: each cell a temporary sub-shell.

What differs from IPython's: the script never goes by stdin, which is /dev/null; stdout and stderr are
one stream in the order in which they were written; the cell is over when the shell exits, whatever
runs on in the background; every outcome shows its exit code; an interrupt ends all of it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from IPython.core.error import UsageError

from rlm import (
    background,
    cell_command,
    interpreters,
    noninteractive,
    processes,
    scratch,
    shell_options,
    working_folder,
)
from rlm.cell_command import say, to_stderr, to_stdout
from rlm.shell_errors import ShellError, exit_text, start_error
from rlm.shell_options import ShellOptions
from rlm.teardown import register_session

PROGRAMS = ("bash", "sh", "perl", "ruby", "python", "python2", "python3", "pypy")

_background: list[subprocess.Popen] = []


def install(shell: Any) -> None:
    """Replaces the shell's script magics. May be called again."""
    scratch.install(shell)
    for program in PROGRAMS:
        shell.register_magic_function(_named_magic(shell, program), "cell", program)

    def script(line: str, cell: str) -> None:
        _run_cell(shell, line, cell)

    script.__doc__ = _documentation("%%script PROGRAM", "the program that follows")
    shell.register_magic_function(script, "cell", "script")
    shell.register_magic_function(end_background_scripts, "line", "killbgscripts")


def end_background_scripts(line: str = "") -> None:
    """Ends the processes that `%%bash --bg` and its family started."""
    for process in list(_background):
        processes.send(processes.tree(process.pid), signal.SIGKILL)
        process.wait()
    say("all background scripts were ended")


def _named_magic(shell: Any, program: str) -> Callable[[str, str], None]:
    def magic(line: str, cell: str) -> None:
        _run_cell(shell, f"{program} {line}", cell)

    magic.__doc__ = _documentation(f"%%{program}", program)
    return magic


def _documentation(head: str, program: str) -> str:
    return f"""Runs the cell with {program}, in a process of its own.

    {head} [--timeout SECS] [--out VAR] [--err VAR] [--no-raise-error] [--bg [--proc VAR]] [ARG...]

    The script goes by a temporary file; stdin is empty. stdout and stderr are shown as one stream in
    true order, unless --out or --err put them into a variable. A non-zero exit code is an error;
    --no-raise-error only shows it. --timeout ends the script and all its children. `%%bash -s A B`
    passes arguments. --bg does not wait: --out and --err are pipes to read from then, --proc the
    Popen object; other output goes to a log file.
    """


def _run_cell(shell: Any, line: str, cell: str) -> None:
    options = shell_options.parse(line)
    if not options.program:
        raise UsageError(f"%%script needs a program; {shell_options.USAGE}")
    text = cell.replace("\r\n", "\n")
    text += "" if text.endswith("\n") else "\n"
    path = scratch.new_file("cell-", text.encode("utf-8", "replace"))
    argv = interpreters.command(options.program, path, text)
    if options.background:
        _run_in_background(shell, options, argv, path)
        return
    try:
        _run_in_foreground(shell, options, argv)
    finally:
        _remove(path)


def _run_in_foreground(shell: Any, options: ShellOptions, argv: list[str]) -> None:
    captured: dict[str, list[str]] = {name: [] for name in (options.out, options.err) if name}
    sinks = [captured[options.out].append if options.out else to_stdout()]
    if captured:
        sinks.append(captured[options.err].append if options.err else to_stderr())
    try:
        outcome = cell_command.run(argv, sinks, options.timeout)
    finally:
        for name, chunks in captured.items():
            shell.user_ns[name] = "".join(chunks)
    program = os.path.basename(argv[0])
    cell_command.show(outcome, program, options.timeout)
    if outcome.returncode == 0:
        say("exit 0" if outcome.output else "exit 0, no output")
    elif options.raise_error:
        raise ShellError(outcome.returncode, program)
    else:
        say(exit_text(outcome.returncode))


def _run_in_background(shell: Any, options: ShellOptions, argv: list[str], path: str) -> None:
    working_folder.ensure()
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            env=noninteractive.child_environment(),
        )
    except OSError as error:
        _remove(path)
        raise start_error(argv[0], error) from None
    register_session(process.pid)
    _background.append(process)
    threading.Thread(target=_forget, args=(process, path), name="wait", daemon=True).start()
    logs = []
    for name, pipe in ((options.out, process.stdout), (options.err, process.stderr)):
        if name:
            shell.user_ns[name] = pipe
        elif pipe is not None:
            logs.append(background.drain(os.dup(pipe.fileno()), f"background-{process.pid}"))
            pipe.close()
    if options.proc:
        shell.user_ns[options.proc] = process
    to_logs = f"; its output goes to {' and '.join(logs)}" if logs else ""
    say(f"started in the background: pid {process.pid}{to_logs}")


def _forget(process: subprocess.Popen, path: str) -> None:
    """Waits for a background script to end, so that it leaves no zombie and no file."""
    process.wait()
    _remove(path)
    if process in _background:
        _background.remove(process)


def _remove(path: str) -> None:
    """Removes a script, which its own commands may have removed already."""
    with suppress(FileNotFoundError):
        os.unlink(path)
