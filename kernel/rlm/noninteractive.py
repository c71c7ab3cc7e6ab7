"""Environment variables that keep programs from waiting for a person.

An editor, a pager or a question would hang the cell: nobody can answer. Editors fail with a message
that says how to pass the text instead; pagers print; questions fail.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import MutableMapping

NO_EDITOR = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "no-editor.sh")

# `true` would make `git rebase -i` run the unedited plan in silence, so every editor must fail.
EDITORS = (
    "EDITOR",
    "VISUAL",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "HGEDITOR",
    "SVN_EDITOR",
    "JJ_EDITOR",
    "KUBE_EDITOR",
)
PAGERS = ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "PSQL_PAGER", "BAT_PAGER", "GH_PAGER")
ASKPASS = ("SSH_ASKPASS", "GIT_ASKPASS", "SUDO_ASKPASS")

SETTINGS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GCM_INTERACTIVE": "never",
    "SSH_ASKPASS_REQUIRE": "force",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "GH_PROMPT_DISABLED": "1",
    "COREPACK_ENABLE_DOWNLOAD_PROMPT": "0",
    "NG_CLI_ANALYTICS": "false",
    "YARN_ENABLE_PROGRESS_BARS": "0",
    "npm_config_progress": "false",
    "AWS_PAGER": "",
    "NO_COLOR": "1",
    "TERM": "dumb",
    # A Python child prints at once: its output keeps its order beside stderr, and what it printed
    # before an interrupt is not lost in its buffer.
    "PYTHONUNBUFFERED": "1",
}

# IPython sets some of these for its notebooks.
COLOUR = ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLORTERM")


def apply(environ: MutableMapping[str, str]) -> None:
    """Makes programs that inherit `environ` non-interactive, whatever it said before."""
    environ.update(settings())
    for name in COLOUR:
        environ.pop(name, None)


def child_environment() -> dict[str, str]:
    """The kernel's environment for a command; what a cell has removed of our settings is back."""
    return {**settings(), **os.environ}


def settings() -> dict[str, str]:
    """The variables and their values."""
    false = shutil.which("false", path=os.defpath) or "false"
    return {
        **dict.fromkeys(EDITORS, f"sh {shlex.quote(NO_EDITOR)}"),
        **dict.fromkeys(PAGERS, "cat"),
        **dict.fromkeys(ASKPASS, false),
        **SETTINGS,
    }
