"""A fork server for tests, and the kernels that it forks."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from typing import Any, Optional

from client import WAIT_SECONDS, KernelClient, KernelDied
from support import LAUNCHER, wait_until, write_connection_file


class ForkServer:
    """One template process. Requests wait for their response; events are collected by fork id."""

    def __init__(self, env: Optional[dict] = None) -> None:
        changed = dict(os.environ, **(env or {}))
        self.env = {name: value for name, value in changed.items() if value is not None}
        request, self._request = os.pipe()
        self._response, response = os.pipe()
        config = {"fork_server": True, "request_fd": request, "response_fd": response}
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(LAUNCHER), json.dumps(config)], env=self.env,
            pass_fds=(request, response), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True, start_new_session=True,
        )
        os.close(request)
        os.close(response)
        self.events: dict[str, list] = {}
        self._responses: dict[int, dict] = {}
        self._next_id = 1
        self._ended = False
        self._arrived = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> ForkServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(self, op: str, **fields: Any) -> dict:
        """Sends a request and returns its response."""
        request_id, self._next_id = self._next_id, self._next_id + 1
        self.write(json.dumps({"id": request_id, "op": op, **fields}))
        with self._arrived:
            answered = lambda: request_id in self._responses or self._ended  # noqa: E731
            self._arrived.wait_for(answered, WAIT_SECONDS)
            if request_id not in self._responses:
                raise KernelDied(f"the fork server did not answer (ended: {self._ended})\n{self.stderr}")
            return self._responses.pop(request_id)

    @property
    def stderr(self) -> str:
        """What the server itself wrote to its stderr; reads to the end, so it must have ended."""
        return self.process.stderr.read() if self._ended else ""

    def write(self, line: str) -> None:
        """Writes any line as a request."""
        os.write(self._request, line.encode() + b"\n")

    def event(self, fork_id: str, name: str) -> dict:
        """Waits for a fork's `ready` or `exit` event."""

        def find() -> Optional[dict]:
            return next((e for e in self.events.get(fork_id, []) if e["event"] == name), None)

        with self._arrived:
            if not self._arrived.wait_for(find, WAIT_SECONDS):
                raise KernelDied(f"no {name} event of fork {fork_id}: {self.events.get(fork_id)}")
            return find() or {}

    def fork(self, **config: Any) -> ForkedKernel:
        """Forks a kernel, which need not be ready yet."""
        return ForkedKernel(self, config)

    def host_dies(self) -> None:
        """Closes the request pipe, as the death of the host does."""
        os.close(self._request)
        self._request = -1

    def close(self) -> None:
        """Ends server and kernels."""
        if self._request >= 0:
            self.host_dies()
        try:
            self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._reader.join(WAIT_SECONDS)
        self.process.stderr.close()

    def _read(self) -> None:
        with open(self._response) as lines:
            for line in lines:
                message = json.loads(line)
                with self._arrived:
                    if "event" in message:
                        self.events.setdefault(message["fork_id"], []).append(message)
                    else:
                        self._responses[message["id"]] = message
                    self._arrived.notify_all()
        with self._arrived:
            self._ended = True
            self._arrived.notify_all()


class ForkedKernel(KernelClient):
    """A kernel that a server forked. `start()` waits until it is ready and connects."""

    def __init__(self, server: ForkServer, config: dict) -> None:
        super().__init__()
        self.server = server
        self.folder = tempfile.mkdtemp(prefix="pk-", dir="/tmp")
        connection_file = os.path.join(self.folder, "c.json")
        self._address = write_connection_file(connection_file)
        self._stderr_text = b""
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(os.path.join(self.folder, "stderr"))
        self._listener.listen()
        threading.Thread(target=self._read_stderr, daemon=True).start()
        self.response = server.request("fork", config={
            "connection_file": connection_file, "cwd": "/tmp", "paths": ["/tmp"],
            "kernel_dir": self.folder, "env": server.env,
            "stderr_socket": os.path.join(self.folder, "stderr"), **config,
        })
        self.fork_id = self.response.get("fork_id", "")
        self.pid = self.response.get("pid", 0)

    def __enter__(self) -> ForkedKernel:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> ForkedKernel:
        """Waits until it is ready, and connects."""
        self.ready = self.server.event(self.fork_id, "ready")
        self.connect(self._address)
        return self

    def exit_note(self) -> str:
        exits = [e for e in self.server.events.get(self.fork_id, []) if e["event"] == "exit"]
        return str(exits[0]) if exits else ""

    @property
    def stderr(self) -> str:
        return self._stderr_text.decode(errors="replace")

    def signal(self, name: str, group: bool = False) -> str:
        """Has the server signal it; what came of it."""
        return self.server.request("signal", fork_id=self.fork_id, signal=name, group=group)["outcome"]

    def close(self) -> None:
        """Kills it and disconnects."""
        self.signal("KILL", group=True)
        wait_until(self.exit_note)
        self.disconnect()

    def disconnect(self) -> None:
        """Closes the connection, and removes the folder as the host does."""
        super().disconnect()
        self._listener.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _read_stderr(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return  # Closed before the kernel connected.
        with connection:
            while chunk := connection.recv(65536):
                self._stderr_text += chunk
