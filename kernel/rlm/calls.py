"""The host's own calls into the kernel: snapshot, bootstrap, liveness.

They are messages of a type of our own, not cells: they use no name of the user's namespace, so
nothing that a cell does can break them, and they leave no trace in history or output. On the shell
channel they run in the main thread between cells, on control in the control thread while a cell runs.

A request's content is `{"op": str, "args": object}`; its reply's is `{"status": "ok", "result"}` or
`{"status": "error", "ename", "evalue", "traceback"}`.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rlm.contract import CONTRACT

REQUEST_TYPE: str = CONTRACT["call"]["request"]
REPLY_TYPE: str = CONTRACT["call"]["reply"]

# Where the operations that are not here live; imported when the first one is called.
OPERATION_MODULES = ("rlm.builtin_calls", "rlm.snapshot")

# Takes the kernel and the request's `args`; its result must be JSON.
Operation = Callable[[Any, dict], Any]


@dataclass(frozen=True)
class Registered:
    """An operation and where it may be called."""

    function: Operation
    channels: tuple[str, ...]
    waits: bool


_operations: dict[str, Registered] = {}


def op(name: str, channel: str = "shell", waits: bool = False) -> Callable[[Operation], Operation]:
    """Registers `function(kernel, args)` as an operation of "shell", "control" or "both" channels.

    `waits`: it takes long, so on control it runs in a thread of its own, and the channel stays free
    for interrupts and for the host's answers.
    """
    channels = ("shell", "control") if channel == "both" else (channel,)

    def register_function(function: Operation) -> Operation:
        _operations[name] = Registered(function, channels, waits)
        return function

    return register_function


def register(kernel: Any) -> None:
    """Makes the kernel answer calls on both channels."""

    def handler_for(channel: str) -> Callable[[Any, Any, dict], Any]:
        async def handle(stream: Any, ident: Any, parent: dict) -> None:
            await answer(kernel, channel, stream, ident, parent)

        return handle

    kernel.shell_handlers[REQUEST_TYPE] = handler_for("shell")
    kernel.control_handlers[REQUEST_TYPE] = handler_for("control")


async def answer(kernel: Any, channel: str, stream: Any, ident: Any, parent: dict) -> None:
    """Does what one request asks for and sends its reply, whatever happens."""

    def reply(content: dict) -> None:
        kernel.session.send(stream, REPLY_TYPE, content, parent, ident=ident)

    try:
        operation, args = find(parent["content"], channel)
    except Exception as error:
        return reply(failure(error))
    if operation.waits and channel == "control":
        io_loop = kernel.control_thread.io_loop

        def work() -> None:
            io_loop.add_callback(reply, outcome(operation, kernel, args))

        threading.Thread(target=work, name="prime-agent call", daemon=True).start()
        return None
    content = outcome(operation, kernel, args)
    if inspect.isawaitable(content.get("result")):
        content = await awaited(content["result"])
    return reply(content)


def find(content: dict, channel: str) -> tuple[Registered, dict]:
    """The operation that a request names; LookupError when there is none on this channel."""
    name = content["op"]
    if name not in _operations:
        for module in OPERATION_MODULES:
            if importlib.util.find_spec(module) is not None:
                importlib.import_module(module)
    operation = _operations.get(name)
    if operation is None:
        raise LookupError(f"unknown operation {name!r}; there are {', '.join(sorted(_operations))}")
    if channel not in operation.channels:
        raise LookupError(f"{name!r} is not for the {channel} channel")
    return operation, content.get("args") or {}


def outcome(operation: Registered, kernel: Any, args: dict) -> dict:
    """The content of the reply; an awaitable result is still to be awaited."""
    try:
        result = operation.function(kernel, args)
        return {"status": "ok", "result": result if inspect.isawaitable(result) else checked(result)}
    except BaseException as error:
        return failure(error)


async def awaited(result: Any) -> dict:
    """The content of the reply of an operation that is a coroutine."""
    try:
        return {"status": "ok", "result": checked(await result)}
    except BaseException as error:
        return failure(error)


def checked(result: Any) -> Any:
    """`result`, or TypeError here rather than in the sender, where no reply would come of it."""
    json.dumps(result)
    return result


def failure(error: BaseException) -> dict:
    """The content of a reply that says what went wrong."""
    return {
        "status": "error",
        "ename": type(error).__name__,
        "evalue": str(error),
        "traceback": traceback.format_exception(type(error), error, error.__traceback__),
    }
