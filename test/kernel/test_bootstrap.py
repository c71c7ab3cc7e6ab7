"""What cells find from the start, skills included, and how it comes back when a cell has lost it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from support import PROJECT, start_kernel

GREETER = '''
"""Greets."""
import os
HERE = os.path.dirname(__file__)

async def run(name: str, *, loud: bool = False) -> str:
    """Greet somebody.

    `loud` makes it a shout.
    """
    return f"HELLO {name}" if loud else f"hello {name}"
'''


class SkillFolder:
    """A temporary folder of Python skills."""

    def __init__(self, test: unittest.TestCase) -> None:
        folder = tempfile.TemporaryDirectory()
        test.addCleanup(folder.cleanup)
        self.path = folder.name

    def add(self, import_name: str, text: str) -> dict:
        """Writes a skill and returns what the host says about it."""
        package = Path(self.path, f"{import_name}-skill", "src", import_name)
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(text)
        return {"name": f"{import_name}-skill", "import_name": import_name, "path": str(package.parent)}


class Bootstrap(unittest.TestCase):
    def test_the_namespace_has_asyncio_rlm_and_the_preloaded_helpers(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            cell = kernel.run("asyncio.__name__, rlm.__name__, time_limit.__name__")
            self.assertEqual(cell.result, "('asyncio', 'rlm', 'time_limit')")
            self.assertEqual(kernel.run("%who").stdout.strip(), "Interactive namespace is empty.")

    def test_programs_that_cells_start_are_told_not_to_use_colours(self) -> None:
        with start_kernel(env={"FORCE_COLOR": "1"}, bootstrap={}) as kernel:
            cell = kernel.run("%%bash\necho \"$NO_COLOR ${FORCE_COLOR-unset}\"")
            self.assertEqual(cell.stdout.splitlines()[0], "1 unset")

    def test_tasks_can_be_made_and_asyncio_run_works(self) -> None:
        with start_kernel(bootstrap={}) as kernel:
            cell = kernel.run(
                "async def f(): return 1\ntask = asyncio.create_task(f())\nasyncio.run(f()) + await task + await f()"
            )
            self.assertEqual(cell.result, "3")

    def test_it_can_be_installed_by_a_cell_with_its_options_as_json_and_again(self) -> None:
        with start_kernel() as kernel:
            options = repr(json.dumps({"skills": [], "depth": 0, "max_depth": 1}))
            install = f"__import__('sys').modules['prime_agent_bootstrap'].install(get_ipython(), {options})"
            for _ in range(2):
                self.assertEqual(kernel.run(install).result, "{'rlm': None, 'skills': {}}")
            cell = kernel.run("del rlm\n1")
            self.assertEqual(kernel.run("rlm").stderr.count("`rlm`"), 1, cell)

    def test_importing_it_does_nothing(self) -> None:
        program = (
            "import os, runpy, sys\n"
            "def state(): return list(sys.path), list(sys.meta_path), dict(os.environ)\n"
            "before = state(); runpy.run_path(sys.argv[1]); assert state() == before\n"
            "assert not [name for name in sys.modules if name.partition('.')[0] in ('rlm', 'IPython')]"
        )
        bootstrap = str(PROJECT / "kernel" / "bootstrap.py")
        subprocess.run([sys.executable, "-c", program, bootstrap], check=True)

    def test_without_the_rlm_package_a_stub_says_how_to_mend_it(self) -> None:
        with tempfile.TemporaryDirectory() as folder, start_kernel() as kernel:
            shutil.copy(PROJECT / "kernel" / "bootstrap.py", folder)
            os.mkdir(os.path.join(folder, "rlm"))
            shutil.copy(PROJECT / "kernel" / "rlm" / "stubs.py", os.path.join(folder, "rlm"))
            kernel.run(
                "import importlib.util\n"
                f"spec = importlib.util.spec_from_file_location('other', {folder!r} + '/bootstrap.py')\n"
                "other = importlib.util.module_from_spec(spec); spec.loader.exec_module(other)\n"
                "report = other.install(get_ipython(), '{}')"
            )
            self.assertIn("FileNotFoundError", kernel.run("report['rlm']").result)
            for call in ("rlm('x')", "rlm.run('x')", "rlm.find_models()", "rlm.list_subagents()",
                         "rlm.delete_subagent('x')"):
                with self.subTest(call):
                    error = kernel.execute(f"await {call}").error
                    self.assertTrue(error.startswith("RuntimeError"), error)
                    self.assertIn("~/.prime/agent/kernel-venv", error)
            self.assertEqual(kernel.run("asyncio.__name__").result, "'asyncio'")


class Skills(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = SkillFolder(self)

    def test_a_skill_is_called_by_its_name_or_by_run(self) -> None:
        skill = self.folder.add("greeter", GREETER)
        with start_kernel(bootstrap={"skills": [skill]}) as kernel:
            cell = kernel.run("await greeter('you'), await greeter.run('you', loud=True)")
            self.assertEqual(cell.result, "('hello you', 'HELLO you')")
            cell = kernel.run("import greeter as imported, inspect; imported is greeter, inspect.signature(greeter)")
            self.assertEqual(cell.result, "(True, <Signature (name: str, *, loud: bool = False) -> str>)")
            shown = kernel.run("greeter?").reply["payload"][0]["data"]["text/plain"]
            self.assertIn("Greet somebody.", shown)
            self.assertIn("loud: bool", shown)
            self.assertIn("_PrimeAgentCallableSkillModule", kernel.run("type(greeter).__name__").result)

    def test_a_skill_that_can_not_be_imported_leaves_the_others_and_says_so_when_used(self) -> None:
        broken = {
            "bad_import": "import nowhere_to_be_found",
            "bad_syntax": "def",
            "leaves": "raise SystemExit(3)",
        }
        skills = [self.folder.add(name, text) for name, text in broken.items()]
        skills.append(self.folder.add("greeter", GREETER))
        skills.append({"name": "ghost", "import_name": "ghost", "path": os.path.join(self.folder.path, "no")})
        with start_kernel() as kernel:
            report = kernel.call("bootstrap", {"skills": skills})["skills"]
            self.assertEqual([name for name in report if report[name] is None], ["greeter"])
            self.assertIn("nowhere_to_be_found", report["bad_import"])
            for use in ("bad_import('x')", "bad_import.run('x')", "bad_syntax()", "leaves()", "ghost()"):
                with self.subTest(use):
                    cell = kernel.execute(f"await {use}")
                    self.assertIn("RuntimeError: the skill", cell.error)
            self.assertIn("nowhere_to_be_found", kernel.execute("bad_import()").error)
            self.assertIn("unavailable", kernel.run("bad_import").result)

    def test_a_project_module_of_the_same_name_does_not_take_its_place(self) -> None:
        skill = self.folder.add("greeter", GREETER)
        with tempfile.TemporaryDirectory() as project:
            Path(project, "greeter.py").write_text("mine = True")
            with start_kernel(project) as kernel:
                self.assertEqual(kernel.run("import greeter; greeter.mine").result, "True")
                kernel.call("bootstrap", {"skills": [skill]})
                self.assertEqual(kernel.run("import greeter\nawait greeter('you')").result, "'hello you'")

    def test_a_skill_can_not_take_the_name_of_an_installed_module(self) -> None:
        skills = [self.folder.add(name, GREETER) for name in ("json", "tornado")]
        with start_kernel() as kernel:
            report = kernel.call("bootstrap", {"skills": skills})["skills"]
            self.assertIn("an installed module has the name 'json'", report["json"])
            self.assertIn("an installed module has the name 'tornado'", report["tornado"])
            self.assertEqual(kernel.run("import json; json.dumps(1)").result, "'1'")

    def test_skills_import_each_other_and_their_folders_come_last_on_the_path(self) -> None:
        skills = [
            self.folder.add("first", "import second\nasync def run(): return second.X"),
            self.folder.add("second", "X = 2"),
        ]
        with start_kernel(bootstrap={"skills": skills}) as kernel:
            self.assertEqual(kernel.run("await first(), callable(second)").result, "(2, False)")
            cell = kernel.run("import sys; print(sys.path[-2:])")
            self.assertEqual(cell.stdout, f"{[skill['path'] for skill in skills]}\n")

    def test_a_changed_list_of_skills_replaces_the_earlier_names(self) -> None:
        greeter, other = self.folder.add("greeter", GREETER), self.folder.add("other", GREETER)
        with start_kernel(bootstrap={"skills": [greeter]}) as kernel:
            kernel.call("bootstrap", {"skills": [other]})
            self.assertEqual(kernel.run("await other('you')").result, "'hello you'")
            self.assertEqual(kernel.execute("greeter").reply["ename"], "NameError")


class Helpers(unittest.TestCase):
    """Names come back before the next cell that misses them, and a user's own value is respected."""

    @classmethod
    def setUpClass(cls) -> None:
        cls.kernel = start_kernel(bootstrap={})
        cls.addClassCleanup(cls.kernel.close)

    def test_reset_and_del_bring_them_back_with_one_line(self) -> None:
        for loss in ("%reset -f", "del rlm, asyncio, time_limit"):
            with self.subTest(loss):
                self.kernel.run(loss)
                cell = self.kernel.run("rlm.run, asyncio.run, time_limit")
                self.assertEqual(len(cell.stderr.splitlines()), 1, cell)
                for name in ("rlm", "asyncio", "time_limit"):
                    self.assertIn(f"`{name}`", cell.stderr)
                self.assertEqual(self.kernel.run("rlm").stderr, "")

    def test_another_value_stays_as_long_as_cells_use_it_as_what_it_is(self) -> None:
        self.kernel.run("rlm = 'a text'")
        cell = self.kernel.run("print(rlm); rlm.upper()")
        self.assertEqual((cell.result, cell.stderr), ("'A TEXT'", ""))
        cell = self.kernel.run("rlm.run.__name__")
        self.assertEqual(cell.result, "'run'")
        self.assertIn("`rlm` had been given another value", cell.stderr)

    def test_a_value_that_can_not_be_called_gives_way_to_a_call(self) -> None:
        self.kernel.run("time_limit = 60; asyncio = None")
        cell = self.kernel.run("with time_limit(5): await asyncio.sleep(0)")
        self.assertIn("`asyncio`, `time_limit`", cell.stderr.replace("`time_limit`, `asyncio`", "`asyncio`, `time_limit`"))

    def test_a_cell_that_assigns_the_name_first_is_left_alone(self) -> None:
        self.kernel.run("rlm = 5")
        cell = self.kernel.run("class rlm_like: run = 3\nrlm = rlm_like\nrlm.run")
        self.assertEqual((cell.result, cell.stderr), ("3", ""))
        self.kernel.run("del rlm")

    def test_a_cell_that_is_no_python_changes_nothing(self) -> None:
        self.kernel.run("rlm = 5")
        self.assertIn(self.kernel.execute("rlm.run(").reply["ename"], ("SyntaxError", "_IncompleteInputError"))
        self.assertEqual(self.kernel.run("rlm").result, "5")
        self.kernel.run("del rlm")


if __name__ == "__main__":
    unittest.main()
