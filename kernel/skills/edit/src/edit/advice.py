"""What to say when a text is not where it was expected: the nearest one, and how it differs."""

from __future__ import annotations

import difflib
import heapq
import math
import re
import unicodedata
from collections import Counter, defaultdict

from . import matching

MAX_LISTED = 20
MAX_DIFF_LINES = 14
MAX_LINE_CHARS = 160

# Beyond this the search for something similar would take seconds.
MAX_SEARCHED_CHARS = 4_000_000
MAX_COMPARED_CHARS = 4_000
CANDIDATES = 5

# A shorter new_str is likely to be there by chance.
MIN_TELLING_CHARS = 8

# Of the characters of old_str that the nearest text must have, in order.
MIN_LIKENESS = 0.6

_WORD = re.compile(r"\w+")


def repeated(lines: list[int]) -> str:
    """For a text that begins on each of these lines."""
    listed = ", ".join(map(str, lines[:MAX_LISTED]))
    if len(lines) > MAX_LISTED:
        listed += ", …"
    count = f"{len(lines)} or more" if len(lines) >= matching.MAX_SPANS else str(len(lines))
    return (
        f"old_str occurs {count} times, on lines {listed}: take in more of the text around the place that"
        " you mean, or replace all with Python"
    )


def absent(text: str, old_str: str, new_str: str) -> str:
    """For a text that does not occur."""
    if text == "":
        return "old_str does not occur: the file is empty"
    done = matching.find(text, new_str) if len(new_str.strip()) >= MIN_TELLING_CHARS else []
    hint = ""
    if done:
        hint = f"\nnew_str is on line {matching.line_at(text, done[0][0])}: has this been done already?"
    return f"old_str does not occur{_nearest_text(text, old_str)}{hint}"


def _nearest_text(text: str, old_str: str) -> str:
    if len(text) > MAX_SEARCHED_CHARS:
        return ""
    lines = matching.BREAK.split(text)
    wanted = matching.BREAK.split(old_str)
    found = _nearest(lines, wanted)
    return ", nor anything like it" if found is None else "\n" + _difference(lines, wanted, found)


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """The index of the line where the text most like `wanted` begins."""
    best, best_likeness = None, MIN_LIKENESS
    for start in _candidates(lines, wanted):
        likeness = _likeness("\n".join(lines[start : start + len(wanted)]), "\n".join(wanted))
        if likeness > best_likeness:
            best, best_likeness = start, likeness
    return best


def _candidates(lines: list[str], wanted: list[str]) -> list[int]:
    """Lines where `wanted` might begin: the words that both have vote for it, rare ones with more weight."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(wanted):
        for word in _WORD.findall(line):
            places.setdefault(word, []).append(index)
    frequency: Counter[str] = Counter()
    hits: list[tuple[int, set[str]]] = []
    for index, line in enumerate(lines):
        words = {word for word in _WORD.findall(line) if word in places}
        if words:
            hits.append((index, words))
            frequency.update(words)
    votes: defaultdict[int, float] = defaultdict(float)
    for index, words in hits:
        for word in words:
            weight = 1 / math.sqrt(frequency[word] * len(places[word]))
            for offset in places[word]:
                votes[max(index - offset, 0)] += weight
    return heapq.nlargest(CANDIDATES, votes, key=votes.__getitem__)


def _likeness(found: str, wanted: str) -> float:
    """How much of `wanted` is in `found` in the same order, from 0 to 1; all whitespace counts the same."""
    found, wanted = (" ".join(text.split())[:MAX_COMPARED_CHARS] for text in (found, wanted))
    blocks = difflib.SequenceMatcher(None, found, wanted, autojunk=False).get_matching_blocks()
    return sum(block.size for block in blocks) / len(wanted)


def _difference(lines: list[str], wanted: list[str], start: int) -> str:
    found = lines[start : start + len(wanted)]
    is_invisible = _visible(found) == _visible(wanted)
    show = ascii if is_invisible else _shortened
    diff = list(difflib.unified_diff(wanted, found, n=1, lineterm=""))[2:]
    shown = [line[0] + show(line[1:]) for line in diff if not line.startswith("@@")]
    if len(shown) > MAX_DIFF_LINES:
        shown[MAX_DIFF_LINES:] = [f"… {len(shown) - MAX_DIFF_LINES} more lines"]
    what = "differs only in whitespace or look-alike characters" if is_invisible else "is similar"
    return "\n".join([f"line {start + 1} {what} (- old_str, + file):", *shown])


def _visible(lines: list[str]) -> list[str]:
    """The lines without what can't be told from how they look."""
    return [
        "".join(c for c in unicodedata.normalize("NFKC", line) if c.isprintable() and not c.isspace())
        for line in lines
    ]


def _shortened(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARS else line[:MAX_LINE_CHARS] + "…"
