"""Why an image was not attached."""

from __future__ import annotations

from rlm.explained_error import ExplainedError


class ImageError(ExplainedError, ValueError):
    """Nothing was attached. The message says why, and what to do instead."""
