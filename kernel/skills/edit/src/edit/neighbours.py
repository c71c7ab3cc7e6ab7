"""Names of files near a path that is none."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator

MAX_NAMES = 5
MAX_WALKED = 5_000
_SKIPPED = {"node_modules", "__pycache__", "venv", "target", "dist"}


def suggested(place: str) -> str:
    """The rest of a sentence that says that there is no such file."""
    same_name = list(_files_named(os.path.basename(place)))
    if same_name:
        return f"; did you mean {' or '.join(same_name)}?"
    folder = os.path.dirname(place)
    if not os.path.isdir(folder):
        while not os.path.isdir(folder):
            folder, missing = os.path.split(folder)
        return f": {folder} has no folder {missing!r}{listed(folder, missing)}"
    advice = listed(folder, os.path.basename(place))
    return advice or ". To create it, pass an empty old_str"


def listed(folder: str, like: str | None = None) -> str:
    """What a folder holds, or the names in it that are most `like` another."""
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return f" ({folder} can't be listed: {error.strerror})"
    if like is None:
        shown, lead = names[:MAX_NAMES], "; in it"
    else:
        lower = {name.lower(): name for name in names}
        close = difflib.get_close_matches(like.lower(), list(lower), n=MAX_NAMES, cutoff=0.5)
        shown, lead = [lower[name] for name in close], "; in its folder, similar"
    if not shown:
        return ""
    more = ", …" if like is None and len(names) > len(shown) else ""
    return f"{lead}: {', '.join(shown)}{more}"


def _files_named(name: str) -> Iterator[str]:
    """Files of this name below the working directory, by their relative paths."""
    walked = found = 0
    for folder, folders, files in os.walk("."):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED)
        walked += len(files) + 1
        if name in files:
            yield os.path.normpath(os.path.join(folder, name))
            found += 1
        if walked > MAX_WALKED or found == MAX_NAMES:
            return
