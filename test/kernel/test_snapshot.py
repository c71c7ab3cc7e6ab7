"""Saving a namespace: what is saved, within which limits, and what it costs the kernel."""

from __future__ import annotations

import os
import signal
from typing import ClassVar

from snapshot_support import KEPT, MANIFEST, STATE, SnapshotCase, reasons
from support import is_alive, wait_until


class WhatIsSaved(SnapshotCase):
    def test_values_functions_and_classes_survive_into_a_fresh_kernel(self) -> None:
        code = (
            "import json as j\nn = 0\ndef bump():\n    global n\n    n += 1\n    return n\n"
            "class P: pass\np = P()\nlist = [1]; print = 'shadow'; keep = {'k': (1, 2)}"
        )
        result = self.save(self.start(code))
        names = {"j", "n", "bump", "P", "p", "list", "print", "keep"}
        self.assertEqual((set(result["saved"]), result["skipped"]), (names, []))
        kernel, report = self.restored()
        self.assertEqual((set(report["restored"]), report["failed"]), (names, []))
        kernel.run("n = 100; seen = [bump(), n, isinstance(p, P), list, print, keep, j.dumps(1)]")
        self.assertEqual(kernel.run("seen").result, "[101, 101, True, [1], 'shadow', {'k': (1, 2)}, '1']")

    def test_names_of_ipython_and_of_the_host_are_not_the_users(self) -> None:
        kernel = self.start("_hidden = 1; x = 2; 3")
        self.assertEqual(self.save(kernel)["saved"], ["x"])

    def test_a_name_that_the_host_uses_itself_is_reported_when_it_has_another_value(self) -> None:
        result = self.save(self.start("x = 1\nrlm = 'mine'\nexit = 5"))
        reason = "has a name that IPython or the host uses itself"
        self.assertEqual((result["saved"], reasons(result["skipped"])), (["x"], {"rlm": reason, "exit": reason}))
        self.assertEqual(self.restored()[1], {"restored": ["x"], "failed": []})

    def test_live_resources_are_reported_and_the_rest_comes_back(self) -> None:
        code = (
            "import socket, sqlite3, subprocess, threading, ctypes\nlock = threading.Lock()\n"
            "gen = (i for i in [])\nsock = socket.socket()\nthread = threading.Thread()\n"
            "database = sqlite3.connect(':memory:')\nprocess = subprocess.Popen(['true'])\n"
            "view = memoryview(b'x')\npointer = ctypes.pointer(ctypes.c_int(1))\nnested = [{'f': open('/dev/null')}]\n"
            "async def main(): pass\ncoro = main()\nkeep = 42"
        )
        skipped = reasons(self.save(self.start(code))["skipped"])
        self.assertEqual(
            skipped,
            {
                "lock": "is a lock or other thread synchronisation",
                "gen": "is a running generator",
                "sock": "is an open socket or connection",
                "thread": "is a thread",
                "database": "is an open database",
                "process": "is a running process",
                "view": "is a view into memory",
                "pointer": "is a pointer into memory",
                "nested": "holds an open file",
                "coro": "is a coroutine",
            },
        )
        kernel, report = self.restored()
        self.assertEqual(kernel.run("keep").result, "42")
        self.assertEqual(set(report["restored"]) & set(skipped), set())

    def test_an_array_survives(self) -> None:
        kernel = self.start("import array; a = array.array('d', [1.5] * 1000)")
        self.save(kernel)
        self.assertEqual(self.restored()[0].run("sum(a)").result, "1500.0")

    def test_the_manifest_says_it_all(self) -> None:
        result = self.save(self.start("x = 1; g = (i for i in [])"))
        manifest = self.manifest()
        self.assertEqual(manifest["saved"], ["x"])
        self.assertEqual(reasons(manifest["skipped"]), {"g": "is a running generator"})
        self.assertEqual((manifest["pruned"], manifest["bytes"]), ([], result["bytes"]))
        self.assertRegex(manifest["python"], r"^3\.\d+\.\d+")
        self.assertEqual(sorted(os.listdir(self.folder)), [STATE, MANIFEST])
        self.assertEqual(os.stat(self.folder / STATE).st_mode & 0o777, 0o600)

    def test_the_same_namespace_is_not_written_again(self) -> None:
        kernel = self.start("x = [1, {'a': 'b'}]; s = {'a', 'b', 'c'}; f = lambda: x; big = b'x' * 100_000")
        limits = {"max_variable_bytes": 50_000}
        self.assertFalse(self.save(kernel, **limits)["unchanged"])
        before = os.stat(self.folder / STATE)
        for code in ("1 + 1", "big"):
            kernel.run(code)
            self.assertTrue(self.save(kernel, **limits)["unchanged"])
        self.assertEqual(os.stat(self.folder / STATE).st_mtime_ns, before.st_mtime_ns)
        kernel.run("x[1]['a'] = 'c'")
        self.assertFalse(self.save(kernel, **limits)["unchanged"])


class Limits(SnapshotCase):
    CODE = "small = 'first'; big = b'x' * 100_000; b1 = b'1' * 30_000; b2 = b'2' * 30_000; after = 'last'"
    LIMITS: ClassVar = {"max_variable_bytes": 50_000, "max_total_bytes": 40_000}

    def test_a_big_variable_is_skipped_and_small_ones_after_it_are_saved(self) -> None:
        result = self.save(self.start(self.CODE), **self.LIMITS)
        self.assertEqual(result["saved"], ["small", "b1", "after"])
        self.assertEqual(
            reasons(result["skipped"]),
            {
                "big": "takes more than 0.0476837 MiB",
                "b2": "no room was left in 0.038147 MiB",
            },
        )

    def test_an_ordinary_snapshot_leaves_everything_in_place(self) -> None:
        kernel = self.start(self.CODE)
        self.save(kernel, **self.LIMITS)
        self.assertEqual(kernel.run("len(big)").result, "100000")

    def test_a_variable_that_was_too_big_is_tried_again_when_it_has_changed(self) -> None:
        kernel = self.start("x = [b'x' * 30_000, b'y' * 30_000]")
        self.assertEqual(self.save(kernel, **self.LIMITS)["saved"], [])
        kernel.run("x.pop()")
        self.assertEqual(self.save(kernel, **self.LIMITS)["saved"], ["x"])

    def test_the_time_of_the_whole_is_limited(self) -> None:
        code = (
            "import time\nclass Slow:\n    def __reduce__(self): time.sleep(1000)\n"
            "slow = Slow(); slower = Slow(); quick = 1"
        )
        result = self.save(self.start(code), seconds=0.5)
        self.assertEqual(set(result["saved"]), {"time", "Slow", "quick"})
        self.assertEqual(
            reasons(result["skipped"]),
            {
                "slow": "takes too long to save",
                "slower": "no time was left of 0.5 s",
            },
        )

    def test_pruning_saves_and_then_removes_what_is_too_big_everywhere(self) -> None:
        kernel = self.start(
            "import weakref\nclass Big:\n    def __init__(self): self.data = b'x' * 100_000\n"
            "big = Big(); also = big; _big = weakref.ref(big); b1 = b'1' * 30_000; b2 = b'2' * 30_000"
        )
        kernel.run("Big()")
        kernel.run("big")
        report = kernel.call("prune", {"dir": str(self.folder), **self.LIMITS})
        self.assertEqual(set(report["pruned"]), {"big", "also", "Out[2]", "Out[3]"})
        self.assertEqual(set(self.manifest()["pruned"]), set(report["pruned"]))
        left = "[n for n in ('big', 'also', '_2', '_3') if n in globals()], list(Out), _big(), len(b1), len(b2)"
        self.assertEqual(kernel.run(left).result, "([], [], None, 30000, 30000)")

    def test_pruning_removes_nothing_when_the_rest_could_not_be_saved(self) -> None:
        kernel = self.start(self.CODE)
        (self.folder / "file").touch()
        args = {"dir": str(self.folder / "file"), **self.LIMITS}
        self.assertIsNone(kernel.call("prune", args))
        self.assertEqual(kernel.run("len(big)").result, "100000")


class Misbehaviour(SnapshotCase):
    def test_a_value_that_misbehaves_costs_only_itself(self) -> None:
        code = (
            "import ctypes, logging, os, sys\n"
            "def bad(action):\n"
            "    class Bad:\n        def __reduce__(self): action()\n    return Bad()\n"
            "def raises(error): raise error\n"
            "interrupt = bad(lambda: raises(KeyboardInterrupt))\nleave = bad(lambda: raises(SystemExit))\n"
            "oops = bad(lambda: raises(ValueError('oops')))\ncrash = bad(lambda: ctypes.string_at(0))\n"
            "die = bad(lambda: os._exit(3))\nkill = bad(lambda: os.kill(os.getpid(), 9))\n"
            "deep = []\nfor _ in range(50_000): deep = [deep]\nkeep = 42"
        )
        kernel = self.start(code)
        result = self.save(kernel)
        self.assertIn("keep", result["saved"])
        self.assertEqual(
            reasons(result["skipped"]),
            {
                "interrupt": "KeyboardInterrupt",
                "leave": "SystemExit",
                "oops": "ValueError: oops",
                "crash": "saving it crashed with SIGSEGV",
                "die": "saving it ended the process with exit code 3",
                "kill": "saving it crashed with SIGKILL",
                "deep": "is nested too deeply",
            },
        )
        self.assertEqual(kernel.run("keep").result, "42")
        self.assertEqual(self.restored()[0].run("keep").result, "42")

    def test_what_is_printed_while_saving_reaches_nobody(self) -> None:
        kernel = self.start(
            "import logging, os, sys, time\nlogging.basicConfig(stream=sys.stderr)\nclass Loud:\n"
            "    def __getstate__(self):\n        print('OUT'); logging.warning('LOG')\n"
            "        os.write(1, b'FD'); os.write(2, b'FD')\n"
            "        display('SHOWN'); time.sleep(0.3); return {'a': 1}\nloud = Loud()"
        )
        self.assertIn("loud", self.save(kernel)["saved"])
        cell = kernel.run("print('mine')")
        self.assertEqual((cell.stdout, cell.stderr, cell.displays), ("mine\n", "", []))
        # Whoever its parent is: a saver's message would count as the output of the last request.
        sent = [m for messages in list(kernel._messages.values()) for m in messages]
        self.assertEqual(sum(m["msg_type"] in ("stream", "display_data") for m in sent), 1)

    def test_a_file_that_a_value_flushes_does_not_get_into_ours(self) -> None:
        kernel = self.start(
            f"f = open({str(self.folder / 'log')!r}, 'w')\nf.write('text of the user')\nclass Flushes:\n"
            "    def __reduce__(self): f.flush(); return (int, ())\nx = Flushes(); y = [1]"
        )
        self.save(kernel)
        kernel.run("f.close()")
        self.assertEqual((self.folder / "log").read_text(), "text of the user")
        self.assertEqual(self.restored()[1]["failed"], [])

    def test_a_saver_that_is_killed_leaves_the_old_files(self) -> None:
        kernel = self.start("x = 1")
        self.save(kernel)
        old = (self.folder / STATE).read_bytes()
        begun = self.folder / "begun"
        kernel.run(
            "import time\nclass Slow:\n    def __reduce__(self):\n"
            f"        open({str(begun)!r}, 'w').close(); time.sleep(1000)\nslow = Slow()"
        )
        pid = kernel.call("snapshot", {"dir": str(self.folder)})["pid"]
        wait_until(begun.exists)
        begun.unlink()
        os.kill(pid, signal.SIGKILL)
        ended = kernel.call("snapshot_wait", {"seconds": 30}, "control")
        self.assertEqual(ended, {"running": False, "result": {"error": "the saving process was killed"}})
        self.assertEqual((self.folder / STATE).read_bytes(), old)
        kernel.run("del slow")
        self.save(kernel)
        self.assertEqual(sorted(os.listdir(self.folder)), [STATE, MANIFEST])


class WhileCellsRun(SnapshotCase):
    CODE = "import time\nclass Slow:\n    def __reduce__(self): time.sleep(1000)\nslow = Slow(); x = 1"

    def test_cells_run_and_are_interrupted_while_one_is_written(self) -> None:
        kernel = self.start(self.CODE)
        pid = kernel.call("snapshot", {"dir": str(self.folder), "seconds": 2})["pid"]
        again = kernel.call("snapshot", {"dir": str(self.folder)})
        self.assertEqual(again, {"started": False, "reason": "a snapshot is being written", "pid": pid})
        self.assertEqual(kernel.run("x = x + 1; x").result, "2")
        msg_id = kernel.begin("print('on', flush=True); time.sleep(1000)")
        kernel.wait_for(lambda: [m for m in kernel.messages(msg_id) if m["msg_type"] == "stream"])
        kernel.interrupt()
        self.assertEqual(kernel.finish(msg_id).reply["ename"], "KeyboardInterrupt")
        self.assertTrue(kernel.call("snapshot_status")["running"])
        ended = kernel.call("snapshot_wait", {"seconds": 30}, "control")
        self.assertEqual(ended["result"]["saved"], ["Slow", "time", "x"])
        wait_until(lambda: not is_alive(pid))
        self.assertEqual(self.restored()[0].run("x").result, "1")

    def test_the_saver_ends_with_its_kernel(self) -> None:
        kernel = self.start(self.CODE)
        pid = kernel.call("snapshot", {"dir": str(self.folder)})["pid"]
        kernel.shutdown()
        wait_until(lambda: not is_alive(pid))

    def test_collections_of_garbage_go_on_afterwards(self) -> None:
        kernel = self.start("import gc; x = 1")
        self.save(kernel)
        self.assertEqual(kernel.run("gc.get_freeze_count()").result, "0")


class Unrestored(SnapshotCase):
    def test_nothing_is_saved_over_a_state_by_an_empty_namespace(self) -> None:
        self.save(self.start("x = 1"))
        kernel = self.start()
        self.assertEqual(
            kernel.call("snapshot", {"dir": str(self.folder)}), {"started": False, "reason": "there is nothing to save"}
        )

    def test_a_state_that_was_not_restored_is_kept_beside_the_new_one(self) -> None:
        self.save(self.start("x = 1"))
        old = (self.folder / STATE).read_bytes()
        kernel = self.start("y = 2")
        self.save(kernel)
        self.assertEqual((self.folder / KEPT).read_bytes(), old)
        kernel.run("y = 3")
        self.save(kernel)
        self.assertEqual((self.folder / KEPT).read_bytes(), old)
        self.assertEqual(self.restored()[1], {"restored": ["y"], "failed": []})
