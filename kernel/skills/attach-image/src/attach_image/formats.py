"""Tells image formats apart by their bytes, and checks that a file is whole."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from .errors import ImageError

PNG_HEAD = b"\x89PNG\r\n\x1a\n"
JPEG_HEAD = b"\xff\xd8\xff"
JPEG_END = b"\xff\xd9"

# Markers of a JPEG frame, which holds the size.
JPEG_FRAMES = set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
JPEG_BARE = {0x01, *range(0xD0, 0xD8)}
JPEG_SCAN = 0xDA


@dataclass(frozen=True)
class Picture:
    """An image as a file has it."""

    mime_type: str
    width: int
    height: int
    data: bytes
    frames: int = 1


def inspect(data: bytes) -> Picture:
    """Reads what the head of an image file says. ImageError when it is none, or damaged."""
    try:
        picture = _inspect(data)
    except (struct.error, IndexError):
        raise ImageError("is cut off: the file ends too early") from None
    if picture.width < 1 or picture.height < 1:
        raise ImageError("has no pixels")
    return picture


def first_frame(picture: Picture) -> Picture:
    """The first frame of an animation, as a still image where the format needs that."""
    if picture.mime_type == "image/gif":
        _, end = _scan_gif(picture.data)
        return replace(picture, data=picture.data[:end] + b";", frames=1)
    if picture.mime_type == "image/webp":
        return _webp_frame(picture)
    return replace(picture, frames=1)  # A PNG's first frame is what every decoder shows.


def _inspect(data: bytes) -> Picture:
    if data.startswith(PNG_HEAD):
        return _inspect_png(data)
    if data.startswith(JPEG_HEAD):
        return _inspect_jpeg(data)
    if data[:6] in (b"GIF87a", b"GIF89a"):
        width, height = struct.unpack_from("<HH", data, 6)
        frames, _ = _scan_gif(data)
        return Picture("image/gif", width, height, data, frames)
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return _inspect_webp(data)
    if not data:
        raise ImageError("is empty")
    raise ImageError(f"is not a PNG, JPEG, GIF or WebP image (it begins with {data[:8]!r})")


def _inspect_png(data: bytes) -> Picture:
    width = height = 0
    frames, position, kind = 1, len(PNG_HEAD), b""
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, position)
        body = position + 8
        (checksum,) = struct.unpack_from(">I", data, body + length)
        if zlib.crc32(data[position + 4 : body + length]) != checksum:
            raise ImageError(f"is damaged: a checksum is wrong at byte {position}")
        if kind == b"IHDR":
            width, height = struct.unpack_from(">II", data, body)
        elif kind == b"acTL":
            (frames,) = struct.unpack_from(">I", data, body)
        position = body + length + 4
    return Picture("image/png", width, height, data, frames)


def _inspect_jpeg(data: bytes) -> Picture:
    position, size = 2, (0, 0)
    while True:
        if data[position] != 0xFF:
            raise ImageError(f"is damaged: there is no JPEG marker at byte {position}")
        marker = data[position + 1]
        if marker == 0xFF or marker in JPEG_BARE:
            position += 1 if marker == 0xFF else 2
            continue
        if marker == JPEG_SCAN:
            break
        (length,) = struct.unpack_from(">H", data, position + 2)
        if marker in JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, position + 5)
            size = (width, height)
        position += 2 + length
    if data.find(JPEG_END, position) < 0:
        raise ImageError("is cut off: the file ends too early")
    return Picture("image/jpeg", *size, data)


def _scan_gif(data: bytes) -> tuple[int, int]:
    """How many whole frames there are, and where the first ends."""
    position = 13 + _gif_table_bytes(data[10])
    frames = first_end = 0
    while position < len(data) and data[position] in b"!,":
        if data[position] == ord("!"):
            position += 2
        else:
            position += 11 + _gif_table_bytes(data[position + 9])
            frames += 1
        while data[position]:
            position += 1 + data[position]
        position += 1
        first_end = first_end or (position if frames else 0)
    if not frames:
        raise ImageError("is damaged: it has no frame")
    return frames, first_end


def _gif_table_bytes(flags: int) -> int:
    """The size of a colour table, from the byte that announces it."""
    return 3 << ((flags & 7) + 1) if flags & 0x80 else 0


def _inspect_webp(data: bytes) -> Picture:
    if struct.unpack_from("<I", data, 4)[0] + 8 > len(data):
        raise ImageError("is cut off: the file ends too early")
    chunks = list(_webp_chunks(data[12:]))
    frames = sum(kind == b"ANMF" for kind, _ in chunks)
    width, height = _webp_size(*chunks[0])
    return Picture("image/webp", width, height, data, max(frames, 1))


def _webp_chunks(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while position + 8 <= len(data):
        kind, length = struct.unpack_from("<4sI", data, position)
        yield kind, data[position + 8 : position + 8 + length]
        position += 8 + length + length % 2


def _webp_size(kind: bytes, body: bytes) -> tuple[int, int]:
    if kind == b"VP8X":
        return int.from_bytes(body[4:7], "little") + 1, int.from_bytes(body[7:10], "little") + 1
    if kind == b"VP8L":
        bits = struct.unpack_from("<I", body, 1)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", body, 6)
        return width & 0x3FFF, height & 0x3FFF
    raise ImageError(f"is damaged: a WebP image can't begin with {kind!r}")


def _webp_frame(picture: Picture) -> Picture:
    """The first frame of an animated WebP, which may be smaller than the whole."""
    frame = next(body for kind, body in _webp_chunks(picture.data[12:]) if kind == b"ANMF")
    size = frame[6:12]
    width, height = (int.from_bytes(edge, "little") + 1 for edge in (size[:3], size[3:]))
    chunks = [(k, b) for k, b in _webp_chunks(frame[16:]) if k in (b"ALPH", b"VP8 ", b"VP8L")]
    if chunks and chunks[0][0] == b"ALPH":
        chunks.insert(0, (b"VP8X", b"\x10\0\0\0" + size))
    body = b"WEBP" + b"".join(_webp_chunk(*chunk) for chunk in chunks)
    return Picture("image/webp", width, height, b"RIFF" + struct.pack("<I", len(body)) + body)


def _webp_chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)
