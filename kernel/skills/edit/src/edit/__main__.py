"""`edit --path FILE --old-str TEXT --new-str TEXT`, for shell cells."""

from __future__ import annotations

import argparse
import sys

from . import run
from .errors import EditError

TEXT_OPTIONS = ("--path", "--old-str", "--new-str")


def main() -> None:
    """Edits and prints what was done; exits with 1 and the reason when nothing was changed."""
    parser = argparse.ArgumentParser(
        prog="edit",
        description="Replaces one exact, unique piece of text in a file. An empty --old-str creates the file.",
        allow_abbrev=False,
    )
    parser.add_argument("--path", required=True, metavar="FILE")
    parser.add_argument("--old-str", required=True, metavar="TEXT", help="occurs exactly once")
    parser.add_argument("--new-str", required=True, metavar="TEXT", help="takes its place")
    options = parser.parse_args(_joined(sys.argv[1:]))
    try:
        print(run(options.path, options.old_str, options.new_str))
    except EditError as error:
        sys.exit(f"edit: {error}")


def _joined(arguments: list[str]) -> list[str]:
    """The arguments with each option and its text as one, since a text may look like an option."""
    pending = iter(arguments)
    return [
        f"{argument}={next(pending, '')}" if argument in TEXT_OPTIONS else argument for argument in pending
    ]


main()
