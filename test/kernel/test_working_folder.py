"""A working directory that vanishes, and `%cd`."""

from __future__ import annotations

import os
import tempfile
import unittest
from pathlib import Path

from support import RunningKernel, start_kernel


class WorkingFolder(unittest.TestCase):
    kernel: RunningKernel

    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.base = Path(directory.name)
        self.gone = self.base / "a" / "b"
        self.gone.mkdir(parents=True)
        self.kernel = start_kernel(cwd=str(self.gone), bootstrap={})
        self.addCleanup(self.kernel.close)

    def test_the_nearest_folder_that_exists_takes_its_place(self) -> None:
        self.gone.rmdir()
        note = f"note: the working directory {self.gone} no longer exists; now in {self.base / 'a'}\n"
        cell = self.kernel.execute("%%bash\npwd")
        self.assertEqual((cell.stdout, cell.stderr), (f"{self.base / 'a'}\n", note + "exit 0\n"))
        self.assertEqual(self.kernel.run("import os; os.getcwd()").result, f"'{self.base / 'a'}'")

    def test_a_python_cell_is_told_too(self) -> None:
        self.gone.rmdir()
        self.gone.parent.rmdir()
        cell = self.kernel.run("import os; os.getcwd()")
        self.assertEqual(cell.result, f"'{self.base}'")
        self.assertIn(f"{self.gone} no longer exists; now in {self.base}", cell.stderr)

    def test_a_folder_that_was_made_anew_is_entered_again(self) -> None:
        self.gone.rmdir()
        self.gone.mkdir()
        cell = self.kernel.execute("%%bash\ntouch here")
        self.assertIn("it was made anew, and entered again", cell.stderr)
        self.assertEqual(os.listdir(self.gone), ["here"])

    def test_a_cell_that_removes_it_itself_can_go_on(self) -> None:
        cell = self.kernel.execute(f"import os; os.rmdir({str(self.gone)!r})\n!pwd")
        self.assertEqual(cell.stdout, f"{self.base / 'a'}\n")

    def test_cd_recovers(self) -> None:
        self.gone.rmdir()
        self.assertEqual(self.kernel.run(f"%cd {self.base}").stdout, f"{self.base}\n")

    def test_cd_to_a_missing_folder_stops_the_cell(self) -> None:
        cell = self.kernel.execute("%cd nowhere\nprint('went on')")
        text = "%cd: [Errno 2] No such file or directory: 'nowhere'"
        self.assertEqual((cell.stdout, cell.error), ("", f"FolderError: {text}"))
        self.assertEqual(cell.reply["traceback"], [text])

    def test_cd_does_what_it_did(self) -> None:
        self.kernel.run(f"%cd {self.base}")
        self.assertEqual(self.kernel.run("%cd -").stdout, f"{self.gone}\n")
        self.assertEqual(self.kernel.run("%cd -q ..").stdout, "")
        self.assertEqual(self.kernel.run("%pwd").result, f"'{self.base / 'a'}'")
