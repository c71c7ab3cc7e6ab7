"""Counts the lines of text files by file type."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Optional

__all__ = ["run"]


async def run(folder: str = ".", suffix: Optional[str] = None) -> dict[str, int]:
    """Count lines by the suffix of files in and below `folder`, most first.

        await line_count("src", suffix=".ts")

    `suffix`: count only files that end so. Raises FileNotFoundError when there is no such folder.
    """
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"{folder} is not a folder: pass the one whose files are to be counted")
    totals: Counter[str] = Counter()
    for path in _files(folder):
        if suffix is None or path.suffix == suffix:
            totals[path.suffix or path.name] += _count_lines(path)
    return {name: lines for name, lines in totals.most_common() if lines}


def _files(folder: str) -> list[Path]:
    found: list[Path] = []
    for parent, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [Path(parent, name) for name in names]
    return found


def _count_lines(path: Path) -> int:
    """The lines of a text file; 0 for one that is not UTF-8."""
    try:
        return len(path.read_text(encoding="utf-8").splitlines())
    except UnicodeDecodeError:
        return 0
