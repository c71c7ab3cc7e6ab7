"""The forked child that saves a namespace while the kernel runs on.

It works on the frozen copy that fork gives it. It forks once more, since pickling runs code of the
values: a worker does that, and when one variable hangs or crashes it, this process drops what was half
written and lets another worker go on behind it.
"""

from __future__ import annotations

import gc
import hashlib
import io
import json
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlm.state_file import End, write_all, write_end, write_magic
from rlm.state_manifest import KEPT_FILE, MANIFEST_FILE, STATE_FILE, read_manifest, write_manifest
from rlm.state_worker import VARIABLE_SECONDS, Reports, SaveJob, Worker, end_reason

TOO_SLOW = "takes too long to save"


@dataclass
class SaveResult:
    """What was saved. As JSON it is the manifest.

    `oversized` and `slow` name those of the skipped that were given up for their size or time.
    """

    saved: list[str] = field(default_factory=list)
    skipped: list[dict[str, str]] = field(default_factory=list)
    oversized: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    bytes: int = 0
    digest: str = ""
    unchanged: bool = False
    seconds: float = 0.0

    def skip(self, name: str, reason: str) -> None:
        """Notes a variable that is left out."""
        self.skipped.append({"name": name, "reason": reason})


def main(job: SaveJob, result_pipe: int) -> NoReturn:
    """Saves, writes the SaveResult or `{"error"}` as JSON to the pipe, and ends this process."""
    try:
        _detach(result_pipe)
        answer: dict[str, Any] = vars(_Saver(job, result_pipe).run())
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    try:
        write_all(result_pipe, json.dumps(answer).encode())
    finally:
        os._exit(0)


class _Saver:
    """Watches over the workers and puts the file in place."""

    def __init__(self, job: SaveJob, result_pipe: int) -> None:
        self.job = job
        self.result_pipe = result_pipe
        self.result = SaveResult()
        for name, reason in job.hopeless.items():
            self.result.skip(name, reason)
        self.labels = [*(name for name in job.names if name not in job.hopeless), *job.probes]
        self.next = 0
        self.digests: dict[str, str] = {}
        self.started = time.monotonic()
        self.unfinished = os.path.join(job.folder, f"{STATE_FILE}.new-{os.getpid()}")

    def run(self) -> SaveResult:
        """Does all of it. OSError when the file can't be written; the old one is still there then."""
        os.makedirs(self.job.folder, mode=0o700, exist_ok=True)
        _remove_leftovers(self.job.folder)
        file = os.open(self.unfinished, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            write_magic(file)
            while self.next < len(self.labels):
                if self._seconds_left() > 0:
                    self._run_worker(file)
                else:
                    self._skip_rest()
            self._finish(file)
        finally:
            os.close(file)
            with suppress(FileNotFoundError):
                os.unlink(self.unfinished)
        return self.result

    def _run_worker(self, file: int) -> None:
        """Lets one worker go on from `self.next`, until it is done or has to be given up."""
        good_size = os.lseek(file, 0, os.SEEK_CUR)
        read_end, write_end = os.pipe()
        worker = os.fork()
        if worker == 0:
            # The kernel sees by its end that this process has ended, not its worker.
            os.close(self.result_pipe)
            os.close(read_end)
            skipped = {entry["name"] for entry in self.result.skipped}
            room = self.job.total_bytes - self.result.bytes
            Worker(self.job, file, write_end).run(self.labels[self.next :], room, set(self.job.names) - skipped)
        os.close(write_end)
        reports = Reports(read_end)
        is_slow = False
        try:
            while self.next < len(self.labels):
                report = reports.next(min(VARIABLE_SECONDS, max(self._seconds_left(), 0.1)))
                if report is None:
                    break
                self._note(report)
                good_size = report.get("end", good_size)
        except TimeoutError:
            is_slow = True
        os.kill(worker, signal.SIGKILL)
        _, status = os.waitpid(worker, 0)
        os.close(read_end)
        if self.next < len(self.labels):
            os.ftruncate(file, good_size)
            os.lseek(file, good_size, os.SEEK_SET)
            self._give_up(self.labels[self.next], is_slow, status)

    def _give_up(self, label: str, is_slow: bool, status: int) -> None:
        """Leaves out the variable that a worker was at."""
        self.next += 1
        self.result.skip(label, TOO_SLOW if is_slow else end_reason(status))
        if is_slow:
            self.result.slow.append(label)

    def _skip_rest(self) -> None:
        for label in self.labels[self.next :]:
            self.result.skip(label, f"no time was left of {self.job.seconds:g} s")
        self.next = len(self.labels)

    def _note(self, report: dict[str, Any]) -> None:
        if "fatal" in report:
            raise OSError(report["fatal"])
        name = self.labels[self.next]
        self.next += 1
        if "digest" in report:
            self.result.saved.append(name)
            self.result.bytes += report["bytes"]
            self.digests[name] = report["digest"]
        elif "reason" in report:
            self.result.skip(name, report["reason"])
        if report.get("oversized"):
            self.result.oversized.append(name)

    def _finish(self, file: int) -> None:
        """Puts the new files in place, unless they would say the same as the old ones."""
        result, folder = self.result, self.job.folder
        end = End(sys.version.split()[0], _dill_version(), len(result.saved))
        write_end(file, end)
        whole = json.dumps([vars(end), sorted(self.digests.items())]).encode()
        result.digest = hashlib.blake2b(whole, digest_size=16).hexdigest()
        result.seconds = round(time.monotonic() - self.started, 3)
        target, old = os.path.join(folder, STATE_FILE), read_manifest(folder)
        if os.path.exists(target):
            if self.job.keep_old:
                os.replace(target, os.path.join(folder, KEPT_FILE))
            elif _is_same(old, result):
                result.unchanged = True
                return
        os.fsync(file)
        os.replace(self.unfinished, target)
        pruned = [name for name in old.get("pruned", []) if name not in self.labels]
        write_manifest(folder, {**vars(result), **vars(end), "pruned": pruned})

    def _seconds_left(self) -> float:
        return self.started + self.job.seconds - time.monotonic()


def _detach(result_pipe: int) -> None:
    """Makes this fork harmless to the kernel: no garbage collection, signals, output or sockets."""
    gc.disable()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in ("SIGTERM", "SIGHUP", "SIGPIPE", "SIGCHLD", "SIGALRM"):
        signal.signal(getattr(signal, number), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    null = os.open(os.devnull, os.O_RDWR)
    # Replaced rather than closed: a number that came to mean our file would let a value that flushes
    # its own file write into it.
    for name in os.listdir("/dev/fd"):
        if int(name) not in (null, result_pipe):
            with suppress(OSError):
                os.dup2(null, int(name))
    os.nice(19)
    # Should memory run out, this process is the one to go.
    with suppress(OSError), io.open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")


def _remove_leftovers(folder: str) -> None:
    """Removes what a saver that was killed has left."""
    for name in os.listdir(folder):
        if name.startswith((f"{STATE_FILE}.new-", f"{MANIFEST_FILE}.new-")):
            with suppress(OSError):
                os.unlink(os.path.join(folder, name))


def _is_same(manifest: dict[str, Any], result: SaveResult) -> bool:
    def skipped(entries: list[dict[str, str]]) -> list[tuple[str, str]]:
        return sorted((entry["name"], entry["reason"]) for entry in entries)

    is_same_data = manifest.get("digest") == result.digest
    return is_same_data and skipped(manifest.get("skipped", [])) == skipped(result.skipped)


def _dill_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dill")
    except PackageNotFoundError:
        return None
