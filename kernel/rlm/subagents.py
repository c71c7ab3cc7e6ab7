"""Sub-agents: other agents with a kernel and a session of their own, started and managed by the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Union

from rlm.host import host_request

RUN_OPTIONS = ("name", "model", "thinking")


@dataclass(frozen=True)
class Subagent:
    """A started sub-agent. `name` and `rlm_child_id` both serve as its address."""

    rlm_child_id: str
    name: str
    session_dir: str
    model: str

    def __str__(self) -> str:
        return f"{self.name} ({self.model}), session in {self.session_dir}"


async def run(
    prompt: str,
    *,
    name: Optional[str] = None,
    model: Optional[str] = None,
    thinking: Optional[str] = None,
    **unknown: Any,
) -> Subagent:
    """Start a sub-agent on the task `prompt`; returns once it is admitted, not when it is done.

    It knows only what the prompt says. It reports back with `agent_message.send`, or in files that the
    prompt names. `name`: how you and its siblings address it. `model`: a selector from `find_models`
    (default: your own model). `thinking`: its effort level.
    """
    if unknown:
        names = ", ".join(repr(option) for option in unknown)
        raise TypeError(f"unknown option {names}: rlm takes {', '.join(RUN_OPTIONS)}")
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("the prompt of a sub-agent is a text that is not empty")
    given = {"name": name, "model": model, "thinking": thinking}
    for option, value in given.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{option} is a string, not {type(value).__name__}")
    kwargs = {option: value for option, value in given.items() if value is not None}
    reply = await host_request("rlm.run", {"prompt": prompt, "kwargs": kwargs})
    return Subagent(**{field: str(reply.get(field) or "") for field in Subagent.__dataclass_fields__})


async def find_models(query: str = "", limit: int = 8) -> list[dict[str, str]]:
    """Models that can be used now and match `query`, best first: dicts with provider, id, name, selector."""
    if not isinstance(limit, int) or not 1 <= limit <= 20:
        raise ValueError("limit is a number from 1 to 20")
    return (await host_request("rlm.find_models", {"query": query, "limit": limit}))["models"]


async def list_subagents() -> list[dict[str, Any]]:
    """Your sub-agents: dicts with rlm_child_id, session_name, session_dir and status (running, completed, error)."""
    return (await host_request("rlm.list_subagents"))["subagents"]


async def delete_subagent(target: Union[Subagent, dict[str, Any], str]) -> dict[str, Any]:
    """End and forget a sub-agent, given as a handle, an entry of `list_subagents`, an id or a name."""
    if isinstance(target, Subagent):
        target = target.rlm_child_id
    elif isinstance(target, dict):
        target = target.get("rlm_child_id", "")
    if not isinstance(target, str) or not target:
        raise TypeError("name a sub-agent by its handle, id or name")
    return await host_request("rlm.delete_subagent", {"target": target})
