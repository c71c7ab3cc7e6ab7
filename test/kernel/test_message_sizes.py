"""Output of any size arrives, in messages of bounded size."""

from __future__ import annotations

import sys
import unittest

import support
from support import RunningKernel, start_kernel

sys.path.insert(0, str(support.PROJECT / "kernel"))
from rlm import message_sizes  # noqa: E402


class Sizes(unittest.TestCase):
    kernel: RunningKernel

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def test_one_huge_print_arrives_whole(self) -> None:
        size = 40 * message_sizes.STREAM_CHARS + 7
        cell = self.kernel.run(f"print('x' * {size - 1} + 'y')")
        self.assertEqual((len(cell.stdout), cell.stdout[-2:]), (size + 1, "y\n"))

    def test_many_small_prints_arrive_whole_and_in_order(self) -> None:
        cell = self.kernel.run("for i in range(300_000): print(i)")
        self.assertEqual(cell.stdout, "".join(f"{i}\n" for i in range(300_000)))

    def test_a_result_that_is_too_long_keeps_head_and_tail(self) -> None:
        size = message_sizes.VALUE_CHARS + 1000
        cell = self.kernel.run(f"'a' + 'b' * {size} + 'c'")
        text = cell.result or ""
        self.assertIn("characters left out", text)
        self.assertEqual((text[:3], text[-2:]), ("'ab", "c'"))

    def test_an_error_that_is_too_long_keeps_head_and_tail(self) -> None:
        cell = self.kernel.execute(f"raise ValueError('q' * {message_sizes.VALUE_CHARS + 1000})")
        self.assertIn("characters left out", cell.error)


class Guard(unittest.TestCase):
    def test_short_content_is_passed_on_as_the_same_object(self) -> None:
        content = {"data": {"text/plain": "short"}, "evalue": "short", "traceback": ["short"]}
        self.assertIs(message_sizes.bound(content), content)


if __name__ == "__main__":
    unittest.main()
