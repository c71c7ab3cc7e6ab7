"""Pickles one variable of a namespace, and brings it back.

Data, functions and classes go through the C pickler; what that and we can't do, dill may. Functions
and classes that are variables themselves are saved once, under their name, and referred to by it
elsewhere: so `isinstance` still holds afterwards. Other aliases between variables are not kept.
"""

from __future__ import annotations

import importlib
import io
import pickle
import sys
from collections.abc import Container
from functools import cache
from types import ModuleType
from typing import Any

from rlm.definition_pickle import DEFINED, NAMED, Namespace, find_in, reduce_definition
from rlm.live_resources import kind_of

PROTOCOL = 5
NONE_TYPES = (type(None), type(NotImplemented), type(...))

# What `_kinds` says of a class whose objects need no attention, or a look at each.
PLAIN = ""
SPECIAL = "special"

_kinds: dict[type, str] = {}


class Unsaved(BaseException):
    """The variable can't be saved. Not an Exception, so that no `except` of a class swallows it."""


class TooBig(Unsaved):
    """The variable takes more bytes than it may."""


class NeedsDill(pickle.PicklingError):
    """A definition that only dill can save."""


class NeedsAnother(Exception):
    """A variable that this one refers to is not there, or not yet."""


def dump(name: str, namespace: Namespace, saved: Container[str], limit: int) -> tuple[bytes, bool]:
    """The pickle of the variable `name` of `__main__`, and whether it holds compiled code.

    `saved` are the names that are saved themselves and may be referred to. Unsaved when it can't be
    done, and whatever the value's own methods raise.
    """
    job = _Job(name, namespace, saved, limit)
    if job.root is namespace:
        raise Unsaved("is the namespace itself")
    try:
        return job.fast(), job.has_code
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        try:
            return job.by_dill(), True
        except (ImportError, pickle.PicklingError, AttributeError, TypeError):
            raise error from None


def load(blob: bytes) -> Any:
    """The value of a pickle. NeedsAnother, and whatever the value's own methods raise."""
    return _Unpickler(io.BytesIO(blob)).load()


class _Job:
    """One variable on its way into a pickle."""

    def __init__(self, name: str, namespace: Namespace, saved: Container[str], limit: int) -> None:
        self.name = name
        self.root = namespace[name]
        self.namespace = namespace
        self.saved = saved
        self.limit = limit
        self.has_code = False

    def fast(self) -> bytes:
        """By the C pickler."""
        sink = _Sink(self.limit)
        _Pickler(sink, self).dump(self.root)
        return sink.value()

    def by_dill(self) -> bytes:
        """By dill, embedded in an ordinary pickle."""
        inner, sink = _Sink(self.limit), _Sink(self.limit)
        _dill_classes()[0](inner, self).dump(self.root)
        _Pickler(sink, self).dump(_Embedded(inner.value()))
        return sink.value()

    def special(self, value: Any) -> Any:
        """What a pickler's `reducer_override` returns for a value that needs a look. NeedsDill."""
        if isinstance(value, ModuleType):
            return importlib.import_module, (_module_name(value),)
        if isinstance(value, NAMED) and (self.is_saved_elsewhere(value) or _is_importable(value)):
            return NotImplemented
        self.has_code = True
        reduction = reduce_definition(value)
        if reduction is None:
            raise NeedsDill(f"{value!r} is of a kind that only dill can save")
        return reduction

    def refuse_live(self, value: Any) -> bool:
        """Unsaved for a live resource; otherwise whether the value needs a look."""
        kind = _kinds.get(type(value))
        if kind is None:
            kind = _classify(type(value))
        if kind and kind is not SPECIAL:
            raise Unsaved(f"{'is' if value is self.root else 'holds'} {kind}")
        return kind is SPECIAL

    def is_saved_elsewhere(self, value: Any) -> bool:
        """Whether a function or class is saved as, or in, another variable, under its own name."""
        if value.__module__ != "__main__":
            return False
        first = value.__qualname__.split(".")[0]
        is_elsewhere = first != self.name and first in self.saved
        return is_elsewhere and find_in(self.namespace, value.__qualname__) is value


class _Pickler(pickle.Pickler):
    """The C pickler, which shows us all but the plainest objects."""

    def __init__(self, sink: _Sink, job: _Job) -> None:
        super().__init__(sink, protocol=PROTOCOL)
        self._job = job

    def reducer_override(self, value: Any) -> Any:
        return self._job.special(value) if self._job.refuse_live(value) else NotImplemented


class _Embedded:
    """Reduces to the value that a dill blob holds."""

    def __init__(self, blob: bytes) -> None:
        self.blob = blob

    def __reduce__(self) -> Any:
        return _load_dill, (self.blob,)


class _Sink:
    """Takes a pickle's bytes and stops it at a limit, before it has walked a whole huge object."""

    def __init__(self, limit: int) -> None:
        self._chunks: list[bytes] = []
        self._left = limit

    def write(self, chunk: Any) -> int:
        size = memoryview(chunk).nbytes
        self._left -= size
        if self._left < 0:
            raise TooBig
        self._chunks.append(bytes(chunk))
        return size

    def value(self) -> bytes:
        return b"".join(self._chunks)


class _Unpickler(pickle.Unpickler):
    """Notices when what a cell defined is not there yet."""

    def find_class(self, module: str, name: str) -> Any:
        return _restored(name) if module == "__main__" else super().find_class(module, name)


def _load_dill(blob: bytes) -> Any:
    """Loads an embedded dill blob."""
    return _dill_classes()[1](io.BytesIO(blob)).load()


def _restored(name: str) -> Any:
    found = find_in(vars(sys.modules["__main__"]), name)
    if found is None:
        raise NeedsAnother(f"needs `{name.split('.')[0]}`, which is not there")
    return found


def _classify(cls: type) -> str:
    kind = kind_of(cls)
    if kind is None:
        kind = SPECIAL if issubclass(cls, (*DEFINED, ModuleType)) else PLAIN
    _kinds[cls] = kind
    return kind


def _is_importable(value: Any) -> bool:
    """Whether a function or class can be had from its module by its name."""
    if any(value is cls for cls in NONE_TYPES):
        return True
    module = None if value.__module__ == "__main__" else sys.modules.get(value.__module__ or "")
    return module is not None and find_in(vars(module), value.__qualname__) is value


def _module_name(module: ModuleType) -> str:
    if sys.modules.get(module.__name__) is not module or module.__name__ == "__main__":
        raise Unsaved(f"needs the module {module.__name__!r}, which can't be imported again")
    return module.__name__


@cache
def _dill_classes() -> tuple[Any, Any]:
    """Our dill pickler and unpickler. Made when needed, since importing dill takes a while."""
    import dill

    class DillPickler(dill.Pickler):  # type: ignore[misc]
        """dill, with the same refusals, references and definitions as the C pickler."""

        def __init__(self, sink: _Sink, job: _Job) -> None:
            super().__init__(sink, protocol=PROTOCOL, byref=False, recurse=False)
            self._job = job

        def persistent_id(self, value: Any) -> Any:
            self._job.refuse_live(value)
            is_elsewhere = isinstance(value, NAMED) and self._job.is_saved_elsewhere(value)
            return value.__qualname__ if is_elsewhere else None

        def reducer_override(self, value: Any) -> Any:
            if not self._job.refuse_live(value):
                return NotImplemented
            if isinstance(value, type) and value.__module__ != "__main__":
                return NotImplemented
            try:
                return self._job.special(value)
            except NeedsDill:
                return NotImplemented

    class DillUnpickler(dill.Unpickler):  # type: ignore[misc]
        """Its counterpart."""

        def __init__(self, file: io.BytesIO) -> None:
            super().__init__(file, ignore=True)

        def find_class(self, module: str, name: str) -> Any:
            return _restored(name) if module == "__main__" else super().find_class(module, name)

        def persistent_load(self, name: str) -> Any:
            return _restored(name)

    return DillPickler, DillUnpickler
