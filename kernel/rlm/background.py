"""Where the output of processes goes that outlive their shell cell.

They still hold the cell's pipe. A reader goes on emptying it into a log file, so that they are never
blocked nor ended by SIGPIPE while the kernel lives, and nothing of theirs reaches a later cell.
"""

from __future__ import annotations

import os
import threading

from rlm import scratch

MAX_LOG_BYTES = 4 * 1024 * 1024
CHUNK_BYTES = 65536


def drain(pipe: int, name: str) -> str:
    """Reads the pipe to its end into a log file, closes it then, and returns the file's path.

    The file holds the newest output: at 4 MiB it is moved to `<path>.old` and begun anew.
    """
    path = scratch.new_file(f"{name}-")
    threading.Thread(target=_copy, args=(pipe, path), name=f"drain {name}", daemon=True).start()
    return path


def _copy(pipe: int, path: str) -> None:
    os.set_blocking(pipe, True)
    log = _Log(path)
    try:
        while chunk := os.read(pipe, CHUNK_BYTES):
            log.write(chunk)
    finally:
        os.close(pipe)


class _Log:
    """A bounded log. A full disk or a removed folder loses output, never the reader."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.size = 0

    def write(self, chunk: bytes) -> None:
        try:
            if self.size + len(chunk) > MAX_LOG_BYTES:
                os.replace(self.path, self.path + ".old")
                self.size = 0
            # Opened for each chunk: output is rare here, and an open descriptor would keep a
            # removed file's space.
            descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        except OSError:
            return
        try:
            self.size += os.write(descriptor, chunk)
        except OSError:
            return
        finally:
            os.close(descriptor)
