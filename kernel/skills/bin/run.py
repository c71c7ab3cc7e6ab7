"""Runs a built-in skill as a command: `python -I run.py IMPORT_NAME ARGUMENT…`."""

from __future__ import annotations

import os
import runpy
import sys

SKILLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def main() -> None:
    """Runs the `__main__` of the skill's package, with `rlm` to import as in the kernel."""
    name = sys.argv.pop(1)
    source = os.path.join(SKILLS, name.replace("_", "-"), "src")
    sys.path[:0] = [source, os.path.dirname(SKILLS)]
    runpy.run_module(name, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
