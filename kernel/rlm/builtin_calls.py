"""The calls that belong to no other module: liveness, bootstrap, and ending a cell's processes."""

from __future__ import annotations

import importlib.util
import os
import sys
from types import ModuleType
from typing import Any

from rlm import children
from rlm.calls import op

BOOTSTRAP_MODULE = "prime_agent_bootstrap"


@op("ping", channel="both")
def ping(kernel: Any, args: dict) -> dict:
    """Says that the thread of this channel still runs."""
    return {"pid": os.getpid()}


@op("bootstrap")
def bootstrap(kernel: Any, args: dict) -> Any:
    """Gives cells `rlm`, skills and shell cells; `args` are the options of `bootstrap.install`."""
    return load_bootstrap().install(kernel.shell, args)


@op("end_children", channel="control", waits=True)
def end_children(kernel: Any, args: dict) -> dict:
    """Ends what the running cell, or the last one, has started and not detached.

    `cell`: the msg_id of its request; when another cell runs by now, nothing is ended.
    """
    return {"ended": children.end_cell_children(args.get("cell"))}


def load_bootstrap() -> ModuleType:
    """`bootstrap.py` under a name of its own, so that a project's module `bootstrap` stays importable."""
    if BOOTSTRAP_MODULE not in sys.modules:
        path = os.path.join(os.path.dirname(os.path.dirname(__file__)), "bootstrap.py")
        spec = importlib.util.spec_from_file_location(BOOTSTRAP_MODULE, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"there is no {path}")
        module = importlib.util.module_from_spec(spec)
        sys.modules[BOOTSTRAP_MODULE] = module
        spec.loader.exec_module(module)
    return sys.modules[BOOTSTRAP_MODULE]
