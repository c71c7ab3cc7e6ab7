"""Gives cells `rlm`, skills and shell cells."""

from __future__ import annotations

import importlib
import importlib.util
from typing import Any

# Each has `install(shell)`, safe to call again.
PARTS = ("rlm.streams", "rlm.shell_magic", "rlm.limits", "rlm.exits")


def install(shell: Any, options: Any) -> dict:
    """Prepares the user's namespace. Safe to call again."""
    for name in PARTS:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name).install(shell)
    return {}
