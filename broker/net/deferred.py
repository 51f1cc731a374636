"""A response that becomes available later, without a task that waits for it.

A handler that cannot respond yet (a fetch at the log end, a produce with acks=all) returns a
DeferredResponse. The connection subscribes to its completion; creating a task for each would cost
more than the rest of the request.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

T = TypeVar("T")


class Completion(Protocol):
    """What a deferred response waits for: a future, or an object with this part of one."""

    def add_done_callback(self, callback: Callable[[Any], object], /) -> None:
        """Call `callback` with this object when it is done or cancelled."""

    def cancel(self) -> object:
        """The response is not needed any more."""

    def cancelled(self) -> bool:
        """Whether it was cancelled."""

    def __await__(self) -> Generator[Any, None, Any]:
        """Wait in a task."""


@dataclass(slots=True, eq=False)
class DeferredResponse(Generic[T]):
    """A request that was processed as far as possible for now; its frame is not needed any more.

    `respond` is called once, after `completion` is done. It returns the response, or another
    DeferredResponse if there is something else to wait for. To abandon the request, cancel
    `completion`.
    """

    completion: Completion
    respond: "Callable[[], T | DeferredResponse[T]]"

    def __await__(self) -> Generator[Any, None, T]:
        """Wait for the response in a task."""
        deferred = self
        while True:
            with suppress(Exception):  # `respond` finds out about it, and decides what to return
                yield from deferred.completion.__await__()
            response = deferred.respond()
            if not isinstance(response, DeferredResponse):
                return response
            deferred = response


def as_deferred(awaitable: Awaitable[T]) -> DeferredResponse[T]:
    """Make a coroutine, which becomes a task and may use the frame until it ends, deferred."""
    if isinstance(awaitable, DeferredResponse):
        return awaitable
    task = asyncio.ensure_future(awaitable)
    return DeferredResponse(task, task.result)
