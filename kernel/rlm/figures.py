"""Shows matplotlib's figures in cells, without telling the kernel's children about it.

ipykernel sets MPLBACKEND for this. Programs that cells start would inherit it, and a plotting script
of the project's own Python would fail, where `matplotlib_inline` is not installed.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Optional

INLINE_BACKEND = "module://matplotlib_inline.backend_inline"


def install() -> None:
    """Waits for the import of matplotlib. Call once, before cells run."""
    sys.meta_path.insert(0, _MatplotlibFinder())


class _MatplotlibFinder:
    """Steps aside at the first import of matplotlib, after which it chooses the backend."""

    def find_spec(
        self, name: str, path: Any = None, target: Optional[ModuleType] = None
    ) -> Optional[ModuleSpec]:
        if name != "matplotlib":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        loader: Any = spec.loader if spec else None
        if loader is None:
            return spec
        load = loader.exec_module

        def load_and_choose(module: ModuleType) -> None:
            load(module)
            choose_backend(module)

        loader.exec_module = load_and_choose
        return spec


def choose_backend(matplotlib: Any) -> None:
    """The inline backend, unless the user named another or it is not installed."""
    if not os.environ.get("MPLBACKEND") and importlib.util.find_spec("matplotlib_inline"):
        matplotlib.rcParams["backend"] = INLINE_BACKEND
