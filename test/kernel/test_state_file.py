"""The state file: whole files, and every way in which one can be damaged."""

from __future__ import annotations

import os
import sys
import tempfile
import unittest

from support import PROJECT

sys.path.insert(0, str(PROJECT / "kernel"))

from rlm.state_file import (
    MAGIC,
    DamagedState,
    End,
    Frame,
    read,
    write_end,
    write_frame,
    write_magic,
)

FRAMES = [Frame("x", b"blob of x"), Frame("größe", b"", True), Frame("y" * 300, b"\0" * 1000)]
END = End("3.13.0", None, 3)


class StateFile(unittest.TestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.path = os.path.join(directory.name, "state")
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT)
        write_magic(descriptor)
        for frame in FRAMES:
            write_frame(descriptor, frame)
        write_end(descriptor, END)
        os.close(descriptor)
        with open(self.path, "rb") as file:
            self.whole = file.read()

    def read_changed(self, content: bytes) -> tuple[list[object], str]:
        """What can be read of this content, and what is said of the rest."""
        with open(self.path, "wb") as file:
            file.write(content)
        items: list[object] = []
        try:
            items.extend(iter_into(items, self.path))
        except DamagedState as error:
            return items, str(error)
        return items, ""

    def test_what_was_written_is_read(self) -> None:
        self.assertEqual(self.read_changed(self.whole), ([*FRAMES, END], ""))

    def test_a_file_that_is_cut_anywhere_gives_its_whole_frames_and_says_so(self) -> None:
        ends = [len(MAGIC)]
        for frame in FRAMES:
            ends.append(ends[-1] + 27 + len(frame.name.encode()) + len(frame.blob))
        for size in range(len(self.whole)):
            items, problem = self.read_changed(self.whole[:size])
            whole_frames = max(0, sum(end <= size for end in ends) - 1)
            self.assertEqual(items, FRAMES[:whole_frames], size)
            self.assertRegex(problem, "cut off|not a saved kernel state", size)

    def test_a_changed_byte_is_noticed_wherever_it_is(self) -> None:
        for at in range(len(self.whole)):
            content = bytearray(self.whole)
            content[at] ^= 0x41
            items, problem = self.read_changed(bytes(content))
            self.assertTrue(problem, at)
            self.assertTrue(all(item in FRAMES for item in items), at)

    def test_another_file_is_refused(self) -> None:
        for content in (b"", b"not a state", b"\x80\x04." * 100):
            self.assertEqual(self.read_changed(content), ([], "it is not a saved kernel state"))


def iter_into(items: list[object], path: str) -> list[object]:
    """Reads into `items`, so that what came before an error is kept."""
    for item in read(path):
        items.append(item)
    return []
