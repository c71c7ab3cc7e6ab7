"""Requests to the host: how cells, skills and `rlm` ask for what only the host can do.

A request is a comm with target `host.request` and data `{type, …payload}`. The answer comes on the
control channel, whose thread reads it while a cell keeps the main thread busy; it is handed to whoever
waits, a coroutine or a thread.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import json
import os
import uuid
from typing import Any, Optional

from rlm.contract import CONTRACT

COMM_TARGET: str = CONTRACT["comm_target"]
MAX_REQUEST_BYTES: int = CONTRACT["limits"]["host_request_bytes"]

Answer = concurrent.futures.Future


class HostError(RuntimeError):
    """The host refused a request, failed at it, or can't be reached. The message is the host's."""


async def host_request(
    type: str, payload: Optional[dict[str, Any]] = None, *, timeout: Optional[float] = None
) -> dict[str, Any]:
    """Ask the host and await its answer, as a dict.

    Works in a cell's top-level await, in tasks that go on after their cell, and in the event loops of
    other threads. Cancelling (interrupting the cell) cancels the request at the host. Raises HostError
    with the host's message, and TimeoutError after `timeout` seconds; by default there is no limit.
    """
    request = _Request(type, payload)
    try:
        request.send()
        return await asyncio.wait_for(asyncio.wrap_future(request.answer), timeout)
    except asyncio.TimeoutError:
        raise TimeoutError(f"the host did not answer {type!r} within {timeout} s") from None
    finally:
        request.close()


def host_request_sync(
    type: str, payload: Optional[dict[str, Any]] = None, *, timeout: Optional[float] = None
) -> dict[str, Any]:
    """The same for plain code: waits in this thread, which may be the main one."""
    request = _Request(type, payload)
    try:
        request.send()
        return request.answer.result(timeout)
    except concurrent.futures.TimeoutError:
        raise TimeoutError(f"the host did not answer {type!r} within {timeout} s") from None
    finally:
        request.close()


def install(kernel: Any) -> None:
    """Lets requests go out through this kernel. Safe to call again."""
    global _kernel, _pid
    _kernel, _pid = kernel, os.getpid()
    kernel.control_handlers["comm_msg"] = _on_answer
    kernel.control_handlers["comm_close"] = _on_close


_kernel: Any = None
_pid: Optional[int] = None
_waiting: dict[str, Answer] = {}


class _Request:
    """One request. Always closed by whoever made it: the host is told when nobody waits any more."""

    def __init__(self, type: str, payload: Optional[dict[str, Any]]) -> None:
        self.data = _checked(type, payload)
        self.id = uuid.uuid4().hex
        self.answer: Answer = Answer()

    def send(self) -> None:
        _waiting[self.id] = self.answer
        _send("comm_open", {"comm_id": self.id, "target_name": COMM_TARGET, "data": self.data})

    def close(self) -> None:
        if _waiting.pop(self.id, None) is not None:
            _send("comm_close", {"comm_id": self.id, "data": {}})


def _checked(type: str, payload: Optional[dict[str, Any]]) -> dict[str, Any]:
    """The data of a request, refused here if the host would refuse or miss it."""
    if _kernel is None:
        raise HostError("there is no host: this kernel was not set up by prime-agent")
    if os.getpid() != _pid:
        raise HostError("a forked process can't ask the host: ask in the kernel and pass the answer on")
    if not isinstance(type, str):
        raise TypeError(f"the type of a host request is a string, not {type!r}")
    payload = {} if payload is None else payload
    if "type" in payload:
        raise ValueError("the payload of a host request must not have a key 'type'")
    data = {**payload, "type": type}
    size = len(json.dumps(data).encode())
    if size > MAX_REQUEST_BYTES:
        raise HostError(
            f"the request {type!r} has {size} bytes, more than the {MAX_REQUEST_BYTES} that the host"
            " takes: write the data to a file and send its path"
        )
    return data


def _parent() -> dict[str, Any]:
    """The message of the cell that asks, or of the last one."""
    try:
        return _kernel.get_parent("shell")
    except LookupError:
        return {}  # ipykernel 7.0 knows none in threads that cells have started.


def _send(msg_type: str, content: dict[str, Any]) -> None:
    _kernel.session.send(
        _kernel.iopub_socket,
        msg_type,
        content,
        parent=_parent(),
        ident=f"comm-{content['comm_id']}".encode(),
    )


def _on_answer(stream: Any, ident: Any, message: dict[str, Any]) -> None:
    """A `comm_msg` of the host, in the control thread. One that nobody waits for is late: dropped."""
    content = message["content"]
    answer = _waiting.pop(content.get("comm_id"), None)
    if answer is None or not answer.set_running_or_notify_cancel():
        return
    data = content.get("data")
    status = data.get("status") if isinstance(data, dict) else None
    if status == "ok":
        answer.set_result({key: value for key, value in data.items() if key != "status"})
    elif status == "error":
        answer.set_exception(HostError(str(data.get("error") or "the host failed without a reason")))
    else:
        answer.set_exception(HostError(f"the host answered with an unexpected status: {status!r}"))


def _on_close(stream: Any, ident: Any, message: dict[str, Any]) -> None:
    """A `comm_close` of the host: it will not answer."""
    answer = _waiting.pop(message["content"].get("comm_id"), None)
    if answer is not None and answer.set_running_or_notify_cancel():
        answer.set_exception(HostError("the host ended the request without an answer"))
