"""A real kernel for tests: started through the launcher, driven with jupyter_client's messages.

    with start_kernel() as kernel:
        kernel.host["goal.get"] = lambda payload: {"goal": None}
        cell = kernel.execute("1 + 1")

Every wait ends with the kernel's death or after `WAIT_SECONDS`, then the test fails with what the
kernel wrote to stderr.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import zmq
from jupyter_client.session import Session

PROJECT = Path(__file__).resolve().parents[2]
LAUNCHER = PROJECT / "kernel" / "launcher.py"
CONTRACT = json.loads((PROJECT / "kernel" / "rlm" / "contract.json").read_text())
WAIT_SECONDS = 30.0
CLOSE_SECONDS = 5.0

HostHandler = Callable[[dict], dict]


@dataclass(repr=False)
class Cell:
    """What one cell sent until it was idle and answered."""

    reply: dict
    messages: list = field(default_factory=list)

    @property
    def status(self) -> str:
        return self.reply["status"]

    @property
    def stdout(self) -> str:
        return self._stream("stdout")

    @property
    def stderr(self) -> str:
        return self._stream("stderr")

    @property
    def result(self) -> Optional[str]:
        """The `text/plain` of the cell's value, or None."""
        for message in self.messages:
            if message["msg_type"] == "execute_result":
                return message["content"]["data"].get("text/plain")
        return None

    @property
    def displays(self) -> list:
        """The data of each `display_data`, in order."""
        return [m["content"]["data"] for m in self.messages if m["msg_type"] == "display_data"]

    @property
    def error(self) -> str:
        """`ename: evalue`, or the empty string."""
        return f"{self.reply['ename']}: {self.reply['evalue']}" if self.status == "error" else ""

    def __repr__(self) -> str:
        return f"<{self.status} {self.error} result={self.result!r} stdout={self.stdout!r} stderr={self.stderr!r}>"

    def _stream(self, name: str) -> str:
        contents = (m["content"] for m in self.messages if m["msg_type"] == "stream")
        return "".join(c["text"] for c in contents if c["name"] == name)


class KernelDied(AssertionError):
    """The kernel ended, or never answered, while a test waited for it."""


class RunningKernel:
    """One kernel process and its client. Close it, or use it in a `with`."""

    def __init__(self, python: str, cwd: str, env: dict, paths: list, arguments: dict) -> None:
        self.host: dict[str, HostHandler] = {}
        self.comm_messages: list = []
        self.unparented: list = []
        self._condition = threading.Condition()
        self._messages: dict[str, list] = {}
        self._stopping = False
        # Short, because the path of a unix socket is.
        self.folder = tempfile.mkdtemp(prefix="pk-", dir="/tmp")
        self.connection_file = os.path.join(self.folder, "c.json")
        self._address = write_connection_file(self.connection_file, arguments.pop("transport", "ipc"))
        self._start(python, cwd, env, paths, arguments)
        self._connect()

    def __enter__(self) -> RunningKernel:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- cells ------------------------------------------------------------------------------

    def execute(self, code: str, **options: Any) -> Cell:
        """Runs a cell to its end, whatever its outcome."""
        return self.finish(self.begin(code, **options))

    def run(self, code: str) -> Cell:
        """Runs a cell that must succeed."""
        cell = self.execute(code)
        if cell.status != "ok":
            raise AssertionError("\n".join(cell.reply.get("traceback", [])) or str(cell.reply))
        return cell

    def begin(self, code: str, **options: Any) -> str:
        """Sends a cell and returns its message id."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": False, "stop_on_error": False, **options}
        return self._send("shell", "execute_request", content)

    def finish(self, msg_id: str, timeout: float = WAIT_SECONDS) -> Cell:
        """Waits for the reply and the idle status of a cell that `begin` sent."""
        reply = self._reply("shell", msg_id, timeout)
        self.wait_for(lambda: self._is_idle(msg_id), timeout)
        return Cell(reply["content"], self.messages(msg_id))

    def interrupt(self) -> None:
        """Sends `interrupt_request` and waits for its reply."""
        self.request("control", "interrupt_request", {})

    # -- other requests ---------------------------------------------------------------------

    def call(self, operation: str, args: Any = None, channel: str = "shell") -> Any:
        """Makes one of the host's own calls (`rlm/calls.py`): its result, or a RuntimeError."""
        names = CONTRACT["call"]
        content = self.request(channel, names["request"], {"op": operation, "args": args or {}})
        if content["status"] == "ok":
            return content["result"]
        raise RuntimeError(f"{content['ename']}: {content['evalue']}")

    def request(self, channel: str, msg_type: str, content: dict) -> dict:
        """Sends any request and returns the content of its reply."""
        msg_id = self._send(channel, msg_type, content)
        return self._reply(channel, msg_id, WAIT_SECONDS)["content"]

    def shutdown(self) -> int:
        """Asks for shutdown and returns the process's exit code."""
        self.request("control", "shutdown_request", {"restart": False})
        return self.process.wait(WAIT_SECONDS)

    # -- waiting ----------------------------------------------------------------------------

    def messages(self, msg_id: str) -> list:
        """What came on IOPub with this parent so far."""
        with self._condition:
            return list(self._messages.get(msg_id, []))

    def wait_for(self, condition: Callable[[], Any], timeout: float = WAIT_SECONDS) -> Any:
        """Waits until an IOPub message makes `condition()` true; returns its value."""
        deadline = time.monotonic() + timeout
        with self._condition:
            while not (value := condition()):
                self._check_alive(deadline)
                self._condition.wait(0.1)
            return value

    @property
    def stderr(self) -> str:
        """What the process itself wrote to its stderr pipe so far."""
        return "".join(self._stderr)

    # -- ending -----------------------------------------------------------------------------

    def host_dies(self) -> None:
        """Closes the pipe that the kernel watches, as the kernel of a killed host sees it."""
        os.close(self._parent_pipe)
        self._parent_pipe = -1

    def close(self) -> None:
        """Ends the process as the host's death does, by force if need be, and removes everything."""
        self._stopping = True
        if self._parent_pipe >= 0:
            self.host_dies()
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._drain.join(WAIT_SECONDS)
        if hasattr(self, "_pump"):
            self._pump.join(WAIT_SECONDS)
            self._context.destroy(0)
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- inside -----------------------------------------------------------------------------

    def _start(self, python: str, cwd: str, env: dict, paths: list, arguments: dict) -> None:
        ready, ready_child = os.pipe()
        parent_child, self._parent_pipe = os.pipe()
        config = {"connection_file": self.connection_file, "ready_fd": ready_child,
                  "parent_fd": parent_child, "cwd": cwd, "paths": paths,
                  "kernel_dir": self.folder, **arguments}
        self.process = subprocess.Popen(
            [python, "-I", str(LAUNCHER), json.dumps(config)],
            env={**os.environ, **env}, pass_fds=(ready_child, parent_child),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
        )
        os.close(ready_child)
        os.close(parent_child)
        self._stderr: list[str] = []
        self._drain = threading.Thread(target=self._read_stderr, daemon=True)
        self._drain.start()
        with open(ready) as lines:
            line = lines.readline()
        self.ready: dict = json.loads(line) if line else {}
        if not self.ready.get("ready"):
            self.process.wait(WAIT_SECONDS)
            self.close()
            raise KernelDied(f"not ready: {self.ready.get('error')}\n{self.stderr}")

    def _connect(self) -> None:
        self._address.update(self.ready["ports"])
        self.session = Session(key=self._address["key"].encode())
        self._context = zmq.Context()
        self._sockets = {name: self._open(zmq.DEALER, name) for name in ("shell", "control")}
        # The pump's sockets are its own: a socket belongs to one thread.
        self._iopub = self._open(zmq.SUB, "iopub")
        self._host_socket = self._open(zmq.DEALER, "control")
        self._pump = threading.Thread(target=self._read_iopub, daemon=True)
        self._pump.start()
        self._prove_iopub()

    def _open(self, kind: int, channel: str) -> zmq.Socket:
        socket = self._context.socket(kind)
        socket.linger = 0
        if kind == zmq.SUB:
            socket.subscribe(b"")
        separator = "-" if self._address["transport"] == "ipc" else ":"
        ip, port = self._address["ip"], self._address[channel + "_port"]
        socket.connect(f"{self._address['transport']}://{ip}{separator}{port}")
        return socket

    def _prove_iopub(self) -> None:
        """Repeats a request until its status arrives: only then is the subscription live."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            msg_id = self._send("shell", "kernel_info_request", {})
            self._reply("shell", msg_id, WAIT_SECONDS)
            with self._condition:
                if self._condition.wait_for(lambda: self._is_idle(msg_id), 0.2):
                    return
                self._check_alive(deadline)

    def _send(self, channel: str, msg_type: str, content: dict) -> str:
        message = self.session.send(self._sockets[channel], msg_type, content)
        return message["header"]["msg_id"]

    def _reply(self, channel: str, msg_id: str, timeout: float) -> dict:
        deadline = time.monotonic() + timeout
        socket = self._sockets[channel]
        while True:
            if socket.poll(100):
                message = self._receive(socket)
                if message["parent_header"].get("msg_id") == msg_id:
                    return message
            else:
                self._check_alive(deadline)

    def _receive(self, socket: zmq.Socket) -> dict:
        _, frames = self.session.feed_identities(socket.recv_multipart())
        return self.session.deserialize(frames)

    def _check_alive(self, deadline: float) -> None:
        if self.process.poll() is not None:
            raise KernelDied(f"the kernel ended with {self.process.returncode}\n{self.stderr}")
        if time.monotonic() > deadline:
            raise KernelDied(f"the kernel did not do what the test waits for\n{self.stderr}")

    def _is_idle(self, msg_id: str) -> bool:
        return any(
            m["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
            for m in self._messages.get(msg_id, [])
        )

    def _read_stderr(self) -> None:
        with self.process.stderr as lines:
            for line in lines:
                self._stderr.append(line)

    def _read_iopub(self) -> None:
        while not self._stopping:
            if self._iopub.poll(50):
                self._note(self._receive(self._iopub))

    def _note(self, message: dict) -> None:
        is_comm = message["msg_type"].startswith("comm_")
        with self._condition:
            parent = message["parent_header"].get("msg_id")
            if is_comm:
                self.comm_messages.append(message)
            if parent is None:
                self.unparented.append(message)
            else:
                self._messages.setdefault(parent, []).append(message)
            self._condition.notify_all()
        if message["msg_type"] == "comm_open":
            self._answer(message["content"])

    def _answer(self, content: dict) -> None:
        """Does what the host's bridge does, with the handlers of `self.host`."""
        if content["target_name"] != CONTRACT["comm_target"]:
            return
        request_type = content["data"].get("type")
        handler = self.host.get(request_type)
        if handler is None:
            data = {"status": "error", "error": f"unknown host request: {request_type}"}
        else:
            data = handler(content["data"])
        if data is not None:
            self.reply_to_comm(content["comm_id"], data)

    def reply_to_comm(self, comm_id: str, data: dict, msg_type: str = "comm_msg") -> None:
        """Sends a comm message on control. From handlers only; they run in the pump's thread."""
        content = {"comm_id": comm_id, "data": data}
        self.session.send(self._host_socket, msg_type, content)


def start_kernel(
    cwd: Optional[str] = None,
    env: Optional[dict] = None,
    paths: Optional[list] = None,
    bootstrap: Optional[dict] = None,
    python: str = sys.executable,
    **arguments: Any,
) -> RunningKernel:
    """Starts a kernel in `cwd` (default: the temporary folder). `env` adds to our environment.

    `bootstrap` holds the options of the `bootstrap` call, which is made when it is given. `transport`
    is "ipc" or "tcp"; other `arguments` go into the launcher's JSON.
    """
    cwd = cwd or tempfile.gettempdir()
    kernel = RunningKernel(python, cwd, env or {}, [cwd] if paths is None else paths, arguments)
    if bootstrap is not None:
        kernel.call("bootstrap", bootstrap)
    return kernel


def write_connection_file(path: str, transport: str = "ipc") -> dict:
    """Writes a connection file and returns what is in it. With tcp the kernel picks the ports."""
    channels = enumerate(("shell", "iopub", "stdin", "control", "hb"), 1)
    ipc = transport == "ipc"
    info = {
        "transport": transport,
        "ip": os.path.join(os.path.dirname(path), "k") if ipc else "127.0.0.1",
        "key": os.urandom(16).hex(),
        "signature_scheme": "hmac-sha256",
        **{f"{name}_port": number if ipc else 0 for number, name in channels},
    }
    with open(path, "w") as file:
        json.dump(info, file)
    return info


def wait_until(condition: Callable[[], Any], timeout: float = WAIT_SECONDS) -> Any:
    """Waits for something that no message announces; returns its value."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError("what the test waits for did not happen")
        time.sleep(0.01)
    return value


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
