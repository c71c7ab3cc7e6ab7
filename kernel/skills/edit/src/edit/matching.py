"""Finds text regardless of line endings, and gives new text the line endings of its place."""

from __future__ import annotations

import re

BREAK = re.compile(r"\r\n|\r|\n")

# A half of \r\n is no line break.
_ANY_BREAK = r"(?:\r\n|\r(?!\n)|(?<!\r)\n)"

# More occurrences are not looked for.
MAX_SPANS = 200


def find(text: str, wanted: str) -> list[tuple[int, int]]:
    """All occurrences of `wanted`, overlapping ones too, as (start, end); at most MAX_SPANS.

    A line break in `wanted` stands for any, unless `wanted` has a `\\r` and occurs exactly as it is.
    """
    if "\r" in wanted:
        spans = _find_exactly(text, wanted)
        if spans:
            return spans
        wanted = BREAK.sub("\n", wanted)
    if "\n" not in wanted or "\r" not in text:
        return _find_exactly(text, wanted)
    pattern = re.compile(_ANY_BREAK.join(map(re.escape, wanted.split("\n"))))
    spans = []
    match = pattern.search(text)
    while match and len(spans) < MAX_SPANS:
        spans.append(match.span())
        match = pattern.search(text, match.start() + 1)
    return spans


def _find_exactly(text: str, wanted: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start = text.find(wanted)
    while start >= 0 and len(spans) < MAX_SPANS:
        spans.append((start, start + len(wanted)))
        start = text.find(wanted, start + 1)
    return spans


def line_at(text: str, index: int) -> int:
    """The number of the line that `index` is in, from 1."""
    return 1 + sum(1 for _ in BREAK.finditer(text, 0, index))


def count_lines(text: str) -> int:
    """How many lines a text has; a line break at its end begins no new one."""
    breaks = sum(1 for _ in BREAK.finditer(text))
    return breaks if text == "" or text[-1] in "\r\n" else breaks + 1


def fit_breaks(text: str, start: int, end: int, old_str: str, new_str: str) -> str:
    """`new_str` with the line endings of the text that it replaces, `text[start:end]`.

    Lines that it has in common with the replaced text keep theirs, also where a file mixes them. A
    caller who writes `\\r` and meets the text exactly wants the line endings as written.
    """
    replaced = text[start:end]
    if replaced == old_str and "\r" in old_str + new_str:
        return new_str
    lines, old_lines = BREAK.split(new_str), BREAK.split(replaced)
    old_breaks = BREAK.findall(replaced)
    if not old_breaks:
        return _break_near(text, start).join(lines)
    head = _common(lines, old_lines)
    tail = _common(lines[::-1], old_lines[::-1])
    result = lines[0]
    for index, line in enumerate(lines[1:]):
        from_end = len(lines) - 1 - index
        if index >= head and from_end <= min(tail, len(old_breaks)):
            result += old_breaks[-from_end] + line
        else:
            result += old_breaks[min(index, len(old_breaks) - 1)] + line
    return result


def _common(lines: list[str], old_lines: list[str]) -> int:
    """How many lines are the same at the beginning of both."""
    count = 0
    for line, old_line in zip(lines, old_lines):
        if line != old_line:
            break
        count += 1
    return count


def _break_near(text: str, index: int) -> str:
    """The ending of the line that `index` is in, or of the one before at the end of a text."""
    following = BREAK.search(text, index)
    if following:
        return following.group()
    before = max(text.rfind("\n", 0, index), text.rfind("\r", 0, index))
    if before < 0:
        return "\n"
    return "\r\n" if text[max(before - 1, 0) : before + 1] == "\r\n" else text[before]
