"""How the bytes of a file and its text belong together: nothing that is not edited may change."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

from .errors import EditError

_ESCAPED = re.compile("[\udc80-\udcff]")


@dataclass(frozen=True)
class Encoding:
    """An encoding, by Python's name, and the byte order mark that the file begins with."""

    name: str
    mark: bytes = b""
    errors: str = "strict"

    @property
    def is_unicode(self) -> bool:
        """Whether every character can be written in it."""
        return self.name.startswith("utf")

    def decode(self, data: bytes, place: str) -> str:
        """The text of a file. EditError when it is not what its byte order mark says, or binary."""
        try:
            text = data[len(self.mark) :].decode(self.name, self.errors)
        except UnicodeDecodeError as error:
            raise EditError(f"{place} begins like {self.name} but isn't: {error}") from None
        if "\0" in text:
            raise EditError(
                f"{place} is a binary file (it has NUL bytes): change it with Path.read_bytes and write_bytes"
            )
        return text

    def encode(self, text: str, place: str) -> bytes:
        """The bytes of a file. EditError when a character can't be written."""
        try:
            return self.mark + text.encode(self.name, self.errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            advice = "" if self.is_unicode else "; write it in ASCII, or convert the file to UTF-8 first"
            raise EditError(
                f"{place} is in {self.name}, which has no {character!a} (U+{ord(character):04X}){advice}"
            ) from None


UTF8 = Encoding("utf-8")

# In this order: the mark of UTF-32 begins with that of UTF-16.
_MARKED = (
    Encoding("utf-8", codecs.BOM_UTF8),
    Encoding("utf-32-le", codecs.BOM_UTF32_LE),
    Encoding("utf-32-be", codecs.BOM_UTF32_BE),
    Encoding("utf-16-le", codecs.BOM_UTF16_LE),
    Encoding("utf-16-be", codecs.BOM_UTF16_BE),
)


def detect(data: bytes) -> Encoding:
    """The encoding of a file, such that decoding and encoding it gives the same bytes."""
    for marked in _MARKED:
        if data.startswith(marked.mark):
            return marked
    try:
        data.decode()
        return UTF8
    except UnicodeDecodeError:
        return _detect_legacy(data)


def _detect_legacy(data: bytes) -> Encoding:
    """For bytes that are not UTF-8: UTF-8 with a few broken bytes, or one byte a character."""
    text = data.decode("utf-8", "surrogateescape")
    broken = len(_ESCAPED.findall(text))
    valid = sum(character > "\x7f" for character in text) - broken
    if valid >= broken:
        return Encoding("utf-8", errors="surrogateescape")
    try:
        data.decode("cp1252")
        return Encoding("cp1252")
    except UnicodeDecodeError:
        return Encoding("latin-1")
