"""Keeps this agent at work on one objective over many turns."""

from __future__ import annotations

from typing import Any, Optional

from rlm import host_request

__all__ = ["complete", "create", "get", "run"]


async def get() -> dict[str, Any]:
    """The goal as it is: a dict with `goal` (None without one) and `remaining_tokens`."""
    return await host_request("goal.get")


async def create(objective: str, token_budget: Optional[int] = None) -> dict[str, Any]:
    """Set the goal: you go on working, turn after turn, until `complete()` or the end of the budget.

    Only when the user asks for a goal. `token_budget`: tokens that it may use in all; no limit without.
    Returns the same as `get()`. Raises HostError when there is an open goal already.
    """
    if not isinstance(objective, str):
        raise TypeError(f"objective is a string, not {type(objective).__name__}")
    if not objective.strip():
        raise ValueError("objective is a text that is not empty")
    payload: dict[str, Any] = {"objective": objective}
    if token_budget is not None:
        if not isinstance(token_budget, int) or isinstance(token_budget, bool):
            raise TypeError(f"token_budget is a whole number, not {token_budget!r}")
        if token_budget < 1:
            raise ValueError(f"token_budget is a number of tokens above 0, not {token_budget}")
        payload["token_budget"] = token_budget
    return await host_request("goal.create", payload)


async def complete() -> dict[str, Any]:
    """End the goal as reached. Check first that it is. Returns a dict with `goal` and `completion_budget_report`."""
    return await host_request("goal.complete")


async def run(objective: Optional[str] = None, token_budget: Optional[int] = None) -> dict[str, Any]:
    """`await goal()` is `goal.get()`; `await goal("objective")` is `goal.create("objective")`."""
    return await get() if objective is None else await create(objective, token_budget)
