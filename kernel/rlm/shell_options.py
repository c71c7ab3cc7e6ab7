"""The words after `%%bash`, `%%script` and their family."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from IPython.core.error import UsageError
from IPython.utils.process import arg_split

USAGE = (
    "options: --timeout SECS, --out VAR, --err VAR, --no-raise-error, --bg, --proc VAR; "
    "all other words go to the program"
)


@dataclass
class ShellOptions:
    """Parsed options; `program` holds all other words."""

    program: list[str] = field(default_factory=list)
    timeout: float | None = None
    out: str | None = None
    err: str | None = None
    proc: str | None = None
    background: bool = False
    raise_error: bool = True


def parse(line: str) -> ShellOptions:
    """Parses the rest of a magic's line. UsageError names what is wrong with an option of ours."""
    options = ShellOptions()
    words = arg_split(line, posix=True)
    while words:
        word, equals, value = words.pop(0).partition("=")
        if word in ("--out", "--err", "--proc", "--timeout"):
            if not equals:
                if not words:
                    raise UsageError(f"{word} needs a value; {USAGE}")
                value = words.pop(0)
            _set(options, word, value)
        elif word == "--bg":
            options.background = True
        elif word == "--no-raise-error":
            options.raise_error = False
        else:
            options.program.append(word + equals + value)
            if word == "--":
                options.program += words
                break
    return options


def _set(options: ShellOptions, word: str, value: str) -> None:
    if word == "--timeout":
        options.timeout = _seconds(value)
    elif value.isidentifier():
        setattr(options, word[2:], value)
    else:
        raise UsageError(f"{word} needs the name of a variable, not {value!r}; {USAGE}")


def _seconds(value: str) -> float:
    try:
        seconds = float(value)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"--timeout needs a number of seconds above 0, not {value!r}")
    return seconds
