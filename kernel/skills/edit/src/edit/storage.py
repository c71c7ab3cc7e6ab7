"""Reads and replaces files: whole or not at all, keeping what is not content."""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
from typing import Union

from . import neighbours
from .errors import EditError

MAX_FILE_BYTES = 32 * 1024 * 1024

# The folder, not the file, is in the way of a rename: no right to write to it, a mounted file.
_ONLY_IN_PLACE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.EXDEV, errno.ENOTSUP)


def resolve(path: Union[str, os.PathLike[str]]) -> str:
    """The absolute path, without symbolic links, of a path that starts at the working directory."""
    given = os.fspath(path)
    if not isinstance(given, str):
        raise TypeError(f"path is a string or a Path, not {type(path).__name__}")
    if not given or "\0" in given:
        raise EditError(f"{given!r} is not a path")
    if given.startswith("~") and not os.path.lexists(given):
        given = os.path.expanduser(given)
    return os.path.realpath(given)


def read(place: str) -> bytes:
    """The content of a text file. EditError when there is none that can be edited."""
    try:
        status = os.stat(place)
        if stat.S_ISDIR(status.st_mode):
            raise EditError(f"{place} is a folder{neighbours.listed(place)}")
        if not stat.S_ISREG(status.st_mode):
            raise EditError(f"{place} is not a regular file")
        if status.st_size > MAX_FILE_BYTES:
            raise EditError(
                f"{place} has {status.st_size} bytes, more than {MAX_FILE_BYTES}: change it with Python or sed"
            )
        with open(place, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        raise EditError(f"there is no file {place}{neighbours.suggested(place)}") from None
    except OSError as error:
        raise EditError(f"{place} can't be read: {error.strerror}") from None


def create(place: str, data: bytes) -> None:
    """Makes a new file, and the folders that it needs. EditError when there is content already."""
    if os.path.isfile(place) and os.path.getsize(place) == 0:
        return replace(place, data, b"")
    try:
        os.makedirs(os.path.dirname(place), exist_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    except FileExistsError:
        raise EditError(
            f"{place} exists: an empty old_str creates a file; give the text that is to be replaced, or"
            " write the whole file with Path.write_text"
        ) from None
    except OSError as error:
        raise EditError(f"{place} can't be created: {error.strerror}") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
    except OSError as error:
        os.unlink(place)
        raise EditError(f"{place} can't be created: {error.strerror}") from None


def replace(place: str, data: bytes, before: bytes) -> None:
    """Gives a file, which has the content `before`, new content."""
    try:
        status = os.stat(place)
        if not os.access(place, os.W_OK):
            mode = stat.filemode(status.st_mode)
            raise EditError(f"{place} is read-only ({mode}): nothing was changed")
        # A rename would leave the other names of a file with the old content.
        if status.st_nlink > 1 or not _rename_over(place, data, status):
            _overwrite(place, data, before)
    except OSError as error:
        raise EditError(f"{place} can't be written: {error.strerror}") from None


def _rename_over(place: str, data: bytes, status: os.stat_result) -> bool:
    """Puts a new file with the same mode and owner in the place; False when only writing into the file will do."""
    try:
        descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(place), prefix=".edit-")
    except OSError as error:
        if error.errno in _ONLY_IN_PLACE:
            return False
        raise
    try:
        with os.fdopen(descriptor, "wb") as file:
            if (os.fstat(descriptor).st_uid, os.fstat(descriptor).st_gid) != (status.st_uid, status.st_gid):
                os.chown(descriptor, status.st_uid, status.st_gid)
            shutil.copystat(place, temporary)
            os.utime(descriptor)
            file.write(data)
        os.replace(temporary, place)
        return True
    except OSError as error:
        os.unlink(temporary)
        if error.errno in _ONLY_IN_PLACE:
            return False
        raise
    except BaseException:
        os.unlink(temporary)
        raise


def _overwrite(place: str, data: bytes, before: bytes) -> None:
    """Writes into the file itself; puts the old content back when that fails."""
    with open(place, "r+b", buffering=0) as file:
        try:
            _write_all(file.fileno(), data)
        except BaseException:
            _write_all(file.fileno(), before)
            raise


def _write_all(descriptor: int, data: bytes) -> None:
    written = 0
    while written < len(data):
        written += os.pwrite(descriptor, data[written:], written)
    os.ftruncate(descriptor, len(data))
