"""What comes back of the values that cells make, and what is refused."""

from __future__ import annotations

import sys
import types
import unittest
import warnings
from typing import Any, ClassVar

from support import PROJECT

sys.path.insert(0, str(PROJECT / "kernel"))

from rlm.value_pickle import NeedsAnother, TooBig, Unsaved, dump, load

LIMIT = 1 << 20


class Namespaces(unittest.TestCase):
    """Saves what code defines in one `__main__` and revives it in another."""

    def setUp(self) -> None:
        self.addCleanup(sys.modules.__setitem__, "__main__", sys.modules["__main__"])

    def run_code(self, code: str) -> dict[str, Any]:
        module = types.ModuleType("__main__")
        sys.modules["__main__"] = module
        exec(compile(code, "<cell>", "exec", dont_inherit=True), vars(module))
        return vars(module)

    def revive(self, code: str) -> dict[str, Any]:
        """The namespace that comes back; `unsaved` and `failed` say what did not."""
        saved = self.run_code(code)
        names = [name for name in saved if not name.startswith("_")]
        blobs, unsaved = {}, {}
        for name in names:
            try:
                blobs[name] = dump(name, saved, set(names), LIMIT)[0]
            except BaseException as error:
                unsaved[name] = str(error)
        fresh = self.run_code("")
        failed: dict[str, str] = {}
        waiting = dict(blobs)
        for _ in names:
            for name in list(waiting):
                try:
                    fresh[name] = load(waiting[name])
                except NeedsAnother as error:
                    failed[name] = str(error)
                    continue
                del waiting[name]
                failed.pop(name, None)
        fresh.update(unsaved=unsaved, failed=failed)
        return fresh

    def assert_revived(self, code: str, expression: str, expected: object) -> None:
        namespace = self.revive(code)
        self.assertEqual((namespace["unsaved"], namespace["failed"]), ({}, {}))
        self.assertEqual(eval(expression, namespace), expected)


class Functions(Namespaces):
    def test_functions_share_the_restored_globals(self) -> None:
        code = "n = 0\ndef bump():\n    global n; n += 1; return n"
        namespace = self.revive(code)
        namespace["n"] = 100
        self.assertEqual((namespace["bump"](), namespace["n"]), (101, 101))

    def test_every_kind_of_function_comes_back(self) -> None:
        cases = {
            "f = lambda x, *, y=2: x + y": ("f(1)", 3),
            "def outer(k):\n    def inner(): return k\n    return inner\nf = outer(5)": ("f()", 5),
            "def fact(n): return 1 if n < 2 else n * fact(n - 1)": ("fact(5)", 120),
            "def gen():\n    yield from range(3)": ("list(gen())", [0, 1, 2]),
            "def f(a: int = 1) -> str:\n    'doc'": (
                "(f.__doc__, f.__annotations__, f.__defaults__)",
                ("doc", {"a": int, "return": str}, (1,)),
            ),
            "import functools\n@functools.lru_cache\ndef fib(n): return n if n < 2 else fib(n-1) + fib(n-2)": (
                "(fib(20), fib.cache_info().currsize)",
                (6765, 21),
            ),
            "import functools\ndef deco(f):\n    @functools.wraps(f)\n    def w(): return f() + 1\n    return w\n"
            "n = 1\n@deco\ndef g(): return n": ("g()", 2),
            "import contextlib\n@contextlib.contextmanager\ndef c(): yield 3": ("c().__enter__()", 3),
            "import functools\ndef f(a, b): return a - b\np = functools.partial(f, 5)": ("p(3)", 2),
            "def f(): return g()\ndef g(): return 7": ("f()", 7),
        }
        for code, (expression, expected) in cases.items():
            with self.subTest(code):
                self.assert_revived(code, expression, expected)

    def test_other_names_of_a_function_are_the_same_function(self) -> None:
        self.assert_revived(
            "def f(): pass\nalias = f\nheld = [f, {'f': f}]",
            "(alias is f, held[0] is f, held[1]['f'] is f)",
            (True, True, True),
        )


class Classes(Namespaces):
    def test_an_object_is_still_of_its_class(self) -> None:
        code = "class P: pass\nclass Q(P): pass\np, q, held = P(), Q(), [Q()]"
        self.assert_revived(code, "(isinstance(p, P), type(q) is Q, isinstance(held[0], P))", (True, True, True))

    def test_the_order_of_names_does_not_matter(self) -> None:
        code = "class P: pass\nclass Z(P): default = P()\np = P()\nitems = {'z': Z()}"
        reverse = code + "\nfor _name in ('P', 'Z', 'p'): globals()[_name] = globals().pop(_name)"
        self.assert_revived(reverse, "(type(items['z']) is Z, type(Z.default) is P)", (True, True))

    def test_an_object_of_a_class_that_was_defined_anew_keeps_its_old_one(self) -> None:
        code = "class P: version = 1\np = P()\nclass P: version = 2"
        self.assert_revived(code, "(p.version, P.version, isinstance(p, P))", (1, 2, False))

    def test_every_kind_of_class_comes_back(self) -> None:
        cases = {
            "class A:\n    def m(self): return 'a'\nclass B(A):\n    def m(self): return super().m() + 'b'": (
                "B().m()",
                "ab",
            ),
            "class A:\n    @property\n    def p(self): return 1\n    @classmethod\n    def c(cls): return cls\n"
            "    @staticmethod\n    def s(): return 3": ("(A().p, A.c() is A, A.s())", (1, True, 3)),
            "import dataclasses\n@dataclasses.dataclass(order=True)\nclass D:\n    a: int = 1\n"
            "    b: list = dataclasses.field(default_factory=list)\nd = D(2)": (
                "(d == D(2), D(1) < d, [f.name for f in dataclasses.fields(d)])",
                (True, True, ["a", "b"]),
            ),
            "import enum\nclass C(enum.Enum):\n    RED = 1\n    CRIMSON = 1\n"
            "    def shout(self): return self.name + '!'\nc = C.RED": (
                "(c is C.RED, C.CRIMSON is c, c.shout(), list(C) == [c])",
                (True, True, "RED!", True),
            ),
            "import enum\nclass F(enum.IntFlag):\n    A = 1\n    B = 2": ("int(F.A | F.B)", 3),
            "import abc\nclass A(abc.ABC):\n    @abc.abstractmethod\n    def m(self): ...\n"
            "class B(A):\n    def m(self): return 1": ("(sorted(A.__abstractmethods__), B().m())", (["m"], 1)),
            "import collections\nN = collections.namedtuple('N', 'a b', defaults=[2])\nn = N(1)": (
                "(n, type(n) is N)",
                ((1, 2), True),
            ),
            "import typing\nclass N(typing.NamedTuple):\n    a: int\n    def twice(self): return 2 * self.a\n"
            "n = N(4)": (
                "(n.twice(), type(n) is N)",
                (8, True),
            ),
            "class S:\n    __slots__ = ('a', 'b')\ns = S(); s.a = 4": (
                "(s.a, hasattr(s, 'b'), hasattr(s, '__dict__'))",
                (4, False, False),
            ),
            "class M(type):\n    def hello(cls): return 'hello'\nclass C(metaclass=M): pass": ("C.hello()", "hello"),
            "class O:\n    class I: pass\ni = O.I()": ("type(i) is O.I", True),
            "class E(ValueError): pass\ne = E('x')": ("(type(e) is E, e.args)", (True, ("x",))),
            "class _Private: n = 3\np = _Private()": ("p.n", 3),
        }
        for code, (expression, expected) in cases.items():
            with self.subTest(code):
                self.assert_revived(code, expression, expected)


class Data(Namespaces):
    def test_plain_data_and_modules_come_back(self) -> None:
        cases = {
            "import json as j": "j.dumps(1) == '1'",
            "import os.path as p": "p.join('a', 'b') == 'a/b'",
            "x = [1, 2.5, 'é', b'\\0', None, True, 1j, (), {1}, frozenset({2}), {'k': [1]}]": "x[-1] == {'k': [1]}",
            "import datetime, decimal, pathlib, re\nx = [datetime.date(2020, 1, 2), decimal.Decimal('1.5'),"
            " pathlib.Path('/x'), re.compile('a+')]": "x[3].match('aa').end() == 2",
            "import collections\nx = collections.defaultdict(lambda: 3)": "x['new'] == 3",
            "import io\nx = io.StringIO('text')": "x.getvalue() == 'text'",
            "x = type; y = type(None); z = ...": "(x, y, z) == (type, type(None), ...)",
            "x = []\nx.append(x)": "x[0] is x",
            "x = {}.keys()": "list(x) == []",
        }
        for code, expression in cases.items():
            with self.subTest(code):
                self.assert_revived(code, expression, True)

    def test_aliases_between_variables_are_not_kept_but_their_values_are(self) -> None:
        code = "s = [1]\na = {'s': s}\nb = {'s': s}\nboth = [s, s]"
        self.assert_revived(code, "(a, b, a['s'] is b['s'], both[0] is both[1])", ({"s": [1]}, {"s": [1]}, False, True))


class Refusals(Namespaces):
    LIVE: ClassVar = {
        "threading.Lock()": "a lock",
        "threading.RLock()": "a lock",
        "threading.Condition()": "a lock",
        "threading.Event()": "a lock",
        "threading.Thread()": "a thread",
        "threading.local()": "data of one thread",
        "socket.socket()": "an open socket",
        "open('/dev/null')": "an open file",
        "open('/dev/null', 'rb')": "an open file",
        "tempfile.TemporaryFile()": "an open file",
        "tempfile.NamedTemporaryFile()": "an open file",
        "tempfile.TemporaryDirectory()": "a temporary folder",
        "subprocess.Popen(['true'])": "a running process",
        "sqlite3.connect(':memory:')": "an open database",
        "(i for i in [])": "a running generator",
        "queue.Queue()": "a queue",
        "queue.SimpleQueue()": "a queue",
        "multiprocessing.Queue()": "a queue",
        "multiprocessing.Lock()": "a lock",
        "memoryview(b'x')": "a view",
        "ctypes.pointer(ctypes.c_int(1))": "a pointer",
        "ctypes.c_char_p(b'x')": "a pointer",
        "weakref.ref(subprocess.Popen)": "a weak reference",
        "asyncio.Queue()": "a part of",
        "concurrent.futures.Future()": "the pending result",
        "contextvars.ContextVar('x')": "a context variable",
        "mmap.mmap(-1, 10)": "a mapped file",
        "sys._getframe()": "a stack frame",
        "selectors.DefaultSelector()": "an open",
    }
    IMPORTS = (
        "import asyncio, concurrent.futures, contextvars, ctypes, mmap, multiprocessing, queue, selectors, socket\n"
        "import sqlite3, subprocess, sys, tempfile, threading, weakref\n"
    )

    def test_live_resources_are_refused_with_a_reason_also_deep_inside(self) -> None:
        for expression, reason in self.LIVE.items():
            with self.subTest(expression), warnings.catch_warnings():
                warnings.simplefilter("ignore", ResourceWarning)
                saved = self.run_code(
                    f"{self.IMPORTS}top = {expression}\ndeep = [{{'k': (top, 1)}}]\n"
                    "class Holder: pass\nholder = Holder(); holder.it = top"
                )
                for name, verb in (("top", "is"), ("deep", "holds"), ("holder", "holds")):
                    with self.assertRaisesRegex(Unsaved, f"^{verb} {reason}"):
                        dump(name, saved, set(saved), LIMIT)
                saved.clear()

    def test_a_function_that_holds_one_is_refused(self) -> None:
        saved = self.run_code(
            "import threading\ndef make():\n    lock = threading.Lock()\n"
            "    def f(): return lock\n    return f\nf = make()"
        )
        with self.assertRaisesRegex(Unsaved, "holds a lock"):
            dump("f", saved, set(saved), LIMIT)

    def test_the_namespace_itself_and_a_made_up_module_are_refused(self) -> None:
        saved = self.run_code("import types\ng = globals()\nm = types.ModuleType('nowhere')")
        with self.assertRaisesRegex(Unsaved, "is the namespace itself"):
            dump("g", saved, set(saved), LIMIT)
        with self.assertRaisesRegex(Unsaved, "'nowhere', which can't be imported"):
            dump("m", saved, set(saved), LIMIT)

    def test_a_value_that_nothing_can_save_gives_its_own_error(self) -> None:
        saved = self.run_code("import csv\nr = csv.reader([])")
        with self.assertRaisesRegex(TypeError, "csv.reader"):
            dump("r", saved, set(saved), LIMIT)

    def test_pickling_stops_at_the_limit_instead_of_walking_it_all(self) -> None:
        saved = self.run_code(
            "seen = []\nclass C:\n    def __reduce__(self): seen.append(1); return (bytes, (1000,))\n"
            "many = [C() for _ in range(100_000)]"
        )
        with self.assertRaises(TooBig):
            dump("many", saved, set(saved), 100_000)
        self.assertLess(len(saved["seen"]), 50_000)


if __name__ == "__main__":
    unittest.main()
