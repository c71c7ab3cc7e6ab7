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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

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
            put_off(package, names)
    temporary: dict[str, Any] = {name: None for name in ABSENT if name not in sys.modules}
    temporary.update({m.__name__: m for m in stand_ins() if m.__name__ not in sys.modules})
    sys.modules.update(temporary)
    if _completion in sys.meta_path:
        sys.meta_path.remove(_completion)
    try:
        yield
    finally:
        for name in temporary:
            sys.modules.pop(name, None)
        detach(temporary)
        sys.meta_path.insert(0, _completion)


# Packages that are in `sys.modules` although their `__init__` has not run, and how to run it.
_put_off: dict[str, Callable[[], None]] = {}


def put_off(name: str, names: dict[str, str]) -> None:
    """Puts a package into `sys.modules` whose `__init__` runs when an unknown attribute is asked for.

    `names` maps attributes to the submodule that has them, so that these do not run it. A package
    that is not installed is left alone: its import then fails as it always does.
    """
    spec = importlib.util.find_spec(name)
    loader = spec.loader if spec else None
    if spec is None or loader is None:
        return
    module = importlib.util.module_from_spec(spec)
    lock = threading.RLock()

    def complete() -> None:
        with lock:
            if _put_off.pop(name, None) is not None:
                vars(module).pop("__getattr__", None)
                loader.exec_module(module)

    def deferred_getattr(attribute: str) -> Any:
        if attribute in names:
            return getattr(importlib.import_module(f"{name}.{names[attribute]}"), attribute)
        complete()
        return getattr(module, attribute)

    vars(module)["__getattr__"] = deferred_getattr
    sys.modules[name] = module
    _put_off[name] = complete


class _Completion:
    """Runs an `__init__` that was put off before a submodule is imported that others ask for.

    Python runs it first, and there are submodules that can't be imported otherwise.
    """

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[ModuleSpec]:
        complete = _put_off.get(name.partition(".")[0])
        if complete is None or "." not in name:
            return None
        complete()
        module = sys.modules.get(name)
        if module is None:
            return None
        # Python prefers the spec of a module that appeared meanwhile, and would load it again.
        spec = ModuleSpec(name, _AlreadyLoaded(module))
        module.__spec__ = spec
        return spec


class _AlreadyLoaded:
    """Gives the import system a module that came to be while it was looking for it."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec


_completion = _Completion()


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
