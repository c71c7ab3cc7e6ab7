"""Errors that are shown where the cell caused them, without the frames of our own code below."""

from __future__ import annotations

import os
import sys
from typing import Any

OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class ExplainedError(Exception):
    """An error whose message says all: how we came to notice it is no help."""

    def _render_traceback_(self) -> list[str]:
        shell = sys.modules["IPython"].get_ipython()
        traceback = _above_ours(self.__traceback__)
        return shell.InteractiveTB.structured_traceback(type(self), self, traceback)


def _above_ours(traceback: Any) -> Any:
    """Cuts a traceback before the first frame of ours that a frame of somebody else called."""
    last = None
    current = traceback
    while current is not None:
        if last is not None and current.tb_frame.f_code.co_filename.startswith(OURS):
            last.tb_next = None
            break
        last = current
        current = current.tb_next
    return traceback

