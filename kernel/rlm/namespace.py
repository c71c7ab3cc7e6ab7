"""The user's names: which they are, what they hold in a word, and how one is removed."""

from __future__ import annotations

from types import FunctionType, ModuleType
from typing import Any

MAX_LISTED = 500
SIZED = (str, bytes, bytearray, list, tuple, dict, set, frozenset, range)
MAX_VALUE_CHARS = 40

_ABSENT = object()


def user_names(shell: Any) -> list[str]:
    """The names that are the user's: without `_…`, IPython's own and the host's, unless rebound."""
    hidden = shell.user_ns_hidden
    return [
        name
        for name, value in list(shell.user_ns.items())
        if isinstance(name, str) and not name.startswith("_") and hidden.get(name, _ABSENT) is not value
    ]


def describe(value: Any) -> str:
    """What a value is, without running code of its class: `int 42`, `list, 3 items`."""
    kind = type(value)
    if value is None or kind in (bool, int, float, complex):
        text = repr(value) if kind is not int or value.bit_length() < 128 else "…"
        return text if value is None else f"{kind.__name__} {text}"
    if kind in SIZED:
        unit = "characters" if kind is str else "bytes" if kind in (bytes, bytearray) else "items"
        return f"{kind.__name__}, {len(value)} {unit}"
    if isinstance(value, (FunctionType, type)):
        return "function" if isinstance(value, FunctionType) else "class"
    if isinstance(value, ModuleType):
        return f"module {value.__name__}"
    shape = _shape(value, kind)
    module = "" if kind.__module__ in ("builtins", "__main__") else f"{kind.__module__}."
    return f"{module}{kind.__qualname__}{shape}"


def remove(shell: Any, name: str, value: Any) -> None:
    """Removes a variable and what IPython keeps of its value: `Out`, `_`, `_3`, the last result."""
    hook = shell.displayhook
    for recent in ("_", "__", "___"):
        if shell.user_ns.get(recent) is value:
            shell.user_ns[recent] = ""
        if getattr(hook, recent, None) is value:
            setattr(hook, recent, "")
    for names in (shell.user_ns, shell.user_ns_hidden):
        for own_name, own in list(names.items()):
            if own is value and (own_name == name or own_name.startswith("_")):
                del names[own_name]
    outputs = shell.user_ns.get("_oh", {})
    for number, output in list(outputs.items()):
        if output is value:
            del outputs[number]
    last = getattr(shell, "last_execution_result", None)
    if last is not None and last.result is value:
        last.result = None


def _shape(value: Any, kind: type) -> str:
    """The shape of an array or table of the well-known packages."""
    if kind.__module__.split(".")[0] not in ("numpy", "pandas", "torch", "polars"):
        return ""
    try:
        return f" {tuple(value.shape)}"
    except (AttributeError, TypeError):
        return ""


def names_with_descriptions(shell: Any) -> dict[str, Any]:
    """All of it for the host: `{names: [{name, description}], omitted}`."""
    names = user_names(shell)
    listed = [
        {"name": name, "description": describe(shell.user_ns[name])}
        for name in names[:MAX_LISTED]
        if name in shell.user_ns
    ]
    return {"names": listed, "omitted": max(0, len(names) - MAX_LISTED)}
