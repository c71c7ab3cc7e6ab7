"""The client's side of a kernel under test: cells, calls, and a fake host that answers requests.

Speaks with jupyter_client's messages over its own sockets. Every wait ends with the kernel's death or
after `WAIT_SECONDS`, then the test fails with what the kernel wrote to stderr.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

import zmq
from jupyter_client.session import Session

PROJECT = Path(__file__).resolve().parents[2]
CONTRACT = json.loads((PROJECT / "kernel" / "rlm" / "contract.json").read_text())
WAIT_SECONDS = 30.0

HostHandler = Callable[[dict], Optional[dict]]


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


class KernelClient:
    """A client of one kernel. `host` maps request types to the fake host's handlers."""

    def __init__(self) -> None:
        self.host: dict[str, HostHandler] = {}
        self.comm_messages: list = []
        self.unparented: list = []
        self._condition = threading.Condition()
        self._messages: dict[str, list] = {}
        self._stopping = False
        self._pump: Optional[threading.Thread] = None

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

    def begin_running(self, code: str) -> str:
        """Sends a cell, and waits until it runs."""
        msg_id = self.begin(f"print('runs', flush=True)\n{code}")
        self.wait_for_output(msg_id)
        return msg_id

    def wait_for_output(self, msg_id: str) -> None:
        """Waits until a cell prints something."""
        self.wait_for(lambda: any(m["msg_type"] == "stream" for m in self.messages(msg_id)))

    def finish(self, msg_id: str, timeout: float = WAIT_SECONDS) -> Cell:
        """Waits for the reply and the idle status of a cell that `begin` sent."""
        reply = self._reply("shell", msg_id, timeout)
        self.wait_for(lambda: self._is_idle(msg_id), timeout)
        return Cell(reply["content"], self.messages(msg_id))

    def interrupt(self, cell_id: Optional[str] = None) -> None:
        """Sends `interrupt_request`, which may name its cell, and waits for its reply."""
        metadata = None if cell_id is None else {CONTRACT["interrupt"]["cell"]: cell_id}
        self.request("control", "interrupt_request", {}, metadata)

    # -- other requests ---------------------------------------------------------------------

    def call(self, operation: str, args: Any = None, channel: str = "shell") -> Any:
        """Makes one of the host's own calls (`rlm/calls.py`): its result, or a RuntimeError."""
        names = CONTRACT["call"]
        content = self.request(channel, names["request"], {"op": operation, "args": args or {}})
        if content["status"] == "ok":
            return content["result"]
        raise RuntimeError(f"{content['ename']}: {content['evalue']}")

    def request(self, channel: str, msg_type: str, content: dict, metadata: Optional[dict] = None) -> dict:
        """Sends any request and returns the content of its reply."""
        msg_id = self._send(channel, msg_type, content, metadata)
        return self._reply(channel, msg_id, WAIT_SECONDS)["content"]

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

    def exit_note(self) -> str:
        """How the kernel ended, or nothing while it lives. Kernels of each kind know in their own way."""
        raise NotImplementedError

    @property
    def stderr(self) -> str:
        """What the process itself wrote to its stderr so far."""
        raise NotImplementedError

    def disconnect(self) -> None:
        """Closes the connection; the kernel lives on. Harmless when there is none."""
        self._stopping = True
        if self._pump is not None:
            self._pump.join(WAIT_SECONDS)
            self._context.destroy(0)

    # -- inside -----------------------------------------------------------------------------

    def connect(self, address: dict) -> None:
        """Connects to a kernel that is ready, by the content of its connection file."""
        self._address = address
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

    def _send(self, channel: str, msg_type: str, content: dict, metadata: Optional[dict] = None) -> str:
        message = self.session.send(self._sockets[channel], msg_type, content, metadata=metadata)
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
        if note := self.exit_note():
            raise KernelDied(f"the kernel ended with {note}\n{self.stderr}")
        if time.monotonic() > deadline:
            raise KernelDied(f"the kernel did not do what the test waits for\n{self.stderr}")

    def _is_idle(self, msg_id: str) -> bool:
        return any(
            m["msg_type"] == "status" and m["content"]["execution_state"] == "idle"
            for m in self._messages.get(msg_id, [])
        )

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
