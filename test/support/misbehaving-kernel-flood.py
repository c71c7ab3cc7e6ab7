"""A kernel on libzmq that only floods: for benchmarks of the receiving side.

Usage: misbehaving-kernel-flood.py CONNECTION_FILE. Prints "ready" when bound.
Answers `kernel_info_request`, and `flood_request {count, bytes}` with that many
signed `stream` messages whose text has that many bytes, then `idle` and a reply.
All messages are made before the first one is sent, so that the sender is faster
than any receiver. Ends when its stdin does.
"""

import hashlib
import hmac
import json
import sys
import threading
import uuid

import zmq


class FloodKernel:
    def __init__(self, info: dict) -> None:
        self.info = info
        self.context = zmq.Context()
        self.shell = self.bind(zmq.ROUTER, "shell")
        self.control = self.bind(zmq.ROUTER, "control")
        self.iopub = self.bind(zmq.PUB, "iopub")

    def bind(self, kind: int, channel: str) -> zmq.Socket:
        socket = self.context.socket(kind)
        socket.set_hwm(0)
        socket.linger = 0
        separator = ":" if self.info["transport"] == "tcp" else "-"
        port = self.info[channel + "_port"]
        socket.bind(f"{self.info['transport']}://{self.info['ip']}{separator}{port}")
        return socket

    def frames(self, msg_type: str, parent: dict, content: dict) -> list:
        header = {
            "msg_id": uuid.uuid4().hex,
            "msg_type": msg_type,
            "username": "kernel",
            "session": "flood",
            "date": "2026-01-01T00:00:00.000000Z",
            "version": "5.3",
        }
        parts = [json.dumps(part).encode() for part in (header, parent, {}, content)]
        mac = hmac.new(self.info["key"].encode(), b"".join(parts), hashlib.sha256)
        return [b"<IDS|MSG>", mac.hexdigest().encode(), *parts]

    def publish(self, msg_type: str, parent: dict, content: dict) -> None:
        self.iopub.send_multipart([b"topic", *self.frames(msg_type, parent, content)])

    def serve(self) -> None:
        while True:
            identity, _, _, header, _, _, content = self.shell.recv_multipart()
            request, parent = json.loads(content), json.loads(header)
            self.publish("status", parent, {"execution_state": "busy"})
            if parent["msg_type"] == "flood_request":
                self.flood(parent, request["count"], request["bytes"])
            self.publish("status", parent, {"execution_state": "idle"})
            reply_type = parent["msg_type"].replace("_request", "_reply")
            reply = self.frames(reply_type, parent, {"status": "ok"})
            self.shell.send_multipart([identity, *reply])

    def flood(self, parent: dict, count: int, size: int) -> None:
        content = {"name": "stdout", "text": "x" * size}
        messages = [self.frames("stream", parent, content) for _ in range(count)]
        self.publish("flood_starts", parent, {})
        for message in messages:
            self.iopub.send_multipart([b"topic", *message])


with open(sys.argv[1], encoding="utf-8") as file:
    kernel = FloodKernel(json.load(file))
threading.Thread(target=kernel.serve, daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
