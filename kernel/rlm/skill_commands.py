"""Makes the built-in skills commands of the shell: `edit --path …` in a `%%bash` cell."""

from __future__ import annotations

import os
import sys
from typing import Any

from rlm import displays, scratch

SKILLS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "skills")
COMMANDS = os.path.join(SKILLS, "bin")
# Programs of the same name go before these, which only say how else to do it.
HOST_ONLY = os.path.join(COMMANDS, "host-only")

PYTHON_VARIABLE = "PRIME_AGENT_KERNEL_PYTHON_EXE"


def install(shell: Any, skills: list[dict[str, Any]]) -> None:
    """Puts the commands on PATH if built-in skills are among `skills`. Safe to call again."""
    displays.install(shell, os.path.join(scratch.folder(), "displays"))
    root = os.path.realpath(SKILLS) + os.sep
    is_used = any(os.path.realpath(skill["path"]).startswith(root) for skill in skills)
    others = [
        folder
        for folder in os.environ.get("PATH", os.defpath).split(os.pathsep)
        if folder not in (COMMANDS, HOST_ONLY)
    ]
    os.environ[PYTHON_VARIABLE] = sys.executable
    os.environ["PATH"] = os.pathsep.join([COMMANDS, *others, HOST_ONLY] if is_used else others)
