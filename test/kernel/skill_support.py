"""The built-in skills for tests: importable here, and as options of a kernel's bootstrap."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from support import PROJECT, RunningKernel, start_kernel

SKILLS = PROJECT / "kernel" / "skills"
NAMES = ("agent-message", "attach-image", "compact", "edit", "goal")
FIXTURES = PROJECT / "test" / "fixtures" / "skills"


def options(*folders: Path) -> list[dict]:
    """The skills in these folders as the host describes them to the bootstrap."""
    return [
        {"name": folder.name, "import_name": folder.name.replace("-", "_"), "path": str(folder / "src")}
        for folder in folders
    ]


BUILTIN = options(*(SKILLS / name for name in NAMES))


def make_importable() -> None:
    """Lets this process import the skills and `rlm`."""
    for folder in [str(PROJECT / "kernel"), *(skill["path"] for skill in BUILTIN)]:
        if folder not in sys.path:
            sys.path.append(folder)


def start_skill_kernel(cwd: str, skills: list[dict] = BUILTIN, **options: object) -> RunningKernel:
    """A kernel in which these skills are loaded and, if they are built in, are commands."""
    kernel = start_kernel(cwd=cwd, bootstrap={"skills": skills}, **options)
    kernel.run(f"from rlm import skill_commands; skill_commands.install(get_ipython(), {skills!r})")
    return kernel


class Folder:
    """A temporary folder whose files a test writes and reads as bytes."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.path = Path(self._folder.name).resolve()

    def write(self, name: str, data: bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    def close(self) -> None:
        self._folder.cleanup()
