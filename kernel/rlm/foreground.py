"""Runs one program for a cell and shows its output as it comes.

The program leads a session of its own without a terminal and reads /dev/null. It is over when *it*
exits, not when its pipe closes: what it left in the background keeps running, see `rlm.background`.
An interrupt, a time-out or any exception ends the whole tree, whatever that ignores.
"""

from __future__ import annotations

import codecs
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from rlm import background, processes
from rlm.processes import Process
from rlm.shell_errors import start_error
from rlm.tree_end import GIVE_UP_SECONDS, TreeEnd

# As much as a pipe holds: one read after the exit gets all that the program itself had written.
CHUNK_BYTES = 65536
# Helpers that the exited program did not wait for, such as `>(tee log)`, get this long to finish.
AFTER_EXIT_SECONDS = 0.2
# How often a tree is looked at that ought to end.
POLL_SECONDS = 0.02

Sink = Callable[[str], None]


@dataclass
class Outcome:
    """How a program ended.

    `returncode` is the exit code, or minus the signal that killed it. `ended` says why *we* ended it:
    "interrupted", "timed out", or None when it ended by itself. `output` is whether it wrote
    anything. `background` holds processes that still run, `logs` the files that take what they write
    to our pipes.
    """

    returncode: int
    ended: str | None = None
    output: bool = False
    background: list[Process] = field(default_factory=list)
    logs: list[str] = field(default_factory=list)


def run(
    argv: Sequence[str],
    sinks: Sequence[Sink],
    env: dict[str, str],
    timeout: float | None = None,
    started: Callable[[int], None] | None = None,
) -> Outcome:
    """Runs `argv` to its end. ShellError when it can't be started.

    One sink gets stdout and stderr in the order in which they were written; two get one each. Sinks
    are called with decoded text (UTF-8, U+FFFD for other bytes), partial lines at once. `started` is
    called with the id of the new session.
    """
    with _Interrupts() as interrupts:
        child = _Child(argv, sinks, env, timeout)
        try:
            if started is not None:
                started(child.process.pid)
            interrupts.wake_by(child.wake_write)
            child.pump()
            outcome = child.outcome()
        except BaseException:
            child.kill()
            raise
        finally:
            interrupts.wake_by(None)
            child.close()
    if interrupts.came and outcome.ended is None:
        raise KeyboardInterrupt
    return outcome


class _Interrupts:
    """Takes SIGINT while a program runs, instead of raising anywhere. In the main thread only.

    Raised while the program is being started, or cleaned up after, it could leave it running, or close
    a descriptor twice. One that comes when the program's own end has been seen is raised afterwards: a
    loop of short commands would otherwise never hear of it.
    """

    def __init__(self) -> None:
        self.came = False
        self._wake: int | None = None
        self._previous: Any = None

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._take) or signal.default_int_handler
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def wake_by(self, descriptor: int | None) -> None:
        """Writes to this pipe when one comes, or has come already; with None, no more."""
        self._wake = descriptor
        if self.came:
            self._write()

    def _take(self, _number: int, _frame: Any) -> None:
        self.came = True
        self._write()

    def _write(self) -> None:
        if self._wake is not None:
            os.write(self._wake, b"i")


class _Pipe:
    """The reading end of one output pipe, its decoder and its sink."""

    def __init__(self, descriptor: int, sink: Sink) -> None:
        os.set_blocking(descriptor, False)
        self.descriptor = descriptor
        self.sink = sink
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def read(self) -> bytes | None:
        """Passes on what is there: the bytes, b"" at the end, None when there is nothing yet."""
        try:
            chunk = os.read(self.descriptor, CHUNK_BYTES)
        except BlockingIOError:
            return None
        text = self.decoder.decode(chunk, final=not chunk)
        if text:
            self.sink(text)
        return chunk


class _Child:
    """A started program and what is needed to watch it."""

    def __init__(self, argv: Sequence[str], sinks: Sequence[Sink], env: dict[str, str], timeout: float | None) -> None:
        self.process, read_ends = _start(argv, len(sinks), env)
        self.tree_end = TreeEnd(self.process.pid)
        self.deadline = None if timeout is None else time.monotonic() + timeout
        self.exited_at: float | None = None
        self.output = False
        self.wake, self.wake_write = os.pipe()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.wake, selectors.EVENT_READ)
        self.pipes = [_Pipe(end, sink) for end, sink in zip(read_ends, sinks)]
        for pipe in self.pipes:
            self.selector.register(pipe.descriptor, selectors.EVENT_READ, pipe)
        self.waiter = threading.Thread(target=self._wait, name="wait", daemon=True)
        self.waiter.start()

    def pump(self) -> None:
        """Passes output on until the program is over, or everything of it has been ended."""
        while not self._is_over():
            for key, _ in self.selector.select(self._patience()):
                if key.data is None:
                    self._woken(os.read(self.wake, 64))
                else:
                    self._read(key.data)
            now = time.monotonic()
            if self.deadline is not None and now >= self.deadline and self.exited_at is None:
                self.tree_end.begin("timed out")
            self.tree_end.step(now)
        for pipe in list(self.pipes):
            self._read(pipe)

    def outcome(self) -> Outcome:
        """The result; hands the pipes of what still runs to background readers."""
        returncode = self.process.returncode
        if returncode is None:  # killed, but stuck in the system
            returncode = -signal.SIGKILL
        if self.tree_end.reason is not None:
            return Outcome(returncode, self.tree_end.reason, self.output)
        running = processes.tree(self.process.pid)
        logs = []
        while self.pipes:
            pipe = self.pipes[0]
            known = {p.pid for p in running}
            running += [p for p in processes.holders(pipe.descriptor) if p.pid not in known]
            logs.append(background.drain(pipe.descriptor, f"background-{self.process.pid}"))
            self.pipes.pop(0)
        return Outcome(returncode, None, self.output, running, logs)

    def kill(self) -> None:
        """Ends everything at once, after an exception."""
        self.tree_end.send(signal.SIGINT)
        self.waiter.join(0.1)
        self.tree_end.send(signal.SIGKILL)
        self.waiter.join(GIVE_UP_SECONDS)
        self.tree_end.send(signal.SIGKILL)

    def close(self) -> None:
        """Closes what is still open."""
        self.selector.close()
        for pipe in self.pipes:
            os.close(pipe.descriptor)
        if self.process.returncode is not None:
            self.waiter.join()
            os.close(self.wake)
            os.close(self.wake_write)

    def _wait(self) -> None:
        self.process.wait()
        os.write(self.wake_write, b"x")

    def _woken(self, reasons: bytes) -> None:
        if b"x" in reasons:
            self.exited_at = time.monotonic()
        if b"i" in reasons:
            self.tree_end.begin("interrupted")

    def _read(self, pipe: _Pipe) -> None:
        chunk = pipe.read()
        self.output = self.output or bool(chunk)
        if chunk == b"":
            self.selector.unregister(pipe.descriptor)
            os.close(pipe.descriptor)
            self.pipes.remove(pipe)

    def _is_over(self) -> bool:
        now = time.monotonic()
        if self.tree_end.reason is not None:
            is_dead = self.exited_at is not None and not self.tree_end.members()
            return is_dead or self.tree_end.gave_up(now)
        if self.exited_at is None:
            return False
        is_quiet = not self.pipes and not self.tree_end.members()
        return is_quiet or now >= self.exited_at + AFTER_EXIT_SECONDS

    def _patience(self) -> float | None:
        """How long the pump may sleep."""
        if self.tree_end.reason is not None or (self.exited_at is not None and not self.pipes):
            return POLL_SECONDS
        until = self.deadline if self.exited_at is None else self.exited_at + AFTER_EXIT_SECONDS
        return None if until is None else max(0.0, until - time.monotonic())


def _start(argv: Sequence[str], outputs: int, env: dict[str, str]) -> tuple[Any, list[int]]:
    """Starts the program: its Popen, and the reading ends of its output pipes."""
    ends = [os.pipe() for _ in range(outputs)]
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=ends[0][1],
            stderr=ends[-1][1],
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        for read_end, _ in ends:
            os.close(read_end)
        raise start_error(argv[0], error) from None
    finally:
        for _, write_end in ends:
            os.close(write_end)
    return process, [read_end for read_end, _ in ends]
