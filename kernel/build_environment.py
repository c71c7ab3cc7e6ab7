"""Makes the kernel's virtual environment, in the Python that it is made from.

The host calls this with one JSON argument: first to create an empty
environment, then, after unpacking the packages into it, several times at once
to compile a share of them each. Answers are JSON on file descriptor 3. Only
the standard library is used, without ensurepip, which Debian leaves out.
"""

from __future__ import annotations

import json
import os
import py_compile
import re
import select
import sys
import sysconfig
import threading
import venv
from typing import Any, Iterator

ANSWER_FD = 3

# Large and rarely imported: these are compiled when they are first used.
COMPILED_LATER = re.compile(
    r"/(pip|pygments/styles|prompt_toolkit/contrib|IPython/testing)/"
    r"|/pygments/lexers/(?!__init__|_mapping|python|special)"
)


class _Builder(venv.EnvBuilder):
    """Leaves out the activation scripts, the only files that would know where they lie."""

    def setup_scripts(self, context: Any) -> None:
        """Install nothing."""


def create(folder: str) -> dict[str, Any]:
    """Create an environment without packages in `folder`."""
    _Builder(symlinks=True, with_pip=False).create(folder)
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    variables = {"base": folder, "platbase": folder}
    return {"site_packages": sysconfig.get_path("purelib", scheme, variables)}


def compile_share(folders: dict[str, str], part: int, parts: int) -> dict[str, Any]:
    """Compile every `parts`-th module of `folders`, which maps each to its final place."""
    count = 0
    for index, (path, final_path) in enumerate(_modules(folders)):
        if index % parts == part:
            try:
                py_compile.compile(path, dfile=final_path, doraise=True)
                count += 1
            except (py_compile.PyCompileError, OSError):
                # A module for other Pythons, or a folder that is read-only: not needed now.
                continue
    return {"compiled": count}


def _modules(folders: dict[str, str]) -> Iterator[tuple[str, str]]:
    for folder, final_folder in sorted(folders.items()):
        for parent, children, names in os.walk(folder):
            children.sort()
            for name in sorted(names):
                path = os.path.join(parent, name)
                if name.endswith(".py") and not COMPILED_LATER.search(path):
                    yield path, final_folder + path[len(folder) :]


def end_with_the_host() -> None:
    """Ends this process once nobody reads the answer any more: what it writes would be left behind."""

    def wait() -> None:
        poller = select.poll()
        poller.register(ANSWER_FD, 0)
        poller.poll()
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def main() -> None:
    """Carry out the action of the JSON argument."""
    end_with_the_host()
    request = json.loads(sys.argv[1])
    action = {"create": create, "compile": compile_share}[request.pop("action")]
    os.write(ANSWER_FD, json.dumps(action(**request)).encode("ascii"))


if __name__ == "__main__":
    main()
