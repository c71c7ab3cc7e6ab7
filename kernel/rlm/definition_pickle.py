"""Pickles functions and classes that cells define, by what they are made of.

In two steps, first the empty thing and then its contents, since both may refer to themselves. A
function shares the globals that it had: those of its module, which is `__main__` for cells.
"""

from __future__ import annotations

import functools
import importlib
import marshal
import pickle
import sys
from abc import ABCMeta
from collections import namedtuple
from enum import EnumMeta
from types import CellType, CodeType, FunctionType, new_class
from typing import Any

Namespace = dict[str, Any]

CachedFunction: Any = functools._lru_cache_wrapper
# What can be had by its name, if it is still there.
NAMED = (FunctionType, CachedFunction, type)
DEFINED = (*NAMED, CellType, CodeType, property, classmethod, staticmethod)
METHODS = (FunctionType, property, classmethod, staticmethod)

# What a class has to be made with; all else is set afterwards.
BODY = ("__module__", "__qualname__", "__doc__", "__slots__", "__orig_bases__", "__annotations__")
# Made anew with the class.
OWN = ("__dict__", "__weakref__", "_abc_impl")
FUNCTION_STATE = ("__defaults__", "__kwdefaults__", "__dict__", "__qualname__", "__module__", "__doc__")


def find_in(namespace: Namespace, qualified_name: str) -> Any:
    """The value of `Outer.inner`, or None."""
    first, *rest = qualified_name.split(".")
    found = namespace.get(first)
    for name in rest:
        found = getattr(found, name, None)
    return found


def reduce_definition(value: Any) -> Any:
    """The reduction of a value of a DEFINED type; None for a class that dill has to do."""
    if isinstance(value, FunctionType):
        return _reduce_function(value)
    if isinstance(value, CachedFunction):
        settings = value.cache_parameters()
        return make_cached, (value.__wrapped__, settings["maxsize"], settings["typed"])
    if isinstance(value, CellType):
        return _reduce_cell(value)
    if isinstance(value, CodeType):
        return marshal.loads, (marshal.dumps(value),)
    if isinstance(value, property):
        return type(value), (value.fget, value.fset, value.fdel, value.__doc__)
    if isinstance(value, (classmethod, staticmethod)):
        return type(value), (value.__func__,)
    return _reduce_class(value)


def _reduce_function(function: FunctionType) -> Any:
    state = {name: getattr(function, name) for name in FUNCTION_STATE}
    state["__annotations__"] = dict(function.__annotations__)
    scope = _scope(function.__globals__)
    arguments = (function.__code__, scope, function.__name__, function.__closure__)
    return make_function, arguments, state, None, None, set_attributes


def _scope(own: Namespace) -> str | Namespace:
    """How a function's globals are named: by their module, or themselves if they are of none."""
    module = sys.modules.get(own.get("__name__", ""))
    return module.__name__ if module is not None and vars(module) is own else own


def make_function(code: CodeType, scope: str | Namespace, name: str, closure: Any) -> FunctionType:
    """A function whose state is still to be set."""
    if isinstance(scope, str):
        scope = vars(importlib.import_module(scope))
    return FunctionType(code, scope, name, None, closure)


def make_cached(function: Any, maxsize: int | None, typed: bool) -> Any:
    """The function with an `lru_cache`, empty."""
    return functools.lru_cache(maxsize, typed)(function)


def _reduce_cell(cell: CellType) -> Any:
    try:
        state = (cell.cell_contents,)
    except ValueError:  # not filled yet
        return CellType, ()
    return CellType, (), state, None, None, fill_cell


def fill_cell(cell: CellType, state: tuple[Any]) -> None:
    """Puts the contents into a cell."""
    cell.cell_contents = state[0]


def _reduce_class(cls: type) -> Any:
    if isinstance(cls, EnumMeta):
        return _reduce_enum(cls)
    if cls.__bases__ == (tuple,) and hasattr(cls, "_field_defaults"):
        return _reduce_namedtuple(cls)
    if type(cls) not in (type, ABCMeta):
        return None
    attributes = {name: value for name, value in vars(cls).items() if name not in OWN}
    body = {name: attributes.pop(name) for name in BODY if name in attributes}
    body["__qualname__"] = cls.__qualname__
    arguments = (type(cls), cls.__name__, cls.__bases__, body)
    return make_class, arguments, attributes, None, None, set_attributes


def make_class(metaclass: type, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
    """A class with this body."""

    def fill(namespace: Any) -> None:
        for key, value in body.items():
            namespace[key] = value

    return new_class(name, bases, {"metaclass": metaclass}, fill)


def set_attributes(target: Any, attributes: dict[str, Any]) -> None:
    """Gives a class or function its attributes."""
    for name, value in attributes.items():
        setattr(target, name, value)


def _reduce_enum(cls: EnumMeta) -> Any:
    """An enumeration: its members in order, and the methods that were written for it."""
    own = vars(cls)
    if _is_method(own.get("__new_member__")) or _is_method(own.get("_new_member_")):
        raise pickle.PicklingError("is an enumeration with a __new__ of its own")
    body = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
    body.update((name, value) for name, value in own.items() if _is_method(value))
    members: Any = cls.__members__
    body.update((name, member.value) for name, member in members.items())
    return make_class, (type(cls), cls.__name__, cls.__bases__, body)


def _reduce_namedtuple(cls: Any) -> Any:
    attributes = {name: value for name, value in vars(cls).items() if _is_method(value)}
    attributes["__qualname__"] = cls.__qualname__
    attributes["__annotations__"] = dict(getattr(cls, "__annotations__", {}))
    arguments = (cls.__name__, cls._fields, cls._field_defaults, cls.__module__)
    return make_namedtuple, arguments, attributes, None, None, set_attributes


def make_namedtuple(name: str, fields: tuple[str, ...], defaults: dict[str, Any], module: str) -> type:
    """A named tuple class; the fields with a default are the last ones."""
    return namedtuple(name, fields, defaults=tuple(defaults.values()), module=module)  # type: ignore


def _is_method(value: Any) -> bool:
    """Whether a cell wrote it, rather than the class's own machinery."""
    function = getattr(value, "fget", None) or getattr(value, "__func__", value)
    return isinstance(value, METHODS) and getattr(function, "__module__", None) == "__main__"
