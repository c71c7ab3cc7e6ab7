"""A template process that has paid the imports, and forks ready kernels from itself. Linux only.

Newline-delimited JSON. Requests on `request_fd`, each with an `id` that its response repeats:

    {"id", "op": "fork", "config"}     what `rlm.process.main` takes, without descriptors; `env` is the
                                       kernel's whole environment, `stderr_socket` the host's listening
                                       unix socket for its stderr. Response: ok, fork_id, pid, start_time
    {"id", "op": "signal", "fork_id", "signal": "TERM" | …, "group": bool}
                                       Response: ok, outcome: "signalled" | "exited" | "unknown"
    {"id", "op": "status", "fork_id"}  Response: ok, outcome: "running" | "exited" | "unknown"
    {"id", "op": "exit"}               ends all kernels, then this process

A request that fails is answered `{"id", "ok": false, "error"}`. Events on `response_fd`:
`{"event": "ready", "fork_id", …}` with the kernel's ready line, and `{"event": "exit", "fork_id", "pid",
"code", "signal"}`, with `error` when the kernel failed before it was ready. The end of `request_fd`
means that the host has died. A kernel ends when the host does, or this process.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import time
import traceback
from typing import Any, Optional

from rlm import process, teardown, template
from rlm.fork_table import Fork, ForkTable
from rlm.template import ForkedKernel

# Kernels that were told to end, and what they end in turn, have this long.
END_SECONDS = 4.0
# Python and the dynamic linker read these when a process starts: a fork can't change them.
START_VARIABLES = ("PYTHON", "LD_", "DYLD_", "LC_", "LANG")


def main(config: dict[str, Any]) -> None:
    """Serves until the host dies or says `exit`; returns only in a forked kernel that was shut down."""
    process.own_descriptors(config["request_fd"], config["response_fd"])
    process.lead_session()
    app = template.prepare()
    server = ForkServer(config["request_fd"], config["response_fd"])
    kernel = server.serve()
    if kernel is None:
        server.end_kernels()
        os._exit(0)
    del server
    template.become_kernel(kernel, app)


class HostGone(Exception):
    """The host does not read any more."""


class ForkServer:
    """Forks kernels on request and reports what becomes of them. One thread, so that forking is safe."""

    def __init__(self, request_fd: int, response_fd: int) -> None:
        self._request_fd = request_fd
        self._response_fd = response_fd
        self._forks = ForkTable()
        self._unread = b""
        self._host_is_gone = False
        # Kernels watch the one end, and only this process holds the other: it ends with this process.
        self._life, self._life_held = os.pipe()
        self._child_exited, wakeup = os.pipe()
        os.set_blocking(wakeup, False)
        signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        self._private_fds = [response_fd, self._life_held, self._child_exited, wakeup]
        self._selector = selectors.DefaultSelector()
        self._selector.register(request_fd, selectors.EVENT_READ)
        self._selector.register(self._child_exited, selectors.EVENT_READ)

    def serve(self) -> Optional[ForkedKernel]:
        """Serves to the end, and returns None; or returns in a forked child, what that is to become."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.data is not None:
                        # Its kernel may have been reaped, and the pipe closed, in this very round.
                        if key.data.ready_fd >= 0:
                            self._read_ready(key.data)
                    elif key.fd == self._child_exited:
                        self._reap()
                    else:
                        for line in self._read_requests():
                            if (kernel := self._answer(line)) is not None:
                                return kernel
        except (HostGone, EOFError):
            self._host_is_gone = True
        except SystemExit:
            pass
        return None

    def end_kernels(self) -> None:
        """Waits, not for long, until all kernels have ended; kills and cleans up after those that have not."""
        deadline = time.monotonic() + END_SECONDS
        # When the host is gone the kernels know, and clean up more than a signal would let them.
        if not self._host_is_gone:
            for fork in self._forks.live():
                self._forks.send(fork.fork_id, signal.SIGTERM, group=False)
        while self._forks.live() and (left := deadline - time.monotonic()) > 0:
            if select.select([self._child_exited], [], [], left)[0]:
                os.read(self._child_exited, 4096)
            self._forks.reap()
        for fork in self._forks.live():
            self._forks.send(fork.fork_id, signal.SIGKILL, group=True)
            teardown.clean_up_after(fork.pid, fork.kernel_dir)

    def _read_requests(self) -> list[bytes]:
        """The lines that have come. EOFError when the host has closed its end."""
        try:
            chunk = os.read(self._request_fd, 65536)
        except BlockingIOError:
            return []
        except ConnectionResetError:
            chunk = b""
        if not chunk:
            raise EOFError
        *lines, self._unread = (self._unread + chunk).split(b"\n")
        return [line for line in lines if line.strip()]

    def _answer(self, line: bytes) -> Optional[ForkedKernel]:
        """Does what one request asks for. Returns in a forked child only."""
        request: dict[str, Any] = {}
        try:
            request = json.loads(line)
            if request["op"] == "fork":
                return self._fork(request)
            response = self._other(request)
        except (HostGone, SystemExit):
            raise
        except Exception as error:
            response = {"ok": False, "error": f"{type(error).__name__}: {error}"}
        self._write({"id": request.get("id"), **response})
        return None

    def _other(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["op"] == "signal":
            signum = signal.Signals["SIG" + request["signal"]]
            outcome = self._forks.send(request["fork_id"], signum, bool(request.get("group")))
            return {"ok": True, "outcome": outcome}
        if request["op"] == "status":
            return {"ok": True, "outcome": self._forks.outcome(request["fork_id"])}
        if request["op"] == "exit":
            self._write({"id": request.get("id"), "ok": True})
            raise SystemExit
        raise ValueError(f"unknown operation {request['op']!r}")

    def _fork(self, request: dict[str, Any]) -> Optional[ForkedKernel]:
        started = time.monotonic()
        config = request["config"]
        refuse_environment(config["env"])
        ready, ready_child = os.pipe()
        try:
            pid = os.fork()
        except OSError:
            os.close(ready)
            os.close(ready_child)
            raise
        if pid == 0:
            self._leave(ready)
            return ForkedKernel(config, ready_child, [self._life, self._request_fd], started)
        os.close(ready_child)
        fork = self._forks.add(pid, ready, config["kernel_dir"])
        self._selector.register(ready, selectors.EVENT_READ, fork)
        response = {"ok": True, "fork_id": fork.fork_id, "pid": pid, "start_time": fork.start}
        self._write({"id": request.get("id"), **response})
        return None

    def _leave(self, ready: int) -> None:
        """In the child: closes what is the server's, and undoes what it has set up."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for fd in [ready, *self._private_fds, *self._forks.open_fds()]:
                os.close(fd)
        except BaseException:
            traceback.print_exc()
            # Not to the caller, which would serve on as a second server.
            os._exit(1)

    def _read_ready(self, fork: Fork) -> None:
        """Takes what a kernel says about its start."""
        if fork.read():
            return
        self._selector.unregister(fork.ready_fd)
        line = fork.finish()
        if line.pop("ready", False):
            self._write({"event": "ready", "fork_id": fork.fork_id, "ready": True, **line})

    def _reap(self) -> None:
        os.read(self._child_exited, 4096)
        for fork, outcome in self._forks.reap():
            # What it said last comes before the news of its end.
            while fork.ready_fd >= 0:
                self._read_ready(fork)
            failure = {"error": fork.error} if fork.error else {}
            self._write({"event": "exit", "fork_id": fork.fork_id, "pid": fork.pid, **outcome, **failure})

    def _write(self, message: dict[str, Any]) -> None:
        data = json.dumps(message).encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._response_fd, data) :]
        except OSError:
            raise HostGone from None


def refuse_environment(env: dict[str, str]) -> None:
    """Raises for an environment that a fork can't have; the host starts such a kernel directly."""

    def fixed(variables: Any) -> dict[str, str]:
        return {name: value for name, value in variables.items() if name.startswith(START_VARIABLES)}

    mine, wanted = fixed(os.environ), fixed({**template.coerced_locale(), **env})
    different = sorted(name for name in mine.keys() | wanted.keys() if mine.get(name) != wanted.get(name))
    if different:
        raise ValueError(f"a fork can't change {', '.join(different)}")
