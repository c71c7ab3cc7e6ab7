"""The process that pickles one variable after the other, and how it reports to the saver.

It may hang, crash or end by what the methods of a value do; the saver then goes on without that value.
"""

from __future__ import annotations

import json
import os
import select
import signal
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlm.processes import signal_name
from rlm.state_file import Frame, write_all, write_frame
from rlm.value_pickle import TooBig, Unsaved, dump

VARIABLE_SECONDS = 10.0
# Ends a worker whose saver has been killed, and can't give it up.
ORPHAN_SECONDS = int(VARIABLE_SECONDS) + 5
REASON_CHARS = 200


@dataclass
class SaveJob:
    """What to save, where, and within which limits.

    `names` in the order in which they are saved. `hopeless` are those that are not tried, each with
    its reason. `probes` are labels of values that are only measured against the limit of a variable.
    `keep_old`: the file that is there has not been restored.
    """

    namespace: dict[str, Any]
    names: list[str]
    folder: str
    variable_bytes: int
    total_bytes: int
    seconds: float
    keep_old: bool = False
    hopeless: dict[str, str] = field(default_factory=dict)
    probes: dict[str, Any] = field(default_factory=dict)


class Worker:
    """Writes frames to `file`, and for each variable a line of JSON to `pipe`.

    A line is `{digest, bytes, end}` of a frame, or `{reason, oversized}` of a variable that is left
    out, or `{fatal}` when the file can't be written.
    """

    def __init__(self, job: SaveJob, file: int, pipe: int) -> None:
        self.job = job
        self.file = file
        self.pipe = pipe

    def run(self, labels: list[str], room: int, referable: set[str]) -> NoReturn:
        """Does its work and ends this process.

        `room` is what is left of the total; `referable` are the names that others may refer to.
        """
        try:
            for label in labels:
                signal.alarm(ORPHAN_SECONDS)
                report = self._save(label, room, referable)
                room -= report.get("bytes", 0)
                if "digest" not in report:
                    referable.discard(label)
                self._report(report)
        except OSError as error:  # of the file
            self._report({"fatal": str(error)})
        finally:
            os._exit(0)

    def _report(self, report: dict[str, Any]) -> None:
        write_all(self.pipe, json.dumps(report).encode() + b"\n")

    def _save(self, label: str, room: int, referable: set[str]) -> dict[str, Any]:
        is_probe = label in self.job.probes
        namespace = {label: self.job.probes[label]} if is_probe else self.job.namespace
        limit = self.job.variable_bytes
        try:
            blob, has_code = dump(label, namespace, referable, limit)
        except TooBig:
            return {"oversized": True, "reason": f"takes more than {_mebibytes(limit)}"}
        except BaseException as error:
            return {} if is_probe else {"reason": _reason(error)}
        if is_probe:
            return {}
        if len(blob) > room:
            return {"reason": f"no room was left in {_mebibytes(self.job.total_bytes)}"}
        frame = Frame(label, blob, has_code)
        write_frame(self.file, frame)
        end = os.lseek(self.file, 0, os.SEEK_CUR)
        return {"digest": frame.digest.hex(), "bytes": len(blob), "end": end}


class Reports:
    """A worker's lines, as the saver reads them."""

    def __init__(self, pipe: int) -> None:
        self.pipe = pipe
        self.buffer = b""

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next report, None when the worker has ended. TimeoutError when neither comes."""
        while b"\n" not in self.buffer:
            if not select.select([self.pipe], [], [], seconds)[0]:
                raise TimeoutError
            chunk = os.read(self.pipe, 65536)
            if not chunk:
                return None
            self.buffer += chunk
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)


def end_reason(status: int) -> str:
    """Why a worker ended before its time, by its wait status."""
    if os.WIFSIGNALED(status):
        return f"saving it crashed with {signal_name(os.WTERMSIG(status))}"
    return f"saving it ended the process with exit code {os.WEXITSTATUS(status)}"


def _reason(error: BaseException) -> str:
    if isinstance(error, Unsaved):
        return str(error)[:REASON_CHARS]
    if isinstance(error, RecursionError):
        return "is nested too deeply"
    return f"{type(error).__name__}: {error}".rstrip(": ")[:REASON_CHARS]


def _mebibytes(count: int) -> str:
    return f"{count / 2**20:g} MiB"
