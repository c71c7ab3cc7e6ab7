"""Keeps messages at a size that a client can take.

ipykernel gathers what a cell prints for a fifth of a second and sends it as one message, which a
flooding cell fills with tens of megabytes and one `print` with any size at all. Clients hold a message
whole, several times over, and refuse frames beyond some limit, which would cost the connection.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

STREAM_CHARS = 1 << 20
"""Stream text is sent in pieces of at most so many characters. Nothing is left out."""

VALUE_CHARS = 16 << 20
"""Texts of results, displays and errors are cut in the middle beyond this. JSON may need six times as many bytes."""

_guarded = "_prime_agent_message_sizes"


def install(shell: Any) -> None:
    """Guards the session of the shell's kernel. May be called again."""
    kernel = getattr(shell, "kernel", None)
    if kernel is not None and not hasattr(kernel.session, _guarded):
        guard(kernel.session)


def guard(session: Any) -> None:
    """Makes `session.send` split stream messages and cut other texts that are too long."""
    stock = session.send

    @functools.wraps(stock)
    def send(stream: Any, msg_or_type: Any, content: Any = None, *args: Any, **options: Any) -> Any:
        is_message = isinstance(msg_or_type, dict)
        msg_type = msg_or_type["header"]["msg_type"] if is_message else msg_or_type
        body = msg_or_type.get("content") if is_message else content
        if not isinstance(body, dict):
            return stock(stream, msg_or_type, content, *args, **options)
        if msg_type == "stream" and len(body.get("text", "")) > STREAM_CHARS:
            sent = None
            for piece in pieces(body["text"]):
                part = {**body, "text": piece}
                if is_message:
                    # A message of its own each time: its id must not come twice.
                    parent = msg_or_type.get("parent_header")
                    sent = stock(stream, session.msg("stream", part, parent=parent), None, *args, **options)
                else:
                    sent = stock(stream, msg_or_type, part, *args, **options)
            return sent
        bounded = bound(body)
        if bounded is body:
            return stock(stream, msg_or_type, content, *args, **options)
        if is_message:
            return stock(stream, {**msg_or_type, "content": bounded}, content, *args, **options)
        return stock(stream, msg_or_type, bounded, *args, **options)

    session.send = send
    setattr(session, _guarded, True)


def pieces(text: str) -> Iterator[str]:
    """The text in parts of at most `STREAM_CHARS`."""
    for start in range(0, len(text), STREAM_CHARS):
        yield text[start : start + STREAM_CHARS]


def bound(content: dict[str, Any]) -> dict[str, Any]:
    """The content with its long texts cut; the same object when none is long."""
    changes: dict[str, Any] = {}
    data = content.get("data")
    if isinstance(data, dict) and any(map(is_long, data.values())):
        changes["data"] = {kind: cut(value) for kind, value in data.items()}
    if is_long(content.get("evalue")):
        changes["evalue"] = cut(content["evalue"])
    traceback = content.get("traceback")
    if isinstance(traceback, list) and any(map(is_long, traceback)):
        changes["traceback"] = [cut(line) for line in traceback]
    return {**content, **changes} if changes else content


def is_long(value: Any) -> bool:
    """Whether a value is a text that has to be cut."""
    return isinstance(value, str) and len(value) > VALUE_CHARS


def cut(value: Any) -> Any:
    """Head and tail of a long text, with a mark that says how much is missing between them."""
    if not is_long(value):
        return value
    half = VALUE_CHARS // 2
    missing = len(value) - 2 * half
    return f"{value[:half]}\n[... {missing} characters left out: too long to send ...]\n{value[-half:]}"
