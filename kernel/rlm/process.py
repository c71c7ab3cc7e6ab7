"""One kernel process, from its first step to ready and to its end."""

from __future__ import annotations

import faulthandler
import gc
import importlib.util
import json
import os
import signal
import site
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from rlm import teardown

# What ipykernel can't be imported without, so that one message names all that is missing.
REQUIRED_MODULES = (
    "IPython",
    "dateutil",
    "ipykernel",
    "jupyter_client",
    "jupyter_core",
    "tornado",
    "traitlets",
    "zmq",
)
INHERITED_SIGNALS = ("SIGHUP", "SIGTERM", "SIGQUIT", "SIGCHLD", "SIGALRM", "SIGUSR1", "SIGUSR2")


def main(config: dict[str, Any], started: float) -> None:
    """Runs the kernel that `config` describes until it is shut down, or the host dies.

    `config`: `connection_file`; `ready_fd`, which gets one JSON line and is closed; `parent_fd`, whose
    end of file means that the host has died; `cwd`; `paths`, importable after everything else;
    `kernel_dir`, the kernel's private folder; `env`, variables to set (optional).
    """
    own_descriptors(config["ready_fd"], config["parent_fd"])
    lead_session()
    teardown.begin(config["kernel_dir"])
    teardown.watch_host(config["parent_fd"])
    os.environ.update(config.get("env") or {})
    run(config, config["ready_fd"], started, lambda: prepare_app(config["kernel_dir"]))


def prepare_app(folder: str) -> Any:
    """A KernelApp that is ready to be opened, and all that cells and the host need imported."""
    add_user_site()
    from rlm import kernel_app

    app = kernel_app.make_app()
    app.prepare(folder)
    return app


def run(
    config: dict[str, Any], ready_fd: int, started: float, get_app: Callable[[], Any]
) -> None:
    """Opens the kernel, says on `ready_fd` how that went, and serves cells.

    `get_app` gives the prepared KernelApp.
    """
    diagnostics = separate_stderr()
    # The stack of the thread that crashed, and not those of our own threads, which would come first.
    faulthandler.enable(diagnostics, all_threads=False)
    try:
        place = enter(config["cwd"])
        app = get_app()
        open_kernel(app, config, diagnostics)
    except BaseException as error:
        traceback.print_exc(file=diagnostics)
        tell(ready_fd, {"ready": False, "error": explain(error)})
        teardown.end_now(1)
    milliseconds = round((time.monotonic() - started) * 1000)
    tell(ready_fd, {"ready": True, **place, **app.facts, "boot_ms": milliseconds})
    app.start()
    teardown.exit_soon()
    app.stop_control()


def open_kernel(app: Any, config: dict[str, Any], diagnostics: TextIO) -> None:
    """Binds the sockets and makes the process what cells expect."""
    from rlm import calls, host, noninteractive
    from rlm.builtin_calls import load_bootstrap

    app.open(config["connection_file"], diagnostics)
    teardown.handle_signals()
    noninteractive.apply(os.environ)
    calls.register(app.kernel)
    host.install(app.kernel)
    load_bootstrap()
    sys.argv = [""]
    # Last, so that no file of the project takes the place of a module of Python or of the kernel's.
    sys.path.extend(path for path in [*config.get("paths", []), ""] if path not in sys.path)
    gc.freeze()
    gc.enable()


def own_descriptors(*fds: int) -> None:
    """Keeps inherited descriptors from the kernel's children, and makes sure that 0 to 2 are open."""
    for fd in fds:
        os.set_inheritable(fd, False)
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def lead_session() -> None:
    """Leaves the terminal, and takes nothing over from a parent that ignored or blocked signals.

    A host that was started with nohup ignores SIGHUP; if its kernels did, so would all their children,
    which then would look as if they were meant to stay.
    """
    if os.getpid() not in (os.getsid(0), os.getpgrp()):
        os.setsid()
    for name in INHERITED_SIGNALS:
        signal.signal(getattr(signal, name), signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])


def enter(cwd: str) -> dict[str, str]:
    """Changes to `cwd`, or to the nearest folder above it that exists, or home; says which it was."""
    above = [str(folder) for folder in Path(cwd).parents if folder != Path("/")]
    for folder in (cwd, *above, os.path.expanduser("~"), "/"):
        try:
            os.chdir(folder)
        except OSError:
            continue
        os.environ["PWD"] = folder
        found = {"cwd": os.getcwd()}
        return found if folder == cwd else {**found, "cwd_missing": cwd}
    raise FileNotFoundError(f"neither {cwd} nor any folder above it can be entered")


def add_user_site() -> None:
    """Finds packages that were installed with `pip --user`, after all others.

    Isolated mode leaves them out, since there they could take the place of Python's own modules.
    """
    if sys.prefix == sys.base_prefix:
        folder = site.getusersitepackages()
        if os.path.isdir(folder):
            site.addsitedir(folder)


def separate_stderr() -> TextIO:
    """Gives the kernel's own messages a file of their own on the process's stderr.

    ipykernel copies what cells' child processes write to descriptor 2 to where it led before. That
    copy is dropped, since the same text is sent to the client, and a pipe that nobody reads would fill.
    """
    sys.stderr.flush()
    diagnostics = open(os.dup(2), "w", buffering=1, errors="backslashreplace", encoding="utf-8")
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    return diagnostics


def tell(fd: int, line: dict[str, Any]) -> None:
    """Writes the ready line; nobody may be there to read it any more."""
    try:
        os.write(fd, json.dumps(line).encode() + b"\n")
    except OSError:
        pass
    os.close(fd)


def explain(error: BaseException) -> str:
    """One line for people about why the kernel can't start."""
    if isinstance(error, ImportError):
        missing = [name for name in REQUIRED_MODULES if not is_installed(name)]
        if missing:
            return f"{sys.executable} lacks {', '.join(missing)}: install ipykernel there"
    return f"{type(error).__name__}: {error}"


def is_installed(name: str) -> bool:
    """Whether a top-level module can be found, without importing it."""
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False
