"""The scripts that tell what a Python has and that make the environment."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from types import ModuleType

KERNEL = Path(__file__).resolve().parents[2] / "kernel"


def load(name: str) -> ModuleType:
    """The script as a module, without putting its folder on `sys.path`."""
    spec = importlib.util.spec_from_file_location(name, KERNEL / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


inspect_environment = load("inspect_environment")
build_environment = load("build_environment")


class InspectTest(unittest.TestCase):
    """What inspect_environment.py tells."""

    def test_versions_compare_by_their_numbers(self) -> None:
        for smaller, larger in (("6.9", "6.17"), ("6.17", "6.17.1"), ("0.3.6", "1.0rc1")):
            with self.subTest(smaller=smaller, larger=larger):
                numbers = inspect_environment.numbers
                self.assertLess(numbers(smaller), numbers(larger))
        self.assertEqual(inspect_environment.numbers("7.1.0.post1+local"), [7, 1, 0])

    def test_requirements_are_read_with_minimum_and_mark(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "requirements.txt")
            path.write_text("# heading\n\na>=1.2\nb>=0.1  # optional\nc\n")
            self.assertEqual(
                list(inspect_environment.read_requirements(path)),
                [("a", "1.2", False), ("b", "0.1", True), ("c", "", False)],
            )

    def test_our_own_requirements_are_met_by_the_test_python(self) -> None:
        for name, minimum, optional in inspect_environment.read_requirements(
            KERNEL / "requirements.txt"
        ):
            with self.subTest(name=name):
                state = inspect_environment.check(name, minimum, optional, imports=True)
                self.assertIsNone(state["problem"])

    def test_each_problem_is_a_phrase(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "exits_on_import.py").write_text("raise SystemExit(3)\n")
            sys.path.insert(0, folder)
            self.addCleanup(sys.path.remove, folder)
            problems = [
                inspect_environment.check(name, minimum, False, imports=True)["problem"]
                for name, minimum in (
                    ("no_such_package", "1"),
                    ("dill", "999"),
                    ("exits_on_import", "1"),
                )
            ]
        self.assertEqual(problems[0], "is missing")
        self.assertRegex(problems[1], r"^is 0\.\S+, older than 999$")
        self.assertEqual(problems[2], "fails to import: SystemExit: 3")

    def test_the_answer_comes_on_its_own_descriptor_whatever_is_printed(self) -> None:
        reader, writer = os.pipe()
        request = json.dumps({"requirements": str(KERNEL / "requirements.txt"), "imports": False})
        program = (
            f"import os, runpy, sys; os.dup2({writer}, 3); print('noise'); sys.argv[1:] = "
            f"[{request!r}]; runpy.run_path({str(KERNEL / 'inspect_environment.py')!r}, "
            "run_name='__main__')"
        )
        subprocess.run(
            [sys.executable, "-c", program], pass_fds=[writer], stdout=subprocess.DEVNULL, check=True
        )
        os.close(writer)
        with os.fdopen(reader) as answer:
            report = json.load(answer)
        self.assertEqual(report["version"], list(sys.version_info[:3]))
        self.assertEqual(report["cache_tag"], sys.implementation.cache_tag)
        self.assertEqual(report["lacks"], [])
        base = report["base_executable"]
        code = "import sys; print(sys.prefix == sys.base_prefix)"
        said = subprocess.run([base, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertEqual(said.strip(), "True")


class BuildTest(unittest.TestCase):
    """What build_environment.py makes."""

    def setUp(self) -> None:
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = os.path.realpath(scratch.name)

    def test_it_ends_with_the_host(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            fifo = Path(folder, "never_ends.py")
            os.mkfifo(fifo)
            reader, writer = os.pipe()
            request = {"action": "compile", "folders": {folder: folder}, "part": 0, "parts": 1}
            program = (
                f"import os, runpy, sys; os.dup2({writer}, 3); os.close({writer}); sys.argv[1:] = "
                f"[{json.dumps(request)!r}]; runpy.run_path("
                f"{str(KERNEL / 'build_environment.py')!r}, run_name='__main__')"
            )
            child = subprocess.Popen([sys.executable, "-c", program], pass_fds=[writer])
            os.close(writer)
            with open(fifo, "wb"):  # Once the child has opened it, too.
                os.close(reader)
                self.assertEqual(child.wait(30), 1)

    def test_an_empty_environment_has_its_own_packages_and_no_scripts(self) -> None:
        venv = os.path.join(self.folder, "venv")
        site_packages = build_environment.create(venv)["site_packages"]
        self.assertTrue(os.path.isdir(site_packages))
        python = os.path.join(venv, "bin", "python")
        code = "import sys, sysconfig; print(sys.prefix, sysconfig.get_path('purelib'))"
        said = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout.split(), [venv, site_packages])
        names = os.listdir(os.path.join(venv, "bin"))
        self.assertEqual([name for name in names if not name.startswith("python")], [])

    def test_every_module_is_compiled_by_exactly_one_part(self) -> None:
        for name in ("a.py", "b.py", "broken.py", "deep/c.py", "pip/later.py"):
            path = Path(self.folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text("def (" if name == "broken.py" else "value = 1\n")
        folders = {self.folder: "/final/place"}
        counts = [
            build_environment.compile_share(folders, part, 3)["compiled"] for part in range(3)
        ]
        self.assertEqual(sum(counts), 3)
        compiled = sorted(path.name.split(".")[0] for path in Path(self.folder).rglob("*.pyc"))
        self.assertEqual(compiled, ["a", "b", "c"])
        self.assertIn(b"/final/place/a.py", next(Path(self.folder).rglob("a.*.pyc")).read_bytes())


if __name__ == "__main__":
    unittest.main()
