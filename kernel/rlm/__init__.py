"""Sub-agents, and requests to the host that runs this kernel.

    child = await rlm("Read src/ and write a summary to /tmp/summary.md", name="reader")
    await rlm.list_subagents()
    await rlm.delete_subagent(child)

Everything here is awaited at the top level of a cell, or in tasks: several requests at once run in
parallel, and calls may go on after their cell has ended.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

from rlm.host import HostError as HostError
from rlm.host import host_request, host_request_sync
from rlm.subagents import Subagent as Subagent
from rlm.subagents import delete_subagent, find_models, list_subagents, run

# Without the classes: `help(rlm)` would describe each of their inherited methods.
__all__ = [
    "delete_subagent",
    "find_models",
    "host_request",
    "host_request_sync",
    "list_subagents",
    "run",
]


class _CallableModule(ModuleType):
    """Lets `await rlm(prompt, …)` stand for `await rlm.run(prompt, …)`."""

    def __call__(self, prompt: str, **options: Any) -> Any:
        return run(prompt, **options)


sys.modules[__name__].__class__ = _CallableModule
