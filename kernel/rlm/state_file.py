"""The file `kernel-state.dill`: one frame a variable, so that damage is seen and costs little.

    b"prime-agent state 1\n"
    frames: name length u16, flags u8, blob length u64, digest of the rest (16 bytes), name, blob
    end: a frame without name whose blob is JSON: {"python", "dill", "count"}

Big-endian. A file that was cut off lacks its end. Nothing is unpickled here.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

MAGIC = b"prime-agent state 1\n"
HEAD = struct.Struct(">HBQ16s")
DIGEST_BYTES = 16
HAS_CODE = 1


class DamagedState(Exception):
    """The file is not what was written; the message says from where on."""


@dataclass(frozen=True)
class Frame:
    """One variable. `has_code`: the blob holds compiled code, which only fits the same Python."""

    name: str
    blob: bytes
    has_code: bool = False

    @property
    def flags(self) -> int:
        return HAS_CODE if self.has_code else 0

    @property
    def digest(self) -> bytes:
        return _digest(self.flags, self.name.encode(), self.blob)


@dataclass(frozen=True)
class End:
    """The end of a complete file."""

    python: str
    dill: str | None
    count: int


def write_magic(descriptor: int) -> None:
    """Begins a file."""
    write_all(descriptor, MAGIC)


def write_frame(descriptor: int, frame: Frame) -> None:
    """Appends a variable."""
    name = frame.name.encode()
    head = HEAD.pack(len(name), frame.flags, len(frame.blob), frame.digest)
    write_all(descriptor, head + name)
    write_all(descriptor, frame.blob)


def write_end(descriptor: int, end: End) -> None:
    """Ends a file."""
    blob = json.dumps(vars(end)).encode()
    write_all(descriptor, HEAD.pack(0, 0, len(blob), _digest(0, b"", blob)) + blob)


def read(path: str) -> Iterator[Frame | End]:
    """The frames of a file, the last one an End. DamagedState where it is not intact."""
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise DamagedState("it is not a saved kernel state")
        size = os.fstat(file.fileno()).st_size
        while True:
            item = _read_one(file, size)
            yield item
            if isinstance(item, End):
                return


def write_all(descriptor: int, data: bytes) -> None:
    """Writes all of it."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _read_one(file: BinaryIO, size: int) -> Frame | End:
    at = file.tell()
    head = file.read(HEAD.size)
    if len(head) < HEAD.size:
        raise DamagedState(f"it is cut off at byte {at}")
    name_length, flags, blob_length, digest = HEAD.unpack(head)
    if name_length + blob_length > size - file.tell():
        raise DamagedState(f"it is cut off, or damaged, at byte {at}")
    name, blob = file.read(name_length), file.read(blob_length)
    if _digest(flags, name, blob) != digest:
        raise DamagedState(f"it is damaged at byte {at}")
    if name_length == 0:
        meta: dict[str, Any] = json.loads(blob)
        return End(meta["python"], meta["dill"], meta["count"])
    return Frame(name.decode(), blob, bool(flags & HAS_CODE))


def _digest(flags: int, name: bytes, blob: bytes) -> bytes:
    whole = hashlib.blake2b(bytes([flags]) + name + b"\0", digest_size=DIGEST_BYTES)
    whole.update(blob)
    return whole.digest()
