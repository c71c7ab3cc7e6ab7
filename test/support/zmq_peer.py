"""A libzmq peer for the wire tests: one bound socket, told what to do line by line.

usage: zmq_peer.py TYPE ENDPOINT [OPTION=VALUE...]

Prints {"endpoint": ...} once it is bound. ROUTER, REP and DEALER echo every message. PUB and XPUB
publish what a line on stdin asks for; an XPUB prints each subscription. Ends when stdin does.

Lines on stdin are JSON objects:
  {"publish": [size, ...], "count": n}   n messages whose first frame is their number
  {"hold": true} / {"hold": false}       stop echoing and reading, and go on
  {"digest": n}                          read n messages, print their sizes and SHA-256, do not echo
"""

from __future__ import annotations

import hashlib
import json
import sys
from typing import Any

import zmq

SOCKET_OPTIONS = {"sndhwm": zmq.SNDHWM, "rcvhwm": zmq.RCVHWM, "heartbeat": zmq.HEARTBEAT_IVL}


class Peer:
    """The bound socket and the commands it obeys."""

    def __init__(self, kind: str, endpoint: str, options: list[str]) -> None:
        self.socket = zmq.Context.instance().socket(getattr(zmq, kind))
        self.socket.linger = 0
        for option in options:
            name, value = option.split("=")
            self.socket.setsockopt(SOCKET_OPTIONS[name], int(value))
        if kind == "ROUTER":
            self.socket.router_handover = True
        self.socket.bind(endpoint)
        self.echoes = kind in ("ROUTER", "REP", "DEALER")

    def run(self) -> None:
        """Serves the socket and stdin until stdin ends."""
        report(endpoint=self.socket.last_endpoint.decode())
        poller = zmq.Poller()
        poller.register(sys.stdin.fileno(), zmq.POLLIN)
        poller.register(self.socket, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if sys.stdin.fileno() in ready:
                line = sys.stdin.buffer.readline()
                if not line:
                    return
                self.obey(json.loads(line), poller)
            elif self.socket in ready:
                self.receive()

    def receive(self) -> None:
        """Echoes one message, or reports one subscription."""
        frames = self.socket.recv_multipart(copy=False)
        if self.echoes:
            self.socket.send_multipart(frames, copy=False)
        else:
            report(subscription=frames[0].bytes.hex())

    def obey(self, command: dict[str, Any], poller: zmq.Poller) -> None:
        """Carries out one line of stdin."""
        if "publish" in command:
            self.publish(command["publish"], command["count"])
        elif "hold" in command:
            poller.modify(self.socket, 0 if command["hold"] else zmq.POLLIN)
            report(held=command["hold"])
        elif "digest" in command:
            self.digest(command["digest"])

    def publish(self, sizes: list[int], count: int) -> None:
        """Sends `count` numbered messages with further frames of these sizes."""
        rest = [bytes(index % 251 for index in range(size)) for size in sizes]
        for number in range(count):
            self.socket.send_multipart([str(number).encode(), *rest])
        report(published=count)

    def digest(self, count: int) -> None:
        """Reads `count` messages and prints what they were, without the routing id."""
        sizes: list[int] = []
        digest = hashlib.sha256()
        for _ in range(count):
            for frame in self.socket.recv_multipart()[1:]:
                sizes.append(len(frame))
                digest.update(frame)
        report(sizes=sizes, sha256=digest.hexdigest())


def report(**fields: Any) -> None:
    """Prints one line for the test to read."""
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    Peer(sys.argv[1], sys.argv[2], sys.argv[3:]).run()
