"""Displays of the private types: how a skill hands the host an edit, an image or a receipt.

In the kernel they go out as `display_data`. A command that a cell runs, and a process that it forked,
leave them as files in a folder; the kernel shows those when the cell is over.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from typing import Any, Optional

from rlm.contract import CONTRACT

FOLDER_VARIABLE = "PRIME_AGENT_KERNEL_DISPLAYS"

_owner: Optional[int] = None


def install(shell: Any, folder: str) -> None:
    """Names the folder to commands, and shows after each cell what they left there. Safe to call again."""
    global _owner
    _owner = os.getpid()
    os.environ[FOLDER_VARIABLE] = folder
    shell.events.register("post_run_cell", _show_left)


def publish(kind: str, value: dict[str, Any]) -> None:
    """Shows `value` to the host; `kind` is a key of `mime` in contract.json. Nobody sees it without a kernel."""
    data = {CONTRACT["mime"][kind]: value}
    shell = _shell()
    folder = os.environ.get(FOLDER_VARIABLE)
    if shell is not None:
        shell.display_pub.publish(data=data, metadata={})
    elif folder:
        _leave(folder, data)


def _shell() -> Any:
    """The shell of this process, unless a kernel's process forked this one."""
    ipython = sys.modules.get("IPython")
    if ipython is None or _owner not in (None, os.getpid()):
        return None
    return ipython.get_ipython()


def _leave(folder: str, data: dict[str, Any]) -> None:
    os.makedirs(folder, mode=0o700, exist_ok=True)
    descriptor, path = tempfile.mkstemp(dir=folder, prefix=f"{time.time_ns():020}-", suffix=".part")
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(data, file)
    os.rename(path, path.replace(".part", ".json"))


def _show_left(_result: Any = None) -> None:
    folder = os.environ.get(FOLDER_VARIABLE, "")
    shell = _shell()
    if shell is None or not os.path.isdir(folder):
        return
    for name in sorted(os.listdir(folder)):
        if name.endswith(".json"):
            path = os.path.join(folder, name)
            with open(path, encoding="utf-8") as file:
                data = json.load(file)
            os.unlink(path)
            shell.display_pub.publish(data=data, metadata={})
