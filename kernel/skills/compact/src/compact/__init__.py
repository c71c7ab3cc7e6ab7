"""Has the conversation summarised, and tells how full its context is."""

from __future__ import annotations

from typing import Any, Optional

from rlm import host_request

__all__ = ["run", "status"]


async def status() -> dict[str, Any]:
    """How full the context is: a dict with tokens, context_window, percent and scheduled."""
    return await host_request("compact.status")


async def run(instructions: Optional[str] = None) -> dict[str, Any]:
    """Have the conversation so far summarised after this turn; variables and files stay.

        await compact.run("Keep the list of failing tests.")

    `instructions`: what the summary must keep. Returns a dict with `scheduled` and, if that is False,
    `reason`.
    """
    if instructions is not None and not isinstance(instructions, str):
        raise TypeError(f"instructions is a string, not {type(instructions).__name__}")
    payload = {"instructions": instructions} if instructions and instructions.strip() else {}
    return await host_request("compact.run", payload)
