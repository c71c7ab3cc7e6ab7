"""Starts one kernel, the fork server that makes kernels, or what ends a kernel whose host has died.

Run as `python -I launcher.py '<JSON>'`. Isolated mode keeps the working directory, PYTHONPATH and
the user's site-packages off `sys.path` while the kernel is made, so no file of a project can stop or
change it. The JSON is described at the `main` of `rlm.process`, `rlm.fork_server` and `rlm.guard`.
"""

from __future__ import annotations

import gc
import importlib.util
import json
import os
import sys
import time

STARTED = time.monotonic()


def main(argument: str) -> None:
    """Does what the JSON argument says and exits with the kernel's exit code."""
    # Importing makes many objects and no garbage; `rlm.process` turns it on again.
    gc.disable()
    config = json.loads(argument)
    load_rlm()
    if config.get("fork_server"):
        from rlm import fork_server

        fork_server.main(config)
    elif "guard" in config:
        from rlm import guard

        guard.main(config["guard"])
    else:
        from rlm import process

        process.main(config, STARTED)


def load_rlm() -> None:
    """Imports the package beside this file without leaving its folder on `sys.path`."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rlm")
    spec = importlib.util.spec_from_file_location(
        "rlm", os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"the kernel's own files are not in {folder}")
    module = importlib.util.module_from_spec(spec)
    sys.modules["rlm"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    main(sys.argv[1])
