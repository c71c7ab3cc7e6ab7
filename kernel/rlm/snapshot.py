"""The host's calls that save and revive the namespace.

    snapshot         {dir, max_variable_bytes, max_total_bytes, seconds} -> {started, pid | reason}
    snapshot_wait    {seconds} -> {running, result}     after the snapshot that is being written
    snapshot_status  -> {running, result}               result: see state_saver.SaveResult, or {error}
    restore          {dir} -> {restored, failed: [{name, reason}], …}, null when nothing was saved
    list_names       -> {names: [{name, description}], omitted}
    prune            as snapshot -> {pruned: [names]}, null when the rest could not be saved

A snapshot is written by a forked child, see `rlm.state_saver`: the kernel only pays for the fork.
"""

from __future__ import annotations

import gc
import json
import os
import threading
import warnings
from typing import Any

from rlm import namespace, state_restore
from rlm.calls import op
from rlm.contract import CONTRACT
from rlm.definition_pickle import NAMED
from rlm.state_manifest import read_manifest, write_manifest
from rlm.state_saver import main
from rlm.state_worker import SaveJob

LIMITS: dict[str, int] = CONTRACT["limits"]
# A saver keeps to its time itself; this is for one that the system does not let run.
LATE_SECONDS = 15.0
NAME_TAKEN = "has a name that IPython or the host uses itself"


class _Running:
    """A saver at work. `result` is set when it has ended."""

    def __init__(self, pid: int, pipe: int, job: SaveJob) -> None:
        self.pid = pid
        self.folder = job.folder
        self.marks = {name: _mark(job, name) for name in job.names}
        self.result: dict[str, Any] | None = None
        self.thread = threading.Thread(target=self._wait, args=(pipe,), name="snapshot", daemon=True)
        self.thread.start()

    def _wait(self, pipe: int) -> None:
        with os.fdopen(pipe, "rb") as file:
            text = file.read()
        try:
            os.waitpid(self.pid, 0)
        except ChildProcessError:
            pass  # A cell waits for any child of this process, or ignores SIGCHLD.
        gc.unfreeze()
        result = json.loads(text) if text else {"error": "the saving process was killed"}
        if "error" not in result:
            state_restore.note_saved(self.folder)
            self._note_hopeless(result)
        self.result = result

    def _note_hopeless(self, result: dict[str, Any]) -> None:
        given_up = {*result["oversized"], *result["slow"]}
        for entry in result["skipped"]:
            if entry["name"] in given_up and entry["name"] in self.marks:
                _hopeless[entry["name"]] = (self.marks[entry["name"]], entry["reason"])


_last: _Running | None = None
# What was too big or too slow is not tried again while the name has the same value, of the same length.
_hopeless: dict[str, tuple[tuple[Any, ...], str]] = {}


@op("snapshot")
def snapshot(kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
    """Begins to save, if that is not being done already."""
    if _last is not None and _last.result is None:
        return {"started": False, "reason": "a snapshot is being written", "pid": _last.pid}
    job = _job(kernel.shell, args)
    if not job.names and job.keep_old:
        return {"started": False, "reason": "there is nothing to save"}
    return {"started": True, "pid": _begin(kernel, job).pid}


@op("snapshot_status", channel="both")
def snapshot_status(kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
    """How the last snapshot went."""
    if _last is None:
        return {"running": False, "result": None}
    return {"running": _last.result is None, "result": _last.result}


@op("snapshot_wait", channel="both", waits=True)
def snapshot_wait(kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
    """The same, but waits for the end of one that is being written."""
    if _last is not None:
        _last.thread.join(args.get("seconds", LIMITS["snapshot_seconds"]))
    return snapshot_status(kernel, {})


@op("restore")
def restore(kernel: Any, args: dict[str, Any]) -> dict[str, Any] | None:
    """Revives what was saved; see `rlm.state_restore`."""
    return state_restore.restore(kernel.shell, args["dir"])


@op("list_names", channel="both")
def list_names(kernel: Any, args: dict[str, Any]) -> dict[str, Any]:
    """The user's names."""
    return namespace.names_with_descriptions(kernel.shell)


@op("prune")
def prune(kernel: Any, args: dict[str, Any]) -> dict[str, Any] | None:
    """Saves, then removes the variables and outputs that are too big to be saved."""
    shell = kernel.shell
    snapshot_wait(kernel, {})
    job = _job(shell, args, retry=True)
    outputs = shell.user_ns.get("_oh", {})
    job.probes = {f"Out[{number}]": value for number, value in list(outputs.items())}
    measured = {**shell.user_ns, **job.probes}
    running = _begin(kernel, job)
    running.thread.join(job.seconds + LATE_SECONDS)
    result = running.result
    if result is None or "error" in result:
        return None
    oversized = {name: measured[name] for name in result["oversized"]}
    for name, value in oversized.items():
        namespace.remove(shell, name, value)
    manifest = read_manifest(job.folder)
    pruned = [*manifest.get("pruned", []), *oversized]
    write_manifest(job.folder, {**manifest, "pruned": sorted(set(pruned))})
    return {"pruned": list(oversized)}


def _begin(kernel: Any, job: SaveJob) -> _Running:
    """Forks the saver."""
    global _last
    read_end, write_end = os.pipe()
    # Otherwise a collection in the kernel would write to the pages that both share, and copy them.
    gc.freeze()
    try:
        pid = _fork()
    except OSError:
        gc.unfreeze()
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        # What is printed or displayed while values are saved reaches nobody.
        kernel.session.send = _send_nothing
        main(job, write_end)
    os.close(write_end)
    _last = _Running(pid, read_end, job)
    return _last


def _fork() -> int:
    """Without Python's warning of threads: the saver uses none of the kernel's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _send_nothing(*_args: Any, **_kwargs: Any) -> None:
    """Stands for `Session.send` in the saver."""


def _job(shell: Any, args: dict[str, Any], retry: bool = False) -> SaveJob:
    """What to save. `retry`: also what is known to be too big or too slow."""
    values, names = shell.user_ns, namespace.user_names(shell)
    job = SaveJob(
        namespace=values,
        names=sorted(names, key=lambda name: _order(values[name])),
        folder=args["dir"],
        variable_bytes=args.get("max_variable_bytes", LIMITS["snapshot_variable_bytes"]),
        total_bytes=args.get("max_total_bytes", LIMITS["snapshot_total_bytes"]),
        seconds=args.get("seconds", LIMITS["snapshot_seconds"]),
        keep_old=not state_restore.is_restored(args["dir"]),
    )
    job.hopeless = {} if retry else _known_hopeless(job)
    # A fresh kernel gives these names its own values, after the restore.
    job.hopeless.update((name, NAME_TAKEN) for name in names if name in shell.user_ns_hidden)
    return job


def _known_hopeless(job: SaveJob) -> dict[str, str]:
    known = [(name, *_hopeless[name]) for name in job.names if name in _hopeless]
    return {name: reason for name, mark, reason in known if mark == _mark(job, name)}


def _mark(job: SaveJob, name: str) -> tuple[Any, ...]:
    """Tells a value from another one, a container from itself at another length, and the limits."""
    value = job.namespace[name]
    length = len(value) if type(value) in namespace.SIZED else None
    return id(value), type(value), length, job.variable_bytes


def _order(value: Any) -> tuple[int, int]:
    """Classes first, bases before what derives from them, then functions; what may misbehave last."""
    if isinstance(value, type):
        return 0, len(value.__mro__)
    if isinstance(value, NAMED):
        return 1, 0
    return (2, 0) if type(value).__module__ == "builtins" else (3, 0)
