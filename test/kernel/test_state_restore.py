"""Reviving a namespace: name by name, whatever is wrong with the file or the values."""

from __future__ import annotations

import json
import os

from snapshot_support import KEPT, MANIFEST, STATE, SnapshotCase, reasons
from support import KernelDied, start_kernel


class Misbehaviour(SnapshotCase):
    def test_a_value_that_misbehaves_costs_only_itself(self) -> None:
        code = (
            "import sys\nclass Bad:\n"
            "    def __init__(self, code): self.code = code\n"
            "    def __setstate__(self, state): exec(state['code'])\n"
            "oops = Bad('raise ValueError(1)'); leave = Bad('raise SystemExit'); "
            "stop = Bad('raise KeyboardInterrupt')\n"
            "loud = Bad('print(1); sys.stderr.write(\"x\"); self.heard = type(sys.stdout).__name__'); keep = 42"
        )
        self.save(self.start(code))
        kernel, report = self.restored()
        self.assertEqual(
            reasons(report["failed"]),
            {
                "oops": "ValueError: 1",
                "leave": "SystemExit",
                "stop": "KeyboardInterrupt",
            },
        )
        cell = kernel.run("print(keep, loud.heard)")
        self.assertEqual((cell.stdout, cell.stderr), ("42 TextIOWrapper\n", ""))

    def test_a_value_that_takes_too_long_is_left_behind(self) -> None:
        self.save(
            self.start(
                "import time\nclass Slow:\n    def __setstate__(self, s): time.sleep(1000)\n"
                "slow = Slow(); slow.a = 1; keep = 42"
            )
        )
        kernel = start_kernel()
        self.addCleanup(kernel.close)
        kernel.run("import rlm.state_restore; rlm.state_restore.NAME_SECONDS = 0.2")
        report = kernel.call("restore", {"dir": str(self.folder)})
        self.assertEqual(reasons(report["failed"]), {"slow": "takes too long to restore"})
        self.assertEqual(kernel.run("keep").result, "42")

    def test_a_value_that_ends_the_kernel_is_not_tried_again(self) -> None:
        self.save(
            self.start(
                "import os\nclass Bomb:\n    def __setstate__(self, s): os._exit(5)\n"
                "bomb = Bomb(); bomb.a = 1; keep = 42"
            )
        )
        kernel = start_kernel()
        self.addCleanup(kernel.close)
        with self.assertRaises(KernelDied):
            kernel.call("restore", {"dir": str(self.folder)})
        kernel, report = self.restored()
        self.assertEqual(reasons(report["failed"]), {"bomb": "restoring it ended the kernel last time"})
        self.assertEqual(kernel.run("keep").result, "42")
        self.assertEqual(sorted(os.listdir(self.folder)), [STATE, MANIFEST])

    def test_a_module_that_is_gone_costs_only_itself(self) -> None:
        (self.folder / "gone.py").write_text("x = 1")
        self.save(self.start("import gone as module; keep = 42", cwd=str(self.folder)))
        kernel, report = self.restored()
        self.assertEqual(reasons(report["failed"]), {"module": "ModuleNotFoundError: No module named 'gone'"})
        self.assertEqual(kernel.run("keep").result, "42")

    def test_a_value_whose_class_could_not_be_saved_says_so(self) -> None:
        result = self.save(self.start("import threading\nclass P: lock = threading.Lock()\np = P(); keep = 42"))
        self.assertEqual(
            reasons(result["skipped"]),
            {"P": "holds a lock or other thread synchronisation", "p": "holds a lock or other thread synchronisation"},
        )


class Names(SnapshotCase):
    def test_nothing_that_is_in_use_is_overwritten(self) -> None:
        self.save(self.start("x = 1; y = 2"))
        kernel = self.start("x = 'live'")
        report = kernel.call("restore", {"dir": str(self.folder)})
        self.assertEqual(report, {"restored": ["y"], "failed": [{"name": "x", "reason": "the name is in use"}]})
        self.assertEqual(kernel.run("x, y").result, "('live', 2)")

    def test_names_are_listed_with_a_short_description(self) -> None:
        kernel = self.start(
            "import json\nn = 42; s = 'text'; l = [1, 2]; f = lambda: 0\n"
            "class P:\n    def __repr__(self): raise SystemExit\n"
            "p = P(); _h = 1; big = 10 ** 5000; none = None"
        )
        listed = kernel.call("list_names", channel="control")
        self.assertEqual(listed["omitted"], 0)
        self.assertEqual(
            {entry["name"]: entry["description"] for entry in listed["names"]},
            {
                "json": "module json",
                "n": "int 42",
                "s": "str, 4 characters",
                "l": "list, 2 items",
                "f": "function",
                "P": "class",
                "p": "P",
                "big": "int …",
                "none": "None",
            },
        )

    def test_a_long_list_of_names_is_cut(self) -> None:
        kernel = self.start("globals().update({f'v{i}': i for i in range(600)})")
        listed = kernel.call("list_names")
        self.assertEqual((len(listed["names"]), listed["omitted"]), (500, 100))


class Files(SnapshotCase):
    def test_nothing_saved_is_no_error(self) -> None:
        self.assertIsNone(self.start().call("restore", {"dir": str(self.folder)}))
        self.assertIsNone(self.start().call("restore", {"dir": str(self.folder / "nowhere")}))

    def test_a_damaged_file_is_reported_left_alone_and_kept(self) -> None:
        self.save(self.start("a = 1; b = 'x' * 1000; c = 3"))
        whole, manifest = (self.folder / STATE).read_bytes(), (self.folder / MANIFEST).read_text()
        for title, content, restored in (
            ("cut in the middle", whole[: len(whole) // 2], ["a"]),
            ("cut before its end", whole[:-5], ["a", "b", "c"]),
            ("another file", b"something else", []),
            ("empty", b"", []),
        ):
            with self.subTest(title):
                (self.folder / STATE).write_bytes(content)
                (self.folder / MANIFEST).write_text(manifest)
                kernel, report = self.restored()
                self.assertEqual(report["restored"], restored)
                self.assertEqual(set(reasons(report["failed"])), {"a", "b", "c"} - set(restored))
                self.assertRegex(report["error"], "cut off|not a saved kernel state")
                self.assertEqual((self.folder / STATE).read_bytes(), content)
                kernel.run("new = 1")
                self.save(kernel)
                self.assertEqual((self.folder / KEPT).read_bytes(), content)

    def test_a_state_that_came_back_whole_is_replaced(self) -> None:
        self.save(self.start("a = 1"))
        kernel, _ = self.restored()
        kernel.run("a = 2")
        self.save(kernel)
        self.assertEqual(sorted(os.listdir(self.folder)), [STATE, MANIFEST])
        self.assertEqual(self.restored()[0].run("a").result, "2")

    def test_code_of_another_python_stays_away_and_data_comes_back(self) -> None:
        self.save(self.start("def f(): return 1\nclass P: pass\np = P(); data = [1]"))
        path = self.folder / STATE
        # The end of the file says which Python wrote it.
        frames = path.read_bytes()
        with start_kernel() as kernel:
            kernel.run(
                "import os, dataclasses\nfrom rlm.state_file import *\n"
                f"items = list(read({str(path)!r}))\nfd = os.open({str(path)!r}, os.O_WRONLY | os.O_TRUNC)\n"
                "write_magic(fd)\nfor item in items[:-1]: write_frame(fd, item)\n"
                "write_end(fd, dataclasses.replace(items[-1], python='3.2.1')); os.close(fd)"
            )
        self.assertNotEqual(path.read_bytes(), frames)
        kernel, report = self.restored()
        self.assertEqual(report["restored"], ["data"])
        self.assertEqual(report["python_version_mismatch"]["saved"], "3.2.1")
        self.assertRegex(reasons(report["failed"])["f"], r"^was saved by Python 3\.2\.1; this is 3\.")
        self.assertEqual(reasons(report["failed"])["p"], "needs `P`, which is not there")
        self.assertEqual(kernel.run("data").result, "[1]")

    def test_an_unreadable_manifest_does_not_matter(self) -> None:
        self.save(self.start("a = 1"))
        (self.folder / MANIFEST).write_text("{")
        kernel, report = self.restored()
        self.assertEqual(report, {"restored": ["a"], "failed": []})
        kernel.run("b = 2")
        self.save(kernel)
        self.assertEqual(json.loads((self.folder / MANIFEST).read_text())["saved"], ["a", "b"])
