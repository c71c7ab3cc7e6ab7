"""The names that cells find from the start, and how they come back when a cell has lost them.

Before each cell, a name that is gone (`del`, `%reset`) is there again. A name that a cell has given
another value keeps it, since `goal = "…"` may well be meant; it becomes the helper again before a cell
that uses it as the helper, and not as what it is: that calls it, or asks it for something that only
the helper has. Either way one line on stderr says so.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable
from typing import Any

_helpers: dict[str, Any] = {}
_shell: Any = None


def install(shell: Any, values: dict[str, Any]) -> None:
    """Puts `values` into the user's namespace, now and whenever they are missed."""
    global _shell
    _shell = shell
    for name in set(_helpers) - set(values):
        if shell.user_ns.get(name) is _helpers[name]:
            del shell.user_ns[name]
    _helpers.clear()
    _helpers.update(values)
    _bind(values)
    shell.events.register("pre_run_cell", _before_cell)


def names() -> set[str]:
    """The names that are the host's, not the user's, as long as they have their first value."""
    return {name for name, value in _helpers.items() if _shell.user_ns.get(name) is value}


def _bind(values: dict[str, Any]) -> None:
    _shell.user_ns.update(values)
    # IPython's own list of what is not the user's: %who and %whos leave it out.
    _shell.user_ns_hidden.update(values)


def _before_cell(info: Any) -> None:
    current = _shell.user_ns
    # Without it no cell can do anything, not even mend it.
    current["__builtins__"] = builtins
    lost = [name for name in _helpers if name not in current]
    taken = [name for name in _helpers if name in current and current[name] is not _helpers[name]]
    wanted = _used_as_helpers(taken, info.raw_cell) if taken else []
    if lost or wanted:
        _bind({name: _helpers[name] for name in [*lost, *wanted]})
    if lost:
        _say(f"{_list(lost)} had been removed and can be used again")
    if wanted:
        _say(f"{_list(wanted)} had been given another value and can be used again; that value is gone")


def _used_as_helpers(taken: list[str], cell: str) -> list[str]:
    """Which of these names the cell uses in a way that only the helper can be used."""
    try:
        tree = ast.parse(_shell.transform_cell(cell))
    except (SyntaxError, ValueError):
        return []
    assigned = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    found = set()
    for node in ast.walk(tree):
        name, is_usable = _use(node)
        if name not in taken or name in assigned:
            continue
        if is_usable(_helpers[name]) and not is_usable(_shell.user_ns[name]):
            found.add(name)
    return [name for name in taken if name in found]


def _use(node: ast.AST) -> tuple[str, Callable[[Any], bool]]:
    """The name that this part of a cell calls or takes an attribute of, and what can be used so."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id, callable
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        return node.value.id, lambda value: hasattr(value, node.attr)
    return "", callable


def _list(found: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in found)


def _say(text: str) -> None:
    print(f"note: {text}", file=sys.stderr)
