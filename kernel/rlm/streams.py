"""Keeps the kernel's stdout and stderr working, whatever a cell does to them.

Text that is not valid Unicode is shown instead of lost, closing does nothing, replaced streams come
back with the next cell, and what processes write to the descriptors 1 and 2 survives odd bytes.
"""

from __future__ import annotations

import codecs
import ctypes
import os
import sys
import threading
import warnings
from typing import Any

from rlm.pacing import paced

CHUNK_BYTES = 65536
# stdio.h's "line buffered", in glibc and musl.
IOLBF = 1
NAMES = ("stdout", "stderr")

_streams: dict[str, Any] = {}
_replaced: list[str] = []


def install(shell: Any) -> None:
    """Guards the shell's streams and its session. May be called again."""
    if _streams:
        restore()
        return
    _streams.update((name, getattr(sys, name)) for name in NAMES)
    warnings.filterwarnings("ignore", message="Message serialization failed")
    shell.events.register("pre_run_cell", _tell_replaced)
    for stream in _streams.values():
        if hasattr(stream, "pub_thread"):
            stream.close = stream.flush
            _watch_descriptor(stream)
    _show_c_output(shell)
    kernel = getattr(shell, "kernel", None)
    if kernel is not None:
        _guard_session(kernel.session)
        _restore_before_parent(shell)


def restore() -> None:
    """Puts the kernel's own streams back if a cell has replaced them."""
    for name, stream in _streams.items():
        if getattr(sys, name) is not stream:
            setattr(sys, name, stream)
            _replaced.append(name)


def readable(value: Any) -> Any:
    """A copy of a JSON value whose strings can be encoded as UTF-8.

    Bytes that stand for an undecodable file name become U+FFFD, other surrogates `\\ud800`.
    """
    if isinstance(value, str):
        return value if _is_valid(value) else "".join(map(_readable_char, value))
    if isinstance(value, dict):
        return {readable(key): readable(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [readable(item) for item in value]
    return value


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _readable_char(char: str) -> str:
    if "\udc80" <= char <= "\udcff":
        return "\ufffd"
    return f"\\u{ord(char):04x}" if "\ud800" <= char <= "\udfff" else char


def _tell_replaced(_info: Any = None) -> None:
    if _replaced:
        names = " and ".join(f"sys.{name}" for name in _replaced)
        _replaced.clear()
        sys.stderr.write(f"note: an earlier cell had replaced {names}; output is shown again\n")


def _restore_before_parent(shell: Any) -> None:
    """Restores the streams before ipykernel tells them whose output comes next."""
    stock = shell.set_parent

    def set_parent(parent: Any) -> None:
        restore()
        stock(parent)

    shell.set_parent = set_parent


def _guard_session(session: Any) -> None:
    """Makes the session able to send any text."""
    stock = session.pack

    def pack(value: Any) -> bytes:
        try:
            return stock(value)
        except UnicodeEncodeError:
            return stock(readable(value))

    session.pack = pack


def _watch_descriptor(stream: Any) -> None:
    """Takes over the descriptor that ipykernel watches.

    Its own watcher ends for good at a byte that is not UTF-8, after which a child that writes more
    than a pipe holds would hang.
    """
    descriptor = {"stdout": 1, "stderr": 2}[stream.name]
    copy = getattr(stream, "_original_stdstream_copy", None)
    if copy is None:
        return
    read_end, write_end = os.pipe()
    os.dup2(write_end, descriptor)
    os.close(write_end)
    arguments = (stream, read_end, copy)
    threading.Thread(target=_forward, args=arguments, name=f"fd {descriptor}", daemon=True).start()


def _show_c_output(shell: Any) -> None:
    """Makes what C code prints through stdio come line by line, and all of it with its cell.

    Into a pipe the C library writes by thousands of bytes only.
    """
    try:
        library = ctypes.CDLL(None)
        stdout = ctypes.c_void_p.in_dll(library, "stdout")
    except (OSError, TypeError, ValueError):
        return  # Another system, whose library has other names.
    library.setvbuf(stdout, None, IOLBF, ctypes.c_size_t(0))
    shell.events.register("post_execute", lambda: library.fflush(stdout))


def _forward(stream: Any, read_end: int, copy: int) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    # A child that floods has to wait for us, as it would for a terminal.
    write = paced(lambda: stream)
    while chunk := os.read(read_end, CHUNK_BYTES):
        write(decoder.decode(chunk))
        try:
            os.write(copy, chunk)
        except OSError:
            continue
