"""How each kind of program is given a script, which is never by its stdin.

A command of the script that reads stdin (`ssh`, `ffmpeg`, `cat`) would eat the lines after it. Like a
`#!` line, the program gets the path of a file as its last argument, with these exceptions: shells keep
`-s ARG…`, Python keeps the working directory on `sys.path`, and Node's relatives resolve packages from
the working directory.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

SHELLS = frozenset({"bash", "sh", "dash", "ash", "ksh", "mksh", "zsh"})
# These take the text itself; from a file in another folder they would not find the project's packages.
TEXT_OPTION = {"node": "-e", "nodejs": "-e", "bun": "-e"}
PYTHON = re.compile(r"(python|pypy)[0-9.]*")

# Runs a file as `__main__` with the working directory first on `sys.path`, as for a script on stdin.
RUN_PYTHON_FILE = (
    "import sys; sys.argv = sys.argv[1:]; exec(compile(open(sys.argv[0], 'rb').read(), sys.argv[0], 'exec'))"
)

# Options of shells whose next argument is their value.
SHELL_OPTIONS_WITH_VALUE = frozenset({"-o", "+o", "-O", "+O", "--rcfile", "--init-file"})


def command(program: Sequence[str], path: str, text: str) -> list[str]:
    """The arguments that make `program` run the script `text`, which is also in the file `path`."""
    name = os.path.basename(program[0])
    if name in SHELLS:
        return _shell_command(program, path)
    if PYTHON.fullmatch(name):
        return [*program, "-c", RUN_PYTHON_FILE, path]
    if name in TEXT_OPTION:
        return [*program, TEXT_OPTION[name], text]
    return [*program, path]


def _shell_command(program: Sequence[str], path: str) -> list[str]:
    """`bash -e -s a b` becomes `bash -e PATH a b`: `-s` means that the script comes on stdin."""
    options, rest = list(program[:1]), list(program[1:])
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        if re.fullmatch(r"-[A-Za-z]*s[A-Za-z]*", word):
            word = word.replace("s", "")
        if word != "-":
            options.append(word)
        if word in SHELL_OPTIONS_WITH_VALUE and rest:
            options.append(rest.pop(0))
    if rest[:1] in (["-"], ["--"]):
        rest.pop(0)
    return [*options, path, *rest]
