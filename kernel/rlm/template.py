"""What a fork server's template prepares, and how a fork of it becomes a kernel of its own."""

from __future__ import annotations

import gc
import importlib
import os
import shutil
import socket
import tempfile
import threading
import time
from dataclasses import dataclass
from typing import Any

from rlm import process, teardown
from rlm.builtin_calls import load_bootstrap

# Imported ahead when they are installed; cells or the host's calls need them soon.
LIKELY_IMPORTS = (
    "tornado.platform.asyncio",
    "dill",
    "nest_asyncio",
    "rlm.snapshot",
    "rlm.helpers",
    "rlm.skills",
)


@dataclass
class ForkedKernel:
    """What a fresh fork knows: its configuration, where it reports, what ends with host and server."""

    config: dict[str, Any]
    ready_fd: int
    watched_fds: list[int]
    started: float


def prepare() -> Any:
    """A KernelApp that forks can open. Afterwards there is still one thread and no event loop."""
    folder = tempfile.mkdtemp(prefix="prime-agent-")
    try:
        app = process.prepare_app(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    bootstrap = load_bootstrap()
    for name in [*(f"rlm.{part}" for part in bootstrap.PARTS), *LIKELY_IMPORTS]:
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    # The first cell would import what runs cells.
    app.shell.run_cell("None", silent=True, store_history=False)
    if threading.active_count() > 1:
        raise RuntimeError(f"a process with threads can't be forked safely: {threading.enumerate()}")
    gc.collect()
    gc.freeze()
    return app


def become_kernel(kernel: ForkedKernel, app: Any) -> None:
    """Runs a kernel in a fresh fork of the template, until it is shut down."""
    config = kernel.config
    process.lead_session()
    connect_stderr(config.get("stderr_socket"))
    environment = {**coerced_locale(), **config["env"]}
    os.environ.clear()
    os.environ.update(environment)
    time.tzset()
    tempfile.tempdir = None
    teardown.begin(config["kernel_dir"])
    teardown.watch_hangup(kernel.watched_fds)

    def moved_app() -> Any:
        app.move(config["kernel_dir"])
        return app

    process.run(config, kernel.ready_fd, kernel.started, moved_app)


def coerced_locale() -> dict[str, str]:
    """The LC_CTYPE that Python set for itself because it was started without a locale (PEP 538).

    A kernel that is started directly sets it just so.
    """
    with open("/proc/self/environ", "rb") as initial:
        if any(entry.startswith(b"LC_CTYPE=") for entry in initial.read().split(b"\0")):
            return {}
    return {"LC_CTYPE": os.environ["LC_CTYPE"]} if "LC_CTYPE" in os.environ else {}


def connect_stderr(path: Any) -> None:
    """Sends stderr to the host's socket, or nowhere: the template's own is for the template."""
    stream = socket.socket(socket.AF_UNIX)
    try:
        stream.connect(path or "")
        os.dup2(stream.fileno(), 2)
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)
    finally:
        stream.close()
