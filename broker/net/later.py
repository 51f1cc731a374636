"""An answer that waits for something, without a task that waits for it."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Done(Protocol):
    """What can be waited for: a future, or what does for it."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call it when the wait is over."""

    def cancel(self) -> object:
        """Nobody waits any more."""

    def cancelled(self) -> bool:
        """Whether that is why the wait is over."""

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait for it in a task."""


@dataclass(slots=True, eq=False)
class Later(Generic[T]):
    """The request has been carried out as far as it can be, and nobody needs its frame any more.

    `answer` is called once `done` is, and may find that there is something else to wait for.
    Who does not care for the answer any more cancels `done`.
    """

    done: Done
    answer: "Callable[[], T | Later[T]]"

    def __await__(self) -> Generator[Any, None, T]:
        """Give the answer to one who has nothing else to do."""
        later = self
        while True:
            with suppress(Exception):  # `answer` learns of it, and says what becomes of it
                yield from later.done.__await__()
            answer = later.answer()
            if not isinstance(answer, Later):
                return answer
            later = answer


def as_later(awaited: Awaitable[T]) -> Later[T]:
    """The same as a Later; what is none yet becomes a task, which may need the frame to its end."""
    if isinstance(awaited, Later):
        return awaited
    task = asyncio.ensure_future(awaited)
    return Later(task, task.result)
