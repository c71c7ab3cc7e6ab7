"""The peer of the benchmarks: jupyter_client on the same interpreter.

Reads one command a line from stdin and answers each with one JSON line:
``cold`` starts a kernel and runs one cell; ``start`` keeps one for
``round-trip N``, ``flood BYTES`` and ``stop``; ``many N`` starts N at once.
"""

import json
import sys
import threading
import time
from queue import Empty

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

TIMEOUT_SECONDS = 120


def start() -> tuple[KernelManager, BlockingKernelClient]:
    """A kernel that has answered, as an application would start it."""
    manager = KernelManager(kernel_name="python3")
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel()
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=TIMEOUT_SECONDS)
    return manager, client


def run(client: BlockingKernelClient, code: str) -> int:
    """Runs a cell to its end, both reply and idle, and returns the characters of its output."""
    chars = 0

    def count(message: dict) -> None:
        nonlocal chars
        if message["msg_type"] == "stream":
            chars += len(message["content"]["text"])

    reply = client.execute_interactive(code, output_hook=count, timeout=TIMEOUT_SECONDS)
    if reply["content"]["status"] != "ok":
        raise RuntimeError(reply["content"])
    return chars


def stop(manager: KernelManager, client: BlockingKernelClient) -> None:
    """Ends the kernel."""
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def cold() -> float:
    """Seconds from nothing to the first result."""
    begin = time.perf_counter()
    manager, client = start()
    run(client, "1+1")
    seconds = time.perf_counter() - begin
    stop(manager, client)
    return seconds


def main() -> None:
    """Serves commands until stdin ends."""
    kernel: tuple[KernelManager, BlockingKernelClient] | None = None
    for line in sys.stdin:
        command, *arguments = line.split()
        answer: object = None
        if command == "cold":
            answer = cold()
        elif command == "start":
            kernel = start()
        elif command == "round-trip":
            times = []
            for _ in range(int(arguments[0])):
                begin = time.perf_counter()
                run(kernel[1], "1+1")
                times.append(time.perf_counter() - begin)
            answer = times
        elif command == "flood":
            code = line.split(maxsplit=1)[1]
            begin = time.perf_counter()
            chars = run(kernel[1], json.loads(code))
            answer = {"chars": chars, "seconds": time.perf_counter() - begin}
        elif command == "many":
            threads = [threading.Thread(target=cold) for _ in range(int(arguments[0]))]
            begin = time.perf_counter()
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            answer = time.perf_counter() - begin
        elif command == "stop":
            stop(*kernel)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    try:
        main()
    except (Empty, KeyboardInterrupt) as error:
        sys.exit(f"jupyter_peer: {error!r}")
