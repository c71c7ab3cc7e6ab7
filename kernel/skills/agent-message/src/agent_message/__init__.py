"""Sends messages to other agents: the parent, siblings and children of this one."""

from __future__ import annotations

from typing import Any, Optional, Union

from rlm import displays, host_request
from rlm.explained_error import ExplainedError

__all__ = ["list_agents", "run", "send"]

ROLES = ("parent", "sibling", "child")
EVERYONE = "all"


class MessageError(ExplainedError, ValueError):
    """Nothing was sent. The message says why."""


Receipt = dict[str, Any]


async def send(
    text_or_all: Optional[str] = None,
    message: Optional[str] = None,
    *,
    receiver_role: Optional[str] = None,
    receiver_name: Optional[str] = None,
) -> Union[Receipt, list[Receipt]]:
    """Send a message to one agent, or to all of the family.

        await agent_message.send("text", receiver_role="child", receiver_name="reader")
        await agent_message.send("text", receiver_role="parent")
        await agent_message.send("all", "text")

    Roles are parent, sibling and child; the last two need the receiver's name or id. Returns a receipt,
    a dict with id, deliveryStatus (delivered or queued) and target; for "all" a list with one for each
    agent, with `error` where it failed.
    """
    payload = _payload(text_or_all, message, receiver_role, receiver_name)
    reply = await host_request("agent_message.send", payload)
    receipts: list[Receipt] = reply["receipts"] if "receipts" in reply else [reply]
    for receipt in receipts:
        if receipt.get("deliveryStatus") in ("delivered", "queued"):
            displays.publish("agent_message", receipt)
    return receipts if "target" in payload else receipts[0]


async def list_agents() -> dict[str, Any]:
    """The agents that you can send to, with their roles, names and states, as the host tells them."""
    return await host_request("agent_message.list_agents")


run = send


def _payload(
    first: Optional[str], message: Optional[str], role: Optional[str], name: Optional[str]
) -> dict[str, str]:
    """What the host is asked for. Refuses here what it would refuse."""
    given = {"message": message, "receiver_role": role, "receiver_name": name, "the first argument": first}
    for argument, value in given.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{argument} is a string, not {type(value).__name__}")
    if first is not None and message is not None:
        return _broadcast(first, message, role, name)
    text = first if message is None else message
    if text is None or not text.strip():
        raise MessageError("a message is a text that is not empty")
    if role is None:
        raise MessageError(
            'say who gets it: send("text", receiver_role="parent"), receiver_role="child" or "sibling"'
            ' with receiver_name="…", or send("all", "text")'
        )
    if role not in ROLES:
        raise MessageError(f"receiver_role is {', '.join(ROLES[:-1])} or {ROLES[-1]}, not {role!r}")
    if role != "parent" and not name:
        raise MessageError(f'a {role} needs receiver_name="…": see agent_message.list_agents()')
    payload = {"message": text, "receiver_role": role}
    return {**payload, "receiver_name": name} if name else payload


def _broadcast(target: str, message: str, role: Optional[str], name: Optional[str]) -> dict[str, str]:
    if target != EVERYONE:
        raise MessageError(
            f"{target!r} can't be the first of two texts: name one agent by receiver_role and"
            f' receiver_name; only "{EVERYONE}" goes before the text'
        )
    if role is not None or name is not None:
        raise MessageError(f'"{EVERYONE}" takes no receiver_role and no receiver_name')
    if not message.strip():
        raise MessageError("a message is a text that is not empty")
    return {"target": target, "message": message}
