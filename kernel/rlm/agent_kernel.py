"""IPython's kernel, whose cells can be interrupted, can fork, and can end without harm to it."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import socket
import sys
import threading
import traceback
from contextlib import AbstractContextManager
from typing import Any, NoReturn, Optional

from rlm import children, processes
from rlm.contract import CONTRACT
from rlm.interrupts import Interrupts, interrupt_main_thread
from rlm.lean_imports import lean_imports

with lean_imports():
    import ipykernel.debugger  # noqa: F401  Finds no debugpy here, and so offers no debugger.
    from ipykernel.ipkernel import IPythonKernel


# Delivered to the main thread so long after an interrupt.
NUDGES_SECONDS = (0.02, 0.1, 0.5)
# How long hooks may go on that IPython calls before a cell, such as %autoreload's.
INSIST_SECONDS = 0.2


class AgentKernel(IPythonKernel):
    """See the head of this file. Works with ipykernel 6.17 to 7."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(shell_channel_thread=NoSubshells(), **kwargs)
        self.is_ending = False
        self.interrupts = Interrupts()
        self._wakeup: Optional[socket.socket] = None
        self.shell.run_cell_async = ending_forks(self.shell.run_cell_async)
        self.shell.run_code = self._interruptible(self.shell.run_code)

    @property
    def _supports_kernel_subshells(self) -> bool:
        return False

    def start(self) -> None:
        """Starts reading the channels, without the debugger's."""
        self.shell.exit_now = False
        signal.signal(signal.SIGURG, lambda *_: None)
        self.interrupts.repeat_swallowed()
        self.interrupts.heed_system()
        self._loop_thread = threading.get_ident()
        super(IPythonKernel, self).start()
        receiving, self._wakeup = socket.socketpair()
        for end in (receiving, self._wakeup):
            end.setblocking(False)
        self.io_loop.add_handler(receiving, lambda *_: receiving.recv(4096), self.io_loop.READ)
        os.register_at_fork(after_in_child=self._end_fork_at_loop)

    def _end_fork_at_loop(self) -> None:
        """Makes a process that a task forked end where it would come back to our event loop."""
        if threading.get_ident() == self._loop_thread:
            self.io_loop.asyncio_loop.call_soon(end_fork, None)

    def pre_handler_hook(self) -> None:
        """Instead of letting SIGINT raise in all that a request is handled with."""

    def post_handler_hook(self) -> None:
        """Belongs to `pre_handler_hook`."""

    async def do_execute(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Runs a cell. The reply comes whenever an interrupt does."""
        if self._wakeup is not None:
            # ipykernel's SIGINT handler only queues work. Without this a cell that sleeps in a
            # top-level `await` would sleep on until something else woke the loop.
            signal.set_wakeup_fd(self._wakeup.fileno(), warn_on_full_buffer=False)
        cell_id = self.get_parent("shell")["header"]["msg_id"]
        children.note_cell_start(cell_id)
        try:
            try:
                self.interrupts.prepare(cell_id)
                return await super().do_execute(*args, **kwargs)
            finally:
                self.interrupts.finish()
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            # It came outside of the cell's own code, where IPython would have handled it.
            self.interrupts.finish()
            return self._interrupted_reply(error)
        finally:
            # A cell that takes the streams away would keep ipykernel 6 from answering.
            sys.stdout = sys.stdout or self._stdout
            sys.stderr = sys.stderr or self._stderr

    def _interruptible(self, run_code: Any) -> Any:
        """Lets interrupts raise when IPython has prepared a cell and begins with its code."""

        @functools.wraps(run_code)
        async def run(*args: Any, **kwargs: Any) -> Any:
            self.interrupts.run()
            return await run_code(*args, **kwargs)

        return run

    def _interrupted_reply(self, error: BaseException) -> dict[str, Any]:
        lines = traceback.format_exception_only(type(error), error)
        content = {"ename": type(error).__name__, "evalue": str(error), "traceback": lines}
        self.send_response(self.iopub_socket, "error", content)
        self.shell.payload_manager.clear_payload()
        count = self.shell.execution_count
        return {"status": "error", "execution_count": count, "user_expressions": {}, "payload": [], **content}

    def _cancel_on_sigint(self, future: Any) -> AbstractContextManager[None]:
        """Ends a cell with a top-level `await`, wherever it is."""
        return self.interrupts.raising_in(future)

    async def interrupt_request(self, stream: Any, ident: Any, parent: Any) -> None:
        """Interrupts the cell, also one that has yet to begin, and makes sure that it notices.

        A request may name the cell that it is for. SIGINT goes to the main thread and to what the cell
        has started in our process group, and not to all of that: servers of earlier cells live on.
        """
        cell_id = parent["metadata"].get(CONTRACT["interrupt"]["cell"])
        if not isinstance(cell_id, str) or self.interrupts.want(cell_id):
            interrupt_main_thread()
            self._see_to_it()
            try:
                processes.send(children.cell_group(), signal.SIGINT)
            except OSError:  # A cell can close any descriptor, also one with which we read the table.
                self.log.error("The cell's processes could not be found:", exc_info=True)
        self.session.send(stream, "interrupt_reply", {"status": "ok"}, parent, ident=ident)

    def _see_to_it(self) -> None:
        """Makes sure that the main thread notices an interrupt.

        A signal that comes just before a system call does not end that: `time.sleep(1000)` would sleep
        on. Another signal, whose handler does nothing, makes Python look for the first.
        """
        loop = self.control_thread.io_loop
        loop.call_later(INSIST_SECONDS, self.interrupts.insist)
        for seconds in NUDGES_SECONDS:
            loop.call_later(seconds, nudge_main_thread)

    def do_shutdown(self, restart: bool) -> Any:
        """Answers a shutdown request; when the event loop ends next, the kernel does."""
        self.is_ending = True
        return super().do_shutdown(restart)

    async def _progressively_terminate_all_children(self) -> None:
        """Ends the children, those in shell sessions included, in bounded time."""
        children.end_all()


def nudge_main_thread() -> None:
    """Ends a system call of the main thread, which goes on with it if there was no reason to."""
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGURG)


class NoSubshells:
    """Stands for ipykernel 7's shell channel thread, which we do without.

    It only serves subshells, costs a thread hop for each message, and before 7.4 could leave a
    request unread until the next one came.
    """

    parent_thread = threading.main_thread()

    def __bool__(self) -> bool:
        return False


def ending_forks(run_cell_async: Any) -> Any:
    """Makes a process that a cell forked end where the cell does.

    Going on to the event loop it would be a second kernel, which reads from the first one's sockets.
    """

    @functools.wraps(run_cell_async)
    async def run(*args: Any, **kwargs: Any) -> Any:
        pid = os.getpid()
        result = await run_cell_async(*args, **kwargs)
        if os.getpid() != pid:
            end_fork(result.error_before_exec or result.error_in_exec)
        return result

    return run


def end_fork(error: Optional[BaseException]) -> NoReturn:
    """Ends this process as Python would end a script with `error`."""
    sys.stdout.flush()
    sys.stderr.flush()
    if isinstance(error, SystemExit):
        os._exit(error.code if isinstance(error.code, int) else int(error.code is not None))
    os._exit(int(error is not None))
