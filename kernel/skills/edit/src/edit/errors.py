"""Why a file was not changed."""

from __future__ import annotations

from rlm.explained_error import ExplainedError


class EditError(ExplainedError, ValueError):
    """Nothing was changed. The message says why, and what to do instead."""
