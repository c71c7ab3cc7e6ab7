"""`time_limit`."""

from __future__ import annotations

import unittest

from support import RunningKernel, start_kernel


class TimeLimit(unittest.TestCase):
    kernel: RunningKernel

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)
        cls.kernel.run("import asyncio, signal, time")

    def test_every_kind_of_code_is_ended(self) -> None:
        for code in (
            "with time_limit(0.2):\n    while True: pass",
            "with time_limit(0.2): time.sleep(1000)",
            "with time_limit(0.2): await asyncio.sleep(1000)",
            "with time_limit(0.2): await asyncio.get_running_loop().create_future()",
            "async with time_limit(0.2): await asyncio.sleep(1000)",
            "async with time_limit(0.2): time.sleep(1000)",
            "async def main():\n    with time_limit(0.2): await asyncio.gather(asyncio.sleep(1000))\nawait main()",
            "with time_limit(0.2): asyncio.run(asyncio.sleep(1000))",
            "async def spin():\n    while True: pass\nwith time_limit(0.2): asyncio.run(spin())",
        ):
            with self.subTest(code):
                cell = self.kernel.execute(code)
                self.assertEqual(cell.error, "TimeLimitExceeded: the time limit of 0.2 s is over")
                self.assertEqual(self.kernel.run("await asyncio.sleep(0, 'next')").result, "'next'")

    def test_the_exception_is_a_timeout_error_and_the_block_can_be_left_behind(self) -> None:
        cell = self.kernel.run(
            "try:\n    with time_limit(0.1): time.sleep(1000)\nexcept TimeoutError as e: print('caught', e)"
        )
        self.assertEqual(cell.stdout, "caught the time limit of 0.1 s is over\n")

    def test_a_block_in_time_is_left_alone_and_everything_is_restored(self) -> None:
        cell = self.kernel.run(
            "with time_limit(1000): x = 5\n"
            "print(x, signal.getsignal(signal.SIGALRM) == signal.SIG_DFL, signal.getitimer(signal.ITIMER_REAL))"
        )
        self.assertEqual(cell.stdout, "5 True (0.0, 0.0)\n")

    def test_the_alarm_of_somebody_else_still_rings(self) -> None:
        cell = self.kernel.run(
            "rung = []\nsignal.signal(signal.SIGALRM, lambda *_: rung.append(1))\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.2)\nwith time_limit(1000): pass\n"
            "with time_limit(1000): pass\n"
            "while not rung: time.sleep(0.01)\nsignal.signal(signal.SIGALRM, signal.SIG_DFL)\nprint('rung')"
        )
        self.assertEqual(cell.stdout, "rung\n")

    def test_limits_nest(self) -> None:
        for outer, inner in ((1000, 0.2), (0.2, 1000)):
            with self.subTest(f"{outer} around {inner}"):
                cell = self.kernel.execute(f"with time_limit({outer}):\n  with time_limit({inner}): time.sleep(1000)")
                self.assertEqual(cell.error, "TimeLimitExceeded: the time limit of 0.2 s is over")

    def test_a_loop_that_swallows_exceptions_ends_too(self) -> None:
        cell = self.kernel.execute(
            "import rlm.limits\nrlm.limits.AGAIN_SECONDS = 0.1\nleft = 3\n"
            "with time_limit(0.1):\n  while left:\n    try: time.sleep(1000)\n    except Exception: left -= 1"
        )
        self.assertEqual(cell.error, "")

    def test_a_cancelled_task_can_be_used_again(self) -> None:
        cell = self.kernel.run(
            "try:\n    with time_limit(0.1): await asyncio.sleep(1000)\nexcept TimeoutError: pass\n"
            "await asyncio.sleep(0.01)\nprint(getattr(asyncio.current_task(), 'cancelling', int)())"
        )
        self.assertEqual(cell.stdout, "0\n")

    def test_a_limit_must_be_a_number_of_seconds(self) -> None:
        for seconds in ("0", "-1", "float('inf')", "float('nan')"):
            with self.subTest(seconds):
                self.assertRegex(
                    self.kernel.execute(f"time_limit({seconds})").error,
                    "^ValueError: time_limit needs a number of seconds above 0",
                )

    def test_another_thread_is_told_that_it_can_not_have_one(self) -> None:
        cell = self.kernel.run(
            "import threading\nseen = []\ndef work():\n    try:\n        with time_limit(1): pass\n"
            "    except RuntimeError as e: seen.append(str(e))\n"
            "t = threading.Thread(target=work); t.start(); t.join(); print(seen)"
        )
        self.assertEqual(cell.stdout, "['time_limit works in the main thread only']\n")
