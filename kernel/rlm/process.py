"""One kernel process: its signals, session, standard streams, working directory and end."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any


def main(config: dict[str, Any], started: float) -> None:
    """Runs the kernel that `config` describes until it is shut down or the host dies.

    `config`: `connection_file`; `ready_fd`, which gets one JSON line; `parent_fd`, whose end of file
    means that the host died; `cwd`; `paths`, importable after everything else; `kernel_dir`, the
    kernel's private folder; `env`, variables to set.
    """
    os.environ.update(config.get("env") or {})
    if os.getpid() != os.getsid(0):
        os.setsid()
    os.chdir(config["cwd"])
    from rlm import calls, kernel_app

    app = kernel_app.make_app()
    app.open(config["connection_file"], os.path.join(config["kernel_dir"], "ipython"))
    calls.register(app.kernel)
    sys.path.extend(config.get("paths", []))
    line = {"ready": True, "pid": os.getpid(), "cwd": os.getcwd(), "python": sys.version.split()[0],
            "ipykernel": kernel_app.IPYKERNEL_VERSION, "ipython": kernel_app.IPYTHON_VERSION,
            "ports": app.addresses, "boot_ms": round((time.monotonic() - started) * 1000)}
    os.write(config["ready_fd"], json.dumps(line).encode() + b"\n")
    os.close(config["ready_fd"])
    app.start()
