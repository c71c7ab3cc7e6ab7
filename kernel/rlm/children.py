"""The processes that cells start, and how they end."""

from __future__ import annotations


def register_session(sid: int) -> None:
    """Notes the session of a shell cell (`start_new_session=True`), to be ended with the kernel."""
