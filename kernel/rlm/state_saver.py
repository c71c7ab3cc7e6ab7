"""The forked child that saves a namespace while the kernel runs on.

It works on the frozen copy that fork gives it. It forks once more: a worker pickles one variable after
the other and may hang, crash or end by what their methods do. That costs only the variable: this
process notices, drops what was half written, and lets another worker go on behind it.
"""

from __future__ import annotations

import faulthandler
import gc
import hashlib
import io
import json
import os
import select
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NoReturn

from rlm.processes import signal_name
from rlm.state_file import End, Frame, write_all, write_end, write_frame, write_magic
from rlm.value_pickle import TooBig, Unsaved, dump

STATE_FILE = "kernel-state.dill"
MANIFEST_FILE = "kernel-state.json"
# Where a state file goes that this kernel has not restored completely, instead of being overwritten.
KEPT_FILE = "kernel-state.unrestored.dill"

VARIABLE_SECONDS = 10.0
TOO_SLOW = "takes too long to save"
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
        self.skipped.append({"name": name, "reason": reason[:REASON_CHARS]})


def main(job: SaveJob, result_pipe: int) -> NoReturn:
    """Saves, writes the SaveResult or `{"error"}` as JSON to the pipe, and ends this process."""
    try:
        _detach(result_pipe)
        answer: dict[str, Any] = vars(_Saver(job).run())
    except BaseException as error:
        answer = {"error": f"{type(error).__name__}: {error}"}
    try:
        write_all(result_pipe, json.dumps(answer).encode())
    finally:
        os._exit(0)


class _Saver:
    """Watches over the workers and puts their frames together."""

    def __init__(self, job: SaveJob) -> None:
        self.job = job
        self.result = SaveResult()
        for name, reason in job.hopeless.items():
            self.result.skip(name, reason)
        self.labels = [*(name for name in job.names if name not in job.hopeless), *job.probes]
        self.next = 0
        self.digests: dict[str, str] = {}
        self.started = time.monotonic()
        self.unfinished = os.path.join(job.folder, f"{STATE_FILE}.new-{os.getpid()}")

    def run(self) -> SaveResult:
        os.makedirs(self.job.folder, mode=0o700, exist_ok=True)
        _remove_leftovers(self.job.folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        self.file = os.open(self.unfinished, flags, 0o600)
        try:
            write_magic(self.file)
            while self.next < len(self.labels):
                self._run_worker()
            self._finish()
        finally:
            os.close(self.file)
            with suppress(FileNotFoundError):
                os.unlink(self.unfinished)
        return self.result

    def _run_worker(self) -> None:
        """Lets one worker go on from `self.next`, until it is done or has to be given up."""
        if self._seconds_left() <= 0:
            for label in self.labels[self.next :]:
                self.result.skip(label, f"no time was left of {self.job.seconds:g} s")
            self.next = len(self.labels)
            return
        good_size = os.lseek(self.file, 0, os.SEEK_CUR)
        read_end, write_end = os.pipe()
        worker = os.fork()
        if worker == 0:
            os.close(read_end)
            _Worker(self, write_end).run()
        os.close(write_end)
        reports = _Reports(read_end)
        is_slow = False
        try:
            while self.next < len(self.labels):
                patience = min(VARIABLE_SECONDS, max(self._seconds_left(), 0.1))
                report = reports.next(patience)
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
            os.ftruncate(self.file, good_size)
            os.lseek(self.file, good_size, os.SEEK_SET)
            label = self.labels[self.next]
            self.result.skip(label, TOO_SLOW if is_slow else _end_reason(status))
            self.result.slow += [label] if is_slow else []
            self.next += 1

    def _note(self, report: dict[str, Any]) -> None:
        if "fatal" in report:
            raise OSError(report["fatal"])
        name = self.labels[self.next]
        self.next += 1
        if "digest" in report:
            self.result.saved.append(name)
            self.result.bytes += report["bytes"]
            self.digests[name] = report["digest"]
        elif report.get("reason"):
            self.result.skip(name, report["reason"])
        if report.get("oversized"):
            self.result.oversized.append(name)

    def _finish(self) -> None:
        """Puts the new files in place, unless they would say the same as the old ones."""
        result, folder = self.result, self.job.folder
        end = End(sys.version.split()[0], _dill_version(), len(result.saved))
        write_end(self.file, end)
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
        os.fsync(self.file)
        os.replace(self.unfinished, target)
        pruned = [name for name in old.get("pruned", []) if name not in self.labels]
        write_manifest(folder, {**vars(result), **vars(end), "pruned": pruned})

    def _seconds_left(self) -> float:
        return self.started + self.job.seconds - time.monotonic()


class _Worker:
    """Pickles one variable after the other and reports each with a line of JSON."""

    def __init__(self, saver: _Saver, pipe: int) -> None:
        self.job = saver.job
        self.file = saver.file
        self.labels = saver.labels[saver.next :]
        self.left = self.job.total_bytes - saver.result.bytes
        skipped = {entry["name"] for entry in saver.result.skipped}
        self.referable = set(self.job.names) - skipped
        self.pipe = pipe

    def run(self) -> NoReturn:
        try:
            for label in self.labels:
                report = self._save(label)
                if "digest" not in report:
                    self.referable.discard(label)
                self._report(report)
        except OSError as error:  # of the file
            self._report({"fatal": str(error)})
        finally:
            os._exit(0)

    def _report(self, report: dict[str, Any]) -> None:
        write_all(self.pipe, json.dumps(report).encode() + b"\n")

    def _save(self, label: str) -> dict[str, Any]:
        is_probe = label in self.job.probes
        namespace = {label: self.job.probes[label]} if is_probe else self.job.namespace
        limit = self.job.variable_bytes
        try:
            blob, has_code = dump(label, namespace, self.referable, limit)
        except TooBig:
            return {"oversized": True, "reason": f"takes more than {_mebibytes(limit)}"}
        except BaseException as error:
            return {} if is_probe else {"reason": _reason(error)}
        if is_probe:
            return {}
        if len(blob) > self.left:
            return {"reason": f"no room was left in {_mebibytes(self.job.total_bytes)}"}
        frame = Frame(label, blob, has_code)
        write_frame(self.file, frame)
        self.left -= len(blob)
        end = os.lseek(self.file, 0, os.SEEK_CUR)
        return {"digest": frame.digest.hex(), "bytes": len(blob), "end": end}


class _Reports:
    """The worker's lines of JSON."""

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


def read_manifest(folder: str) -> dict[str, Any]:
    """The manifest of a folder; empty when there is none that can be read."""
    try:
        with io.open(os.path.join(folder, MANIFEST_FILE), encoding="utf-8") as file:
            manifest = json.load(file)
    except (OSError, ValueError):
        return {}
    return manifest if isinstance(manifest, dict) else {}


def write_manifest(folder: str, manifest: dict[str, Any]) -> None:
    """Replaces the manifest of a folder at once."""
    path = os.path.join(folder, MANIFEST_FILE)
    unfinished = f"{path}.new-{os.getpid()}"
    with io.open(unfinished, "w", encoding="utf-8") as file:
        json.dump(manifest, file, indent=1)
    os.replace(unfinished, path)


def _detach(result_pipe: int) -> None:
    """Makes this fork harmless to the kernel: no garbage collection, signals, output or sockets."""
    gc.disable()
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGINT, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    null = os.open(os.devnull, os.O_RDWR)
    faulthandler.disable()
    # Replaced rather than closed: a number that came to mean our file would let a value that flushes
    # its own file write into it.
    for name in os.listdir("/dev/fd"):
        if int(name) not in (null, result_pipe):
            with suppress(OSError):
                os.dup2(null, int(name))
    sys.stdout = sys.stderr = io.open(1, "w", encoding="utf-8", errors="replace", closefd=False)
    os.nice(19)
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


def _end_reason(status: int) -> str:
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


def _dill_version() -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("dill")
    except PackageNotFoundError:
        return None
