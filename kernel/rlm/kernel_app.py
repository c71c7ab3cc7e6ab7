"""The kernel itself: ipykernel's application without its command line, files and debugger.

Nothing is read from the user's IPython configuration and nothing is written to the home folder: the
same cell does the same thing on every machine. Works with ipykernel 6.17 to 7 and IPython 8.5 to 9.
"""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from rlm import figures, process_identity
from rlm.agent_kernel import AgentKernel
from rlm.lean_imports import lean_imports

with lean_imports():
    import ipykernel._version
    import IPython.core.release
    import zmq
    from ipykernel.control import ControlThread
    from ipykernel.heartbeat import Heartbeat
    from ipykernel.kernelapp import IPKernelApp
    from IPython.core.profiledir import ProfileDir
    from tornado.ioloop import IOLoop
    from traitlets import observe
    from traitlets.config import Config
    from zmq.eventloop.zmqstream import ZMQStream

IPYTHON_VERSION: str = IPython.core.release.version
IPYTHON_MAJOR: int = IPython.core.release.version_info[0]
IPYKERNEL_VERSION: str = ipykernel._version.__version__

CHANNEL_PORTS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


class PrivateProfile(ProfileDir):
    """An IPython profile that makes no folders; `%store` makes its own when it is used."""

    @observe("location")
    def _location_changed(self, change: Any) -> None:
        """Keeps ProfileDir from filling the folder."""


class BoundHeartbeat(Heartbeat):
    """A heartbeat whose socket is bound before its thread runs, so that ready means ready."""

    def bind(self) -> None:
        """Binds; `zmq.ZMQError` when the address can't be had."""
        self.socket = self.context.socket(zmq.ROUTER)
        self.socket.linger = 1000
        self._bind_socket()

    def run(self) -> None:
        """Echoes until the context ends."""
        while True:
            try:
                zmq.device(zmq.QUEUE, self.socket, self.socket)
            except zmq.ZMQError as error:
                if error.errno == errno.EINTR:
                    continue
                self.socket.close()
                return


class KernelApp(IPKernelApp):
    """Opens one kernel on the addresses of a connection file."""

    kernel_class = AgentKernel
    # Its default would import all of jupyter_client for a client that nobody asks for.
    blocking_class = None
    diagnostics: TextIO = sys.__stderr__

    def prepare(self, folder: str) -> None:
        """Makes kernel and shell, without threads, sockets or an event loop: a fork can still open it."""
        self.init_crash_handler()
        self.profile_dir = PrivateProfile(location=os.path.join(folder, "ipython"), parent=self)
        with private_environment(self.profile_dir.location):
            self.kernel = AgentKernel.instance(
                parent=self,
                session=None,
                log=self.log,
                profile_dir=self.profile_dir,
                user_ns=self.user_ns,
            )
        self.init_shell()
        figures.install()
        self.init_extensions()
        self.shell.user_ns_hidden.update(self.shell.user_ns)

    def open(self, connection_file: str, diagnostics: TextIO) -> None:
        """Binds the sockets: clients can connect, and `start()` serves them.

        `diagnostics` gets what is not for the client: the log, and what crashes the kernel.
        """
        self.diagnostics = diagnostics
        self.connection_file = connection_file
        self.load_connection_file()
        self.init_sockets()
        self.init_heartbeat()
        self.init_io()
        self.init_signal()
        self.connect_kernel()
        sys.stdout.flush()
        sys.stderr.flush()

    def move(self, folder: str) -> None:
        """Gives a forked kernel an identity and a folder of its own, and where it is now."""
        shell = self.shell
        self.kernel.ident = str(uuid.uuid4())
        self.profile_dir = PrivateProfile(location=os.path.join(folder, "ipython"), parent=self)
        self.kernel.profile_dir = shell.profile_dir = self.profile_dir
        shell.ipython_dir = self.profile_dir.location
        # Older IPythons make it, and its folder, with the shell; newer ones when it is asked for.
        if "db" in vars(shell):
            shell.db = type(shell.db)(os.path.join(self.profile_dir.location, "db"))
        shell.home_dir = os.path.expanduser("~")
        shell.user_ns["_dh"][:] = [os.getcwd()]

    def start(self) -> None:
        """Serves cells until the kernel is shut down.

        What cells leave in the event loop does not end it: neither stopping it, nor an interrupt or
        `sys.exit()` in one of their tasks, which whoever awaits that task is told of.
        """
        self.kernel.start()
        self.io_loop = IOLoop.current()
        while not self.kernel.is_ending:
            try:
                self.io_loop.start()
            except KeyboardInterrupt:
                self.kernel.interrupts.escaped()
            except SystemExit:
                continue

    def stop_control(self) -> None:
        """Ends the control channel's thread.

        Before the process exits: IOPub's thread, to which it hands its messages, ends as the first thing
        then, and it would wait for that one, and the process for it.
        """
        self.control_thread.stop()
        self.control_thread.join()

    @property
    def facts(self) -> dict[str, Any]:
        """What the ready line says about this kernel."""
        return {
            "pid": os.getpid(),
            "start_time": process_identity.start_of(os.getpid()),
            "start_time": process_identity.start_of(os.getpid()),
            "python": sys.version.split()[0],
            "ipykernel": IPYKERNEL_VERSION,
            "ipython": IPYTHON_VERSION,
            "ports": self.bound_ports,
        }

    @property
    def bound_ports(self) -> dict[str, int]:
        """The ports that the channels are bound to, for a connection file that left them open."""
        return {name: getattr(self, name) for name in CHANNEL_PORTS}

    def excepthook(self, etype: Any, evalue: Any, tb: Any) -> None:
        """Reports what ends the main thread to whoever started the kernel."""
        traceback.print_exception(etype, evalue, tb, file=self.diagnostics)

    def init_io(self) -> None:
        """Sends output to the client, and the log to `diagnostics`."""
        for handler in self.log.handlers:
            if isinstance(handler, logging.StreamHandler):
                handler.setStream(self.diagnostics)
        super().init_io()

    def _bind_socket(self, s: Any, port: int) -> Any:
        if s.type in (zmq.PUB, zmq.XPUB):
            # A publisher drops what goes beyond its mark, without a word. Our client always reads.
            s.sndhwm = 0
        return super()._bind_socket(s, port)

    def init_control(self, context: Any) -> None:
        """The control channel, without the debugger's sockets."""
        self.control_socket = context.socket(zmq.ROUTER)
        self.control_socket.linger = 1000
        self.control_socket.router_handover = 1
        self.control_port = self._bind_socket(self.control_socket, self.control_port)
        self.control_thread = ControlThread(daemon=True)

    def init_heartbeat(self) -> None:
        """The heartbeat, on its own context because libzmq may wait for the GIL in a shared one."""
        self.heartbeat = BoundHeartbeat(zmq.Context(), (self.transport, self.ip, self.hb_port))
        self.heartbeat.bind()
        self.hb_port = self.heartbeat.port
        self.heartbeat.start()

    def connect_kernel(self) -> None:
        """Connects the kernel that `prepare` made to sockets and streams."""
        kernel, shell = self.kernel, self.shell
        kernel.session = shell.displayhook.session = shell.display_pub.session = self.session
        kernel.iopub_thread, kernel.iopub_socket = self.iopub_thread, self.iopub_socket
        shell.displayhook.pub_socket = shell.display_pub.pub_socket = self.iopub_socket
        shell.displayhook.topic = kernel._topic("execute_result")
        kernel.stdin_socket = self.stdin_socket
        kernel.control_thread = self.control_thread
        kernel.control_stream = ZMQStream(self.control_socket, self.control_thread.io_loop)
        kernel.shell_stream = ZMQStream(self.shell_socket)
        kernel._stdout, kernel._stderr = sys.stdout, sys.stderr
        kernel.record_ports(self.bound_ports)
        self.displayhook.get_execution_count = lambda: kernel.execution_count
        self.control_thread.start()


@contextmanager
def private_environment(ipython_dir: str) -> Iterator[None]:
    """The environment in which IPython's shell is made.

    It would look for its folder at home, and set variables that ask programs for colours. Afterwards
    the environment is what it was.
    """
    before = dict(os.environ)
    os.environ["IPYTHONDIR"] = ipython_dir
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def kernel_config() -> Config:
    """The settings of IPython that differ from its defaults."""
    config = Config()
    config.InteractiveShell.colors = "nocolor" if IPYTHON_MAJOR >= 9 else "NoColor"
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = False
    return config


def make_app() -> KernelApp:
    """The process's one KernelApp, not yet opened."""
    return KernelApp.instance(config=kernel_config(), log_level=logging.ERROR)
