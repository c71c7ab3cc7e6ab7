"""What a helper returns that has done its work by the time it returns."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any


class Confirmation(str, Coroutine):
    """A text that can be awaited, which gives the text itself.

    So `await edit(…)`, a forgotten `await`, `asyncio.gather` and `create_task` all do the work, once.
    """

    def __await__(self) -> Generator[Any, None, Confirmation]:
        return self
        yield  # Makes this a generator, which awaiting asks for.

    def send(self, _value: None) -> Any:
        """Ends at once with the text, as a coroutine that waits for nothing."""
        raise StopIteration(self)

    def throw(self, *error: Any) -> Any:
        """Raises what an event loop throws in, such as the cancelling of a task."""
        raise error[1] if len(error) > 1 and error[1] is not None else error[0]

    def close(self) -> None:
        """There is nothing to end."""

    def __repr__(self) -> str:
        # As the value of a cell it reads as a line of text, without quotes.
        return str(self)
