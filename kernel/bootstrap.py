"""Gives cells `rlm`, skills, shell cells and what else makes a notebook fit for an agent.

Nothing happens when this is imported. The launcher loads it by its location as the module
`prime_agent_bootstrap`; in a kernel that somebody else started, load it in the same way.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import os
import sys
from types import ModuleType
from typing import Any, Union

HERE = os.path.dirname(os.path.abspath(__file__))

# Each has `install(shell)`, safe to call again. In this order, since some wrap what others replaced.
PARTS = (
    "streams",
    "message_sizes",
    "shell_magic",
    "system_commands",
    "limits",
    "no_input",
    "working_folder",
    "exits",
    "script_runs",
    "hints",
)


def install(shell: Any, options: Union[str, dict[str, Any], None] = None) -> dict[str, Any]:
    """Prepares the shell and the user's namespace. Safe to call again, also with other options.

    `options`, as a dict or its JSON: `skills`, a list of `{name, import_name, path}` where `path` is
    the folder that holds the package; other keys are for the host's own use.
    Returns `{"rlm": None | reason, "skills": {import_name: None | reason}}`, with a reason for each that
    could not be loaded: its place is taken by what says so when it is used.
    """
    settings: dict[str, Any] = json.loads(options) if isinstance(options, str) else options or {}
    plain_output(shell)
    nest_event_loop()
    try:
        load_rlm()
        from rlm import helpers, skills
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        stubs = load_file("prime_agent_stubs", os.path.join(HERE, "rlm", "stubs.py"))
        shell.user_ns.update(asyncio=asyncio, rlm=stubs._PrimeAgentMissingRlm(reason))
        return {"rlm": reason, "skills": {}}

    names = install_parts(shell)
    loaded, problems = skills.load_all(settings.get("skills") or [])
    helpers.install(shell, {**names, "asyncio": asyncio, "rlm": sys.modules["rlm"], **loaded})
    return {"rlm": None, "skills": problems}


def plain_output(shell: Any) -> None:
    """Switches colours off, in IPython and in the programs that cells start."""
    os.environ["NO_COLOR"] = "1"
    if str(shell.colors).lower() != "nocolor":
        shell.run_line_magic("colors", "nocolor")


def nest_event_loop() -> None:
    """Lets `asyncio.run()` work in a cell, where nest_asyncio is installed and fits this Python."""
    for name in ("nest_asyncio", "nest_asyncio2"):
        if importlib.util.find_spec(name) is None:
            continue
        try:
            importlib.import_module(name).apply()
        except Exception as error:
            print(f"note: asyncio.run() won't work in cells: {name} failed: {error}", file=sys.stderr)
        return


def install_parts(shell: Any) -> dict[str, Any]:
    """Installs all but skills and returns the names that it added to the namespace."""
    from rlm import calls, host, noninteractive

    noninteractive.apply(os.environ)
    if getattr(shell, "kernel", None) is not None:
        calls.register(shell.kernel)
        host.install(shell.kernel)
    before = set(shell.user_ns)
    for name in PARTS:
        importlib.import_module(f"rlm.{name}").install(shell)
    return {name: shell.user_ns[name] for name in set(shell.user_ns) - before}


def load_rlm() -> None:
    """Imports the `rlm` beside this file; another module of that name, of a project, gives way to it."""
    path = os.path.join(HERE, "rlm", "__init__.py")
    if getattr(sys.modules.get("rlm"), "__file__", None) != path:
        load_file("rlm", path)


def load_file(name: str, path: str) -> ModuleType:
    """Imports the file `path` as module `name`; a package when it is an `__init__.py`."""
    folders = [os.path.dirname(path)] if os.path.basename(path) == "__init__.py" else None
    spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=folders)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is not Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module
