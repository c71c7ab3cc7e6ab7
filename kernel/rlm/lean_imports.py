"""Imports ipykernel without the parts that a kernel of ours never uses.

Half of a kernel's start is imports: the whole of jupyter_client (we need its Session), a terminal
user interface, a debugger, a completion engine, a date parser. Inside `lean_imports()` the first two
are put off until somebody asks for them, the others look as if they were not installed. Nothing stays
behind: afterwards a cell that imports any of them gets the real thing.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from types import ModuleType
from typing import Any

# Optional for ipykernel and IPython, which do without when the import fails.
ABSENT = ("debugpy", "jedi")

# Packages whose `__init__` imports far more than the submodules we use, with the names that those
# submodules take from the package itself.
DEFERRED: dict[str, dict[str, str]] = {
    "ipykernel": {"__version__": "_version", "version_info": "_version"},
    "jupyter_client": {
        "__version__": "_version",
        "protocol_version": "_version",
        "protocol_version_info": "_version",
        "version_info": "_version",
        "write_connection_file": "connect",
    },
}


@contextmanager
def lean_imports() -> Iterator[None]:
    """Makes the imports of ipykernel inside the block cheap. Not for use beside other threads."""
    for package, names in DEFERRED.items():
        if package not in sys.modules:
            defer_package(package, names)
    temporary = {name: None for name in ABSENT if name not in sys.modules}
    temporary.update({m.__name__: m for m in stand_ins() if m.__name__ not in sys.modules})
    sys.modules.update(temporary)  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name in temporary:
            sys.modules.pop(name, None)
        detach(temporary)


def defer_package(name: str, names: dict[str, str]) -> None:
    """Puts a package into `sys.modules` whose `__init__` runs when an unknown attribute is asked for.

    `names` maps attributes to the submodule that has them, so that these do not run it. A package
    that is not installed is left alone: its import then fails as it always does.
    """
    spec = importlib.util.find_spec(name)
    if spec is None or spec.loader is None:
        return
    loader = spec.loader
    module = importlib.util.module_from_spec(spec)
    lock = threading.RLock()
    state = {"loaded": False}

    def deferred_getattr(attribute: str) -> Any:
        if attribute in names:
            return getattr(importlib.import_module(f"{name}.{names[attribute]}"), attribute)
        with lock:
            if not state["loaded"]:
                state["loaded"] = True
                vars(module).pop("__getattr__", None)
                loader.exec_module(module)
        return getattr(module, attribute)

    vars(module)["__getattr__"] = deferred_getattr
    sys.modules[name] = module


def stand_ins() -> list[ModuleType]:
    """Modules that take the place of slow ones while others import from them."""
    terminal = ModuleType("IPython.terminal.embed")

    def embed(**kwargs: Any) -> Any:
        """Start IPython in the calling scope."""
        return importlib.import_module("IPython.terminal.embed").embed(**kwargs)

    vars(terminal).update(embed=embed)

    dateutil, parser, tz = (ModuleType(f"dateutil{sub}") for sub in ("", ".parser", ".tz"))
    vars(dateutil).update(__path__=[], parser=parser, tz=tz)
    vars(parser).update(parse=parse_date, isoparse=parse_date)
    vars(tz).update(tzlocal=local_timezone)
    return [terminal, dateutil, parser, tz]


def parse_date(text: str) -> datetime:
    """Reads the ISO 8601 date of a message header; odd ones go to dateutil itself."""
    try:
        return datetime.fromisoformat(text[:-1] + "+00:00" if text.endswith("Z") else text)
    except ValueError:
        return importlib.import_module("dateutil.parser").isoparse(text)


def local_timezone() -> Any:
    """dateutil's `tzlocal()`."""
    return importlib.import_module("dateutil.tz").tzlocal()


def detach(temporary: dict[str, Any]) -> None:
    """Takes stand-ins off the packages that got them as attributes when they were imported."""
    for name, module in temporary.items():
        parent, _, child = name.rpartition(".")
        if parent in sys.modules and getattr(sys.modules[parent], child, None) is module:
            delattr(sys.modules[parent], child)
