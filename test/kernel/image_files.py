"""Small image files, octet by octet."""

from __future__ import annotations

import struct
import zlib


def png(width: int = 3, height: int = 2, frames: int = 1) -> bytes:
    """A whole PNG whose pixels are not there for sizes that nobody decodes."""
    head = _png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    animation = _png_chunk(b"acTL", struct.pack(">II", frames, 0)) if frames > 1 else b""
    rows = (b"\0" + b"\x80" * 3 * width) * height if width * height < 10_000 else b""
    data = _png_chunk(b"IDAT", zlib.compress(rows))
    return b"\x89PNG\r\n\x1a\n" + head + animation + data + _png_chunk(b"IEND", b"")


def _png_chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def jpeg(width: int = 3, height: int = 2) -> bytes:
    """The structure of a JPEG: comment, fill byte, frame, Huffman table, and a scan without content."""
    frame = struct.pack(">HBHHB3B", 11, 8, height, width, 1, 1, 0x11, 0)
    table = b"\xff\xc4" + struct.pack(">H", 19) + b"\x01" * 17
    scan = struct.pack(">HB2B3B", 8, 1, 1, 0, 0, 63, 0)
    return b"\xff\xd8\xff\xfe\0\x04hi\xff\xff\xc2" + frame + table + b"\xff\xda" + scan + b"\x12\x34\xff\xd9"


def gif(width: int = 3, height: int = 2, frames: int = 1) -> bytes:
    """A GIF of white frames with a global colour table and a control block before each frame."""
    control = b"!\xf9\x04\0\x0a\0\0\0"
    frame = control + b"," + struct.pack("<HHHHB", 0, 0, width, height, 0) + b"\x02\x02\x4c\x01\0"
    head = b"GIF89a" + struct.pack("<HHBBB", width, height, 0x80, 0, 0) + b"\xff\xff\xff\0\0\0"
    return head + frame * frames + b";"


def webp(*chunks: tuple[bytes, bytes]) -> bytes:
    """A WebP file of these chunks."""
    body = b"WEBP" + b"".join(_webp_chunk(*chunk) for chunk in chunks)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _webp_chunk(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("<I", len(body)) + body + b"\0" * (len(body) % 2)


def edges(width: int, height: int) -> bytes:
    """A size as WebP's extended header has it."""
    return (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")


LOSSLESS = b"\x2f" + struct.pack("<I", (3 - 1) | (2 - 1) << 14) + b"pixels"
LOSSY = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 3, 2) + b"pixels!"


def animated_webp(*inner: tuple[bytes, bytes]) -> bytes:
    """A WebP of two frames of 3×2 pixels, each made of the chunks `inner`."""
    frame = b"\0" * 6 + edges(3, 2) + b"\x64\0\0\0" + b"".join(_webp_chunk(*chunk) for chunk in inner)
    head = (b"VP8X", b"\x12\0\0\0" + edges(30, 20))
    return webp(head, (b"ANIM", b"\0" * 6), (b"ANMF", frame), (b"ANMF", frame))
