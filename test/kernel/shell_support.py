"""What the tests of shell cells share."""

from __future__ import annotations

import tempfile
import unittest
from pathlib import Path
from typing import Any

from support import RunningKernel, start_kernel


class ShellCase(unittest.TestCase):
    """Cells of one kernel, in a folder of their own."""

    kernel: RunningKernel
    folder: Path

    @classmethod
    def setUpClass(cls) -> None:
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.folder = Path(directory.name)
        cls.kernel = start_kernel(cwd=directory.name, bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def bash(self, script: str, head: str = "%%bash") -> Any:
        """Runs a shell cell to its end."""
        return self.kernel.execute(f"{head}\n{script}")

    def assert_shell(self, cell: Any, stdout: str, note: str = "exit 0\n") -> None:
        """The cell succeeded with this output; `note` is what we said ourselves."""
        self.assertEqual((cell.error, cell.stdout, cell.stderr), ("", stdout, note))
