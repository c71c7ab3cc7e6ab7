"""What `edit` does to files, and what it says when it does nothing."""

from __future__ import annotations

import asyncio
import os
import pickle
import stat
import unittest
from unittest import mock

import skill_support

skill_support.make_importable()

import edit  # noqa: E402
from edit import matching, storage  # noqa: E402
from edit.errors import EditError  # noqa: E402


class Case(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = skill_support.Folder()
        self.addCleanup(self.folder.close)

    def refusal(self, path: object, old_str: str, new_str: str) -> str:
        with self.assertRaises(EditError) as raised:
            edit.run(path, old_str, new_str)
        return str(raised.exception)

    def leftovers(self) -> list[str]:
        return [p.name for p in self.folder.path.rglob("*") if p.name.startswith(".edit-")]


class Content(Case):
    """The edited piece changes, and not a byte beside it."""

    UTF16 = "\ufeffgrün = 1\r\n".encode("utf-16-le")
    # (what, file before, old_str, new_str, file after)
    TABLE = (
        ("one line", b"a = 1\nb = 2\n", "a = 1", "a = 3", b"a = 3\nb = 2\n"),
        ("a removal", b"a\nb\nc\n", "b\n", "", b"a\nc\n"),
        ("to the last byte", b"a\nb", "b", "c\n", b"a\nc\n"),
        ("to an empty file", b"a", "a", "", b""),
        ("CRLF found by LF", b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        ("LF found by CRLF", b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        ("CRLF as written", b"a\r\nb\r\n", "a\r\nb", "a\nb", b"a\nb\r\n"),
        ("CR alone", b"a\rb\rc\r", "a\nb", "x\ny", b"x\ry\rc\r"),
        ("a line into CRLF", b"a\r\nb\r\n", "a", "a\nnew", b"a\r\nnew\r\nb\r\n"),
        ("a line at the end of CRLF", b"a\r\nb", "b", "b\nc", b"a\r\nb\r\nc"),
        ("mixed endings kept by line", b"a\r\nb\nc\r\nd\n", "a\nb\nc\nd\n", "a\nB\nc\nd\n", b"a\r\nB\nc\r\nd\n"),
        ("mixed, a line more", b"a\r\nb\nc\r\nd\n", "a\nb\nc\n", "a\nb\nn\nc\n", b"a\r\nb\nn\nc\r\nd\n"),
        ("mixed, a line less", b"a\nb\nc\r\nd\n", "a\nb\nc\nd", "a\nc\nd", b"a\nc\r\nd\n"),
        ("a form feed is no line break", b"a\x0cb\n", "a\x0cb", "c", b"c\n"),
        ("UTF-8", "grün ✓\n".encode(), "grün ✓", "blau ✗", "blau ✗\n".encode()),
        ("UTF-8 with mark", b"\xef\xbb\xbfa\n", "a", "ä", b"\xef\xbb\xbf\xc3\xa4\n"),
        ("UTF-16 with mark", UTF16, "grün = 1\n", "grün = ✓\n", UTF16.replace(b"1\0", b"\x13\x27")),
        ("UTF-32 with mark", "\ufeffab".encode("utf-32-be"), "b", "ü", "\ufeffaü".encode("utf-32-be")),
        ("Latin-1", b"caf\xe9 \x81\n", "café", "thé", b"th\xe9 \x81\n"),
        ("Windows-1252", b"\x93caf\xe9\x94 1\n", "“café” 1", "“thé” 2", b"\x93th\xe9\x94 2\n"),
        ("UTF-8 with a broken byte", "äöü".encode() + b"\xff 1\n", "ü", "✓", "äö✓".encode() + b"\xff 1\n"),
    )

    def test_changes_the_piece_and_nothing_else(self) -> None:
        for what, before, old_str, new_str, after in self.TABLE:
            with self.subTest(what):
                path = self.folder.write("file.txt", before)
                edit.run(path, old_str, new_str)
                self.assertEqual(path.read_bytes(), after)

    def test_tells_the_lines_and_an_encoding_that_is_not_unicode(self) -> None:
        path = self.folder.write("a.txt", b"one\r\ntwo\r\nthr\xe9e\r\n")
        self.assertEqual(edit.run(path, "two\nthrée", "2"), f"edited {path}, lines 2-3 (written as cp1252)")

    def test_an_empty_old_str_creates_the_file_and_its_folders(self) -> None:
        path = self.folder.path / "new" / "deep" / "a.txt"
        self.assertEqual(edit.run(path, "", "one\ntwo ✓\n"), f"created {path} (2 lines)")
        self.assertEqual(path.read_bytes(), "one\ntwo ✓\n".encode())

    def test_an_empty_old_str_fills_an_empty_file(self) -> None:
        path = self.folder.write("__init__.py", b"")
        edit.run(path, "", "x = 1\n")
        self.assertEqual(path.read_bytes(), b"x = 1\n")


class File(Case):
    """What is not content stays: mode, links, and the old file until the new one is whole."""

    def test_the_mode_stays(self) -> None:
        path = self.folder.write("run.sh", b"echo 1\n")
        path.chmod(0o751)
        edit.run(path, "1", "2")
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o751)

    def test_a_symbolic_link_stays_and_its_target_is_named(self) -> None:
        target = self.folder.write("real/a.txt", b"a")
        link = self.folder.path / "link.txt"
        link.symlink_to(target)
        self.assertEqual(edit.run(link, "a", "b"), f"edited {target}, line 1")
        self.assertTrue(link.is_symlink())
        self.assertEqual(target.read_bytes(), b"b")

    def test_the_other_names_of_a_file_get_the_new_content(self) -> None:
        path = self.folder.write("a.txt", b"a")
        other = self.folder.path / "b.txt"
        os.link(path, other)
        edit.run(path, "a", "longer")
        self.assertEqual((other.read_bytes(), other.stat().st_nlink), (b"longer", 2))

    def test_a_change_is_a_rename(self) -> None:
        path = self.folder.write("a.txt", b"a")
        with path.open("rb") as reader:
            edit.run(path, "a", "b")
            self.assertEqual(reader.read(), b"a")
        self.assertEqual(self.leftovers(), [])

    def test_the_modification_time_is_new_also_for_an_emptied_file(self) -> None:
        path = self.folder.write("a.txt", b"a")
        os.utime(path, (1, 1))
        edit.run(path, "a", "")
        self.assertGreater(path.stat().st_mtime, 1)

    def test_a_file_that_can_t_be_renamed_over_is_written_in_place(self) -> None:
        for what, failing in {"no new file": "tempfile.mkstemp", "mounted": "os.replace"}.items():
            with self.subTest(what):
                path = self.folder.write("a.txt", b"a longer text")
                inode = path.stat().st_ino
                # The system's refusals: as root, which tests may run as, nothing else makes them.
                with mock.patch(failing, side_effect=PermissionError(13, "Permission denied")):
                    edit.run(path, "longer", "short")
                self.assertEqual(path.read_bytes(), b"a short text")
                self.assertEqual(path.stat().st_ino, inode)
                self.assertEqual(self.leftovers(), [])

    def test_a_full_disk_costs_nothing(self) -> None:
        for failing in ("os.replace", "os.pwrite"):
            with self.subTest(failing):
                path = self.folder.write("a.txt", b"precious")
                if failing == "os.pwrite":
                    os.link(path, self.folder.path / "second-name")
                function, calls = getattr(os, failing[3:]), []

                def fail_once(*arguments: object) -> object:
                    """The disk is full; what writes in place has written a part by then."""
                    calls.append(arguments)
                    if failing == "os.pwrite" and len(calls) == 1:
                        return function(arguments[0], b"xxx", 0)
                    if len(calls) == (2 if failing == "os.pwrite" else 1):
                        raise OSError(28, "No space left on device")
                    return function(*arguments)

                with mock.patch(failing, side_effect=fail_once):
                    message = self.refusal(path, "precious", "x" * 100)
                self.assertEqual(message, f"{path} can't be written: No space left on device")
                self.assertEqual(path.read_bytes(), b"precious")
                self.assertEqual(self.leftovers(), [])

    def test_a_file_without_the_right_to_write_is_refused_although_its_folder_could_replace_it(self) -> None:
        path = self.folder.write("a.txt", b"a")
        with mock.patch("os.access", return_value=False):
            self.assertIn("is read-only", self.refusal(path, "a", "b"))
        self.assertEqual(path.read_bytes(), b"a")


class Refusal(Case):
    """Nothing is changed, and the message says where the text might be."""

    SOURCE = b"import os\n\ndef first(value):\n\tif value:\n\t\treturn 1\n\treturn 2\n"

    def test_names_all_lines_of_a_repeated_text(self) -> None:
        path = self.folder.write("a.py", self.SOURCE)
        self.assertIn("occurs 2 times, on lines 5, 6:", self.refusal(path, "return", "yield"))

    def test_counts_occurrences_that_overlap(self) -> None:
        path = self.folder.write("a.txt", b"x\n--\n--\n--\n")
        self.assertIn("occurs 2 times, on lines 2, 3:", self.refusal(path, "--\n--\n", "-"))

    def test_counts_occurrences_with_other_line_endings(self) -> None:
        path = self.folder.write("a.txt", b"a\nb\r\na\r\nb\n")
        self.assertIn("occurs 2 times, on lines 1, 3:", self.refusal(path, "a\nb", "c"))

    def test_lists_only_the_first_of_many_lines(self) -> None:
        path = self.folder.write("a.txt", b"x\n" * 5000)
        message = self.refusal(path, "x", "y")
        self.assertIn("occurs 200 or more times, on lines 1, 2,", message)
        self.assertIn("20, …:", message)

    def test_shows_a_difference_in_whitespace_as_escapes(self) -> None:
        path = self.folder.write("a.py", self.SOURCE)
        self.assertEqual(
            self.refusal(path, "    if value:\n        return 1", "pass"),
            f"{path}: old_str does not occur\n"
            "line 4 differs only in whitespace or look-alike characters (- old_str, + file):\n"
            "-'    if value:'\n-'        return 1'\n+'\\tif value:'\n+'\\t\\treturn 1'",
        )

    def test_shows_a_no_break_space_and_a_decomposed_letter(self) -> None:
        for name, content in {"no-break space": "gr\u00fcn\u00a0blau", "decomposed": "gru\u0308n blau"}.items():
            with self.subTest(name):
                path = self.folder.write("a.txt", f"one\n{content}\n".encode())
                message = self.refusal(path, "grün blau", "rot")
                self.assertIn("line 2 differs only in whitespace or look-alike characters", message)
                self.assertIn("+" + ascii(content), message)

    def test_shows_the_nearest_text(self) -> None:
        path = self.folder.write("a.py", self.SOURCE)
        message = self.refusal(path, "def first(number):\n\tif number:", "pass")
        self.assertIn("line 3 is similar (- old_str, + file):", message)
        self.assertIn("\n-def first(number):\n", message)
        self.assertIn("\n+def first(value):\n", message)

    def test_prefers_rare_words_when_it_looks_for_the_nearest_text(self) -> None:
        lines = ["return value"] * 3000
        lines[2000] = "x = compute2(alpha)"
        path = self.folder.write("a.py", "\n".join(lines).encode())
        self.assertIn("line 2001 is similar", self.refusal(path, "return compute(alpha)", "x"))

    def test_says_that_an_edit_seems_done_already(self) -> None:
        path = self.folder.write("a.txt", b"one\ntimeout = 30\n")
        self.assertIn(
            "new_str is on line 2: has this been done already?",
            self.refusal(path, "timeout = 10", "timeout = 30"),
        )

    def test_refuses_what_is_no_change(self) -> None:
        path = self.folder.write("a.txt", b"a\r\nb\r\n")
        self.assertIn("identical", self.refusal(path, "a", "a"))
        self.assertIn("in line endings only", self.refusal(path, "a\n", "a\r\n"))

    def test_refuses_what_is_no_text_file(self) -> None:
        os.mkfifo(self.folder.path / "pipe")
        self.folder.write("dir/inner.txt", b"")
        big = self.folder.write("big.txt", b"")
        os.truncate(big, storage.MAX_FILE_BYTES + 1)
        table = {
            self.folder.write("a.bin", b"PK\x03\x04\0\0a"): "is a binary file",
            self.folder.write("cut.txt", b"\xff\xfea\0b"): "begins like utf-16-le but isn't",
            self.folder.path / "pipe": "is not a regular file",
            self.folder.path / "dir": "is a folder; in it: inner.txt",
            big: "has 33554433 bytes, more than",
        }
        for path, message in table.items():
            with self.subTest(message):
                self.assertRegex(self.refusal(path, "a", "b"), f"^{path} {message}")

    def test_refuses_a_character_that_the_file_can_t_hold(self) -> None:
        latin = self.folder.write("a.txt", b"caf\xe9\n")
        self.assertIn("is in cp1252, which has no '\\u2713' (U+2713)", self.refusal(latin, "caf", "✓"))
        plain = self.folder.write("b.txt", b"a\n")
        self.assertIn("is in utf-8, which has no '\\ud800'", self.refusal(plain, "a", "\ud800"))

    def test_names_files_like_an_absent_one(self) -> None:
        self.folder.write("src/parser.py", b"")
        self.folder.write("src/printer.py", b"")
        folder = self.folder.path
        previous = os.getcwd()
        self.addCleanup(os.chdir, previous)
        os.chdir(folder)
        table = {
            "src/Parse.py": f"there is no file {folder}/src/Parse.py; in its folder, similar: parser.py",
            "parser.py": f"there is no file {folder}/parser.py; did you mean src/parser.py?",
            "scr/any.py": f"there is no file {folder}/scr/any.py: {folder} has no folder 'scr'; in its folder, similar: src",
            "zzz": f"there is no file {folder}/zzz. To create it, pass an empty old_str",
            "src/parser.py/x": f"there is no file {folder}/src/parser.py/x: {folder}/src has no folder 'parser.py'",
        }
        for path, message in table.items():
            with self.subTest(path):
                self.assertTrue(self.refusal(path, "a", "b").startswith(message), self.refusal(path, "a", "b"))

    def test_does_not_create_over_content(self) -> None:
        path = self.folder.write("a.txt", b"a")
        self.assertIn(f"{path} exists: an empty old_str creates a file", self.refusal(path, "", "b"))
        self.assertEqual(path.read_bytes(), b"a")

    def test_other_types_than_texts_are_type_errors(self) -> None:
        for arguments in ((b"path", "a", "b"), (1, "a", "b"), ("path", None, "b"), ("path", "a", b"b")):
            with self.subTest(arguments), self.assertRaises(TypeError):
                edit.run(*arguments)


class Result(Case):
    """What `edit` returns can be awaited or not."""

    def test_the_work_is_done_once_however_it_is_awaited(self) -> None:
        async def gathered() -> list[str]:
            task = asyncio.create_task(edit.run(path, "three", "3"))
            return [*await asyncio.gather(edit.run(path, "one", "1"), edit.run(path, "two", "2")), await task]

        path = self.folder.write("a.txt", b"one\ntwo\nthree\n")
        results = asyncio.run(gathered())
        self.assertEqual(results, [f"edited {path}, line {line}" for line in (1, 2, 3)])
        self.assertEqual(asyncio.run(edit.run(path, "3", "4")), f"edited {path}, line 3")
        self.assertEqual(path.read_bytes(), b"1\n2\n4\n")

    def test_it_reads_as_a_line_without_quotes(self) -> None:
        path = self.folder.write("a.txt", b"a")
        self.assertEqual(repr(edit.run(path, "a", "b")), f"edited {path}, line 1")

    def test_it_survives_pickling_as_a_variable_of_a_snapshot(self) -> None:
        result = edit.run(self.folder.write("a.txt", b"a"), "a", "b")
        copy = pickle.loads(pickle.dumps(result))
        self.assertEqual((copy, type(copy)), (result, type(result)))


class Spans(unittest.TestCase):
    def test_half_a_line_break_is_none(self) -> None:
        self.assertEqual(matching.find("a\r\nb", "\n"), [(1, 3)])
        self.assertEqual(matching.find("a\r\nb", "\n\n"), [])
        self.assertEqual(matching.find("a\r\r\nb", "\n\n"), [(1, 4)])

    def test_occurrences_overlap_also_across_other_line_endings(self) -> None:
        self.assertEqual(matching.find("-\r\n-\r\n-\r\n", "-\n-\n"), [(0, 6), (3, 9)])


if __name__ == "__main__":
    unittest.main()
