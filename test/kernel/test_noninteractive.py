"""Programs that would wait for a person end at once, with a plain message."""

from __future__ import annotations

import os
import sys
import unittest
from pathlib import Path

from shell_support import ShellCase
from support import PROJECT

sys.path.insert(0, str(PROJECT / "kernel"))

from rlm import noninteractive

ESCAPE = "\x1b"


class Git(ShellCase):
    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        script = (
            "git init -q . && git config user.name T && git config user.email t@example.org\n"
            "for i in 1 2 3; do echo $i > f; git add f; git commit -qm c$i; done; echo 4 > f; git add f"
        )
        cell = cls.kernel.execute(f"%%bash\n{script}")
        assert cell.error == "", cell.stdout

    def test_an_editor_fails_and_says_how_to_do_without(self) -> None:
        for command in ("git commit", "git commit --amend", "git tag -a v1"):
            with self.subTest(command):
                cell = self.bash(
                    f"head=$(git rev-parse HEAD); {command}; code=$?\n"
                    "[ $head = $(git rev-parse HEAD) ] && echo unchanged; exit $code"
                )
                self.assertEqual(cell.reply["ename"], "ShellError")
                self.assertIn("There is no editor here", cell.stdout)
                self.assertIn("git commit -m TEXT", cell.stdout)
                self.assertTrue(cell.stdout.endswith("unchanged\n"))
                self.assertNotIn(ESCAPE, cell.stdout)

    def test_an_interactive_rebase_fails_rather_than_rewrite(self) -> None:
        script = "git stash -q; old=$(git rev-parse HEAD); git rebase -i HEAD~2; code=$?\n"
        cell = self.bash(
            script + "git status | grep -c rebas; git rebase --abort 2>/dev/null\n"
            "[ $old = $(git rev-parse HEAD) ] && echo same; git stash pop -q; exit $code"
        )
        self.assertEqual(cell.reply["ename"], "ShellError")
        self.assertIn("There is no editor here", cell.stdout)
        self.assertTrue(cell.stdout.endswith("same\n"))

    def test_the_way_out_that_the_message_names_works(self) -> None:
        cell = self.bash("GIT_EDITOR=true git commit --amend -q && echo amended")
        self.assertIn("amended\n", cell.stdout)

    def test_nothing_is_paged_or_coloured(self) -> None:
        cell = self.bash("git log; git diff --cached")
        self.assertIn("c1", cell.stdout)
        self.assertNotIn(ESCAPE, cell.stdout)

    def test_credentials_are_not_asked_for(self) -> None:
        cell = self.bash("printf 'protocol=https\\nhost=example.org\\n\\n' | git credential fill")
        self.assertEqual(cell.reply["ename"], "ShellError")
        self.assertIn("terminal prompts disabled", cell.stdout)


class OtherPrograms(ShellCase):
    def test_questions_end_at_once(self) -> None:
        programs = {
            'read x; echo "[$x]"': "[]\n",
            "python3 -c 'input()'": "EOFError",
            "python3 -c 'import getpass; getpass.getpass()'": "EOF",
            "rm -i f < /dev/tty": "/dev/tty",
        }
        for script, part in programs.items():
            with self.subTest(script):
                self.assertIn(part, self.bash(f"touch f; {script}").stdout)

    def test_questions_for_secrets_end_at_once_where_these_programs_are_installed(self) -> None:
        for command in ("sudo -k true", "ssh-keygen -q -f k", "ssh -o BatchMode=no nobody@127.0.0.1 true"):
            with self.subTest(command):
                cell = self.bash(f"{command}; echo over")
                self.assertTrue(cell.stdout.endswith("over\n"))
                self.assertNotIn(ESCAPE, cell.stdout)


class Environment(unittest.TestCase):
    def test_what_the_user_had_set_does_not_stay(self) -> None:
        environ = {
            "EDITOR": "vim",
            "PAGER": "less",
            "GIT_SEQUENCE_EDITOR": "true",
            "FORCE_COLOR": "1",
            "TERM": "xterm",
            "HOME": "/home/u",
        }
        noninteractive.apply(environ)
        self.assertEqual(environ["EDITOR"], environ["GIT_SEQUENCE_EDITOR"])
        self.assertRegex(environ["EDITOR"], r"^sh .*no-editor\.sh$")
        self.assertTrue(Path(environ["EDITOR"].removeprefix("sh ")).is_file())
        self.assertEqual((environ["PAGER"], environ["TERM"]), ("cat", "dumb"))
        self.assertNotIn("FORCE_COLOR", environ)
        self.assertEqual(environ["HOME"], "/home/u")

    def test_nothing_pretends_to_be_a_build_server(self) -> None:
        self.assertNotIn("CI", noninteractive.settings())

    def test_what_a_cell_has_set_reaches_its_commands(self) -> None:
        previous = os.environ.get("GIT_EDITOR")
        os.environ["GIT_EDITOR"] = "ed"
        try:
            self.assertEqual(noninteractive.child_environment()["GIT_EDITOR"], "ed")
        finally:
            del os.environ["GIT_EDITOR"]
            if previous is not None:
                os.environ["GIT_EDITOR"] = previous
