"""Types whose objects mean something only in the process that made them.

Some could be pickled, and would come back wrong: a lock that nobody will release, a process that
looks as if it were still running, a file at another position. They are never saved, and reported.
"""

from __future__ import annotations

FILE = "an open file"
LOCK = "a lock or other thread synchronisation"
LOOP = "a part of a running event loop"
QUEUE = "a queue between threads or processes"
PROCESS = "a running process"
SOCKET = "an open socket or connection"
REFERENCE = "a weak reference"
POINTER = "a pointer into memory"
CONTEXT = "a context variable"
DATABASE = "an open database"
ENGINE = "the kernel itself"

# By name, so that no module has to be imported for the comparison. Subclasses count too.
KINDS = {
    "_asyncio.Future": LOOP,
    "_contextvars.Context": CONTEXT,
    "_contextvars.ContextVar": CONTEXT,
    "_contextvars.Token": CONTEXT,
    "_ctypes.CFuncPtr": POINTER,
    "_ctypes._Pointer": POINTER,
    "_io._IOBase": FILE,
    "_queue.SimpleQueue": QUEUE,
    "_socket.socket": SOCKET,
    "_ssl._SSLContext": SOCKET,
    "_ssl._SSLSocket": SOCKET,
    "_thread.RLock": LOCK,
    "_thread._local": "data of one thread",
    "_thread.lock": LOCK,
    "IPython.core.interactiveshell.InteractiveShell": ENGINE,
    "asyncio.events.AbstractEventLoop": LOOP,
    "asyncio.futures.Future": LOOP,
    "asyncio.mixins._LoopBoundMixin": LOOP,
    "asyncio.streams.StreamReader": LOOP,
    "asyncio.streams.StreamWriter": LOOP,
    "asyncio.subprocess.Process": PROCESS,
    "asyncio.transports.BaseTransport": LOOP,
    "builtins.async_generator": "a running generator",
    "builtins.coroutine": "a coroutine",
    "builtins.frame": "a stack frame",
    "builtins.generator": "a running generator",
    "builtins.memoryview": "a view into memory",
    "builtins.traceback": "a traceback with its stack frames",
    "concurrent.futures._base.Executor": "a pool of workers",
    "concurrent.futures._base.Future": "the pending result of a worker",
    "ctypes.CDLL": "a loaded library",
    "ctypes.c_char_p": POINTER,
    "ctypes.c_void_p": POINTER,
    "ctypes.c_wchar_p": POINTER,
    "ipykernel.kernelbase.Kernel": ENGINE,
    "mmap.mmap": "a mapped file",
    "multiprocessing.connection._ConnectionBase": SOCKET,
    "multiprocessing.managers.BaseManager": PROCESS,
    "multiprocessing.managers.BaseProxy": PROCESS,
    "multiprocessing.pool.Pool": "a pool of workers",
    "multiprocessing.process.BaseProcess": PROCESS,
    "multiprocessing.queues.Queue": QUEUE,
    "multiprocessing.queues.SimpleQueue": QUEUE,
    "multiprocessing.shared_memory.SharedMemory": "shared memory",
    "multiprocessing.synchronize.SemLock": LOCK,
    "queue.Queue": QUEUE,
    "select.epoll": SOCKET,
    "selectors.BaseSelector": SOCKET,
    "sqlite3.Connection": DATABASE,
    "sqlite3.Cursor": DATABASE,
    "subprocess.Popen": PROCESS,
    "tempfile.SpooledTemporaryFile": FILE,
    "tempfile.TemporaryDirectory": "a temporary folder",
    "tempfile._TemporaryFileWrapper": FILE,
    "threading.Barrier": LOCK,
    "threading.Condition": LOCK,
    "threading.Event": LOCK,
    "threading.Semaphore": LOCK,
    "threading.Thread": "a thread",
    "threading._RLock": LOCK,
    "typing.ParamSpec": "a type variable",
    "typing.TypeVar": "a type variable",
    "weakref.ProxyType": REFERENCE,
    "weakref.CallableProxyType": REFERENCE,
    "weakref.ReferenceType": REFERENCE,
    "zmq.sugar.context.Context": SOCKET,
    "zmq.sugar.socket.Socket": SOCKET,
}

# In memory only, in spite of their base class.
HARMLESS = frozenset({"_io.BytesIO", "_io.StringIO"})


def kind_of(cls: type) -> str | None:
    """What objects of this class are, as in "an open socket"; None when they can be saved."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in cls.__mro__]
    if not HARMLESS.isdisjoint(names):
        return None
    return next((KINDS[name] for name in names if name in KINDS), None)
