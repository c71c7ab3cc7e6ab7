"""The kernel's scratch folder: the scripts of shell cells and the logs of background processes.

Made when it is first needed, readable by this user alone, removed when the kernel ends.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from typing import Any

_folder: str | None = None
_parent: str | None = None


def install(shell: Any) -> None:
    """Puts the folder into the kernel's own, which the host removes however the kernel ends."""
    global _parent
    if getattr(shell, "kernel", None) is not None and shell.profile_dir is not None:
        parent = os.path.dirname(shell.profile_dir.location)
        _parent = parent if os.access(parent, os.W_OK) else None


def folder() -> str:
    """The folder's path. Made again when somebody has cleaned it away."""
    global _folder
    if _folder is None or not os.path.isdir(_folder):
        if _parent is not None:
            os.makedirs(_parent, 0o700, exist_ok=True)
        _folder = tempfile.mkdtemp(prefix="prime-agent-", dir=_parent)
        atexit.register(_remove, _folder, os.getpid())
    return _folder


def new_file(prefix: str, content: bytes = b"") -> str:
    """Writes a new file (mode 0600) and returns its path."""
    descriptor, path = tempfile.mkstemp(prefix=prefix, dir=folder())
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    return path


def _remove(path: str, owner: int) -> None:
    """Removes the folder, unless a forked child got here."""
    if os.getpid() == owner:
        shutil.rmtree(path, ignore_errors=True)
