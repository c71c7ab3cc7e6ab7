"""Reads an image file and makes it fit to be attached."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Union

from rlm.contract import CONTRACT

from . import formats, scaling
from .errors import ImageError
from .formats import Picture

MAX_PIXELS = 36_000_000
MAX_FILE_BYTES = 100_000_000
MAX_BYTES: int = CONTRACT["limits"]["attachment_base64_chars"] // 4 * 3


@dataclass(frozen=True)
class Image:
    """An image that can be attached; `notes` say how it differs from the file."""

    place: str
    picture: Picture
    notes: list[str]

    @property
    def summary(self) -> str:
        """A line about it."""
        picture = self.picture
        kind = picture.mime_type.partition("/")[2].upper()
        facts = [f"{kind}, {picture.width}×{picture.height}", *self.notes]
        return f"{self.place} ({'; '.join(facts)})"


def load(path: Union[str, os.PathLike[str]]) -> Image:
    """The image of a file. ImageError when there is none that can be attached."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path is a string or a Path, not {type(path).__name__}: attach_image(*paths)")
    place = os.path.realpath(os.path.expanduser(os.fspath(path)))
    try:
        picture = formats.inspect(_read(place))
        _check_pixels(picture)
        return _fit(place, picture)
    except ImageError as error:
        raise ImageError(f"{place} {error}; nothing was attached") from None


def _read(place: str) -> bytes:
    try:
        size = os.path.getsize(place)
        if not os.path.isfile(place):
            raise ImageError("is not a file")
        if size > MAX_FILE_BYTES:
            raise ImageError(f"has {size} bytes, more than {MAX_FILE_BYTES}")
        with open(place, "rb") as file:
            return file.read()
    except FileNotFoundError:
        raise ImageError("does not exist") from None
    except OSError as error:
        raise ImageError(f"can't be read: {error.strerror}") from None


def _check_pixels(picture: Picture) -> None:
    pixels = picture.width * picture.height
    if pixels > MAX_PIXELS:
        raise ImageError(
            f"has {picture.width}×{picture.height} pixels, more than {MAX_PIXELS // 1_000_000} million:"
            " scale it down or crop it first"
        )


def _fit(place: str, picture: Picture) -> Image:
    notes: list[str] = []
    if picture.frames > 1:
        notes.append(f"the first of {picture.frames} frames")
        picture = formats.first_frame(picture)
    if len(picture.data) > MAX_BYTES:
        picture, changes = scaling.shrink(picture, MAX_BYTES)
        notes += changes
    return Image(place, picture, notes)
