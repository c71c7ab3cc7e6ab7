"""Replaces one exact, unique piece of text in a file."""

from __future__ import annotations

import os
from typing import Union

from rlm import displays
from rlm.confirmation import Confirmation

from . import advice, encoding, matching, storage
from .errors import EditError

__all__ = ["run"]


def run(path: Union[str, os.PathLike[str]], old_str: str, new_str: str) -> Confirmation:
    """Replace `old_str`, which occurs exactly once in the file, by `new_str`.

        await edit("src/app.py", "timeout = 10", "timeout = 30")

    A text that occurs more than once needs more lines around it. Line endings needn't match; the
    file's own, its encoding and its mode are kept. With an empty `old_str` the file is created.
    Returns a line that names the file and the place. Raises EditError when nothing was changed, with
    the nearest text, or the lines of all occurrences.
    """
    for name, value in (("old_str", old_str), ("new_str", new_str)):
        if not isinstance(value, str):
            raise TypeError(f"{name} is a string, not {type(value).__name__}")
    place = storage.resolve(path)
    done, line = _create(place, new_str) if old_str == "" else _replace(place, old_str, new_str)
    displays.publish(
        "diff", {"path": place, "old_str": old_str, "new_str": new_str, "start_line": line}
    )
    return Confirmation(done)


def _create(place: str, new_str: str) -> tuple[str, int]:
    """Makes the file; what was done and the line that it begins at."""
    storage.create(place, encoding.UTF8.encode(new_str, place))
    return f"created {place} ({_count(matching.count_lines(new_str))})", 1


def _replace(place: str, old_str: str, new_str: str) -> tuple[str, int]:
    """Changes the file; what was done and the line that it begins at."""
    if old_str == new_str:
        raise EditError(f"{place}: old_str and new_str are identical, so there is nothing to change")
    before = storage.read(place)
    form = encoding.detect(before)
    text = form.decode(before, place)
    start, end = _unique(place, text, old_str, new_str)
    replacement = matching.fit_breaks(text, start, end, old_str, new_str)
    if text[start:end] == replacement:
        raise EditError(f"{place}: new_str differs from old_str in line endings only; the file keeps its own")
    after = form.encode(text[:start] + replacement + text[end:], place)
    storage.replace(place, after, before)
    line = matching.line_at(text, start)
    done = f"edited {place}, {_lines(line, matching.count_lines(text[start:end]))}"
    return done + ("" if form.is_unicode else f" (written as {form.name})"), line


def _unique(place: str, text: str, old_str: str, new_str: str) -> tuple[int, int]:
    """Where the only occurrence begins and ends."""
    spans = matching.find(text, old_str)
    if len(spans) == 1:
        return spans[0]
    if spans:
        lines = [matching.line_at(text, start) for start, _ in spans]
        raise EditError(f"{place}: {advice.repeated(lines)}")
    raise EditError(f"{place}: {advice.absent(text, old_str, new_str)}")


def _lines(first: int, count: int) -> str:
    return f"line {first}" if count < 2 else f"lines {first}-{first + count - 1}"


def _count(lines: int) -> str:
    return "1 line" if lines == 1 else f"{lines} lines"
