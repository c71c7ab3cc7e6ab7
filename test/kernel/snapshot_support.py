"""What the tests of snapshots share: a folder, and kernels that save into it and restore from it."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import RunningKernel, start_kernel

STATE = "kernel-state.dill"
MANIFEST = "kernel-state.json"
KEPT = "kernel-state.unrestored.dill"


class SnapshotCase(unittest.TestCase):
    """Each test has a folder of its own and starts kernels as it needs."""

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.folder = Path(directory.name)

    def start(self, code: str = "", **options: Any) -> RunningKernel:
        """A kernel with the bootstrap that has run `code`."""
        kernel = start_kernel(bootstrap={}, **options)
        self.addCleanup(kernel.close)
        if code:
            kernel.run(code)
        return kernel

    def save(self, kernel: RunningKernel, **limits: Any) -> dict[str, Any]:
        """Begins a snapshot and waits for its result."""
        begun = kernel.call("snapshot", {"dir": str(self.folder), **limits})
        self.assertTrue(begun["started"], begun)
        ended = kernel.call("snapshot_wait", {"seconds": 30}, "control")
        self.assertFalse(ended["running"])
        self.assertNotIn("error", ended["result"])
        return ended["result"]

    def restored(self) -> tuple[RunningKernel, dict[str, Any]]:
        """A fresh kernel with what was saved, as the host makes it: restored, then bootstrapped."""
        kernel = start_kernel()
        self.addCleanup(kernel.close)
        report = kernel.call("restore", {"dir": str(self.folder)})
        kernel.call("bootstrap", {})
        return kernel, report

    def manifest(self) -> dict[str, Any]:
        """The manifest on disk."""
        return json.loads((self.folder / MANIFEST).read_text())


def reasons(entries: list[dict[str, str]]) -> dict[str, str]:
    """`skipped` or `failed` as a mapping."""
    return {entry["name"]: entry["reason"] for entry in entries}
