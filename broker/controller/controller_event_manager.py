"""Kafka's ControllerEventManager: processes events one at a time, in the order of their arrival.

The controller's state needs no locks because of this: an event sees the result of all events before
it, and no other event runs while it waits for the store.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, TypeVar

from broker.errors import ApiError, ErrorCode

logger = logging.getLogger(__name__)

T = TypeVar("T")
Event = Callable[[], Awaitable[T]]


class _Queued(NamedTuple):
    name: str
    event: Event[Any]
    done: asyncio.Future[Any] | None


class ControllerEventManager:
    """Runs events in a task of its own.

    Field `_events`: the events that have not begun.
    Field `_names`: the names of queued events without a caller. A second one of the same name is
    not queued: the first has not begun and will see whatever has changed meanwhile.
    """

    def __init__(self) -> None:
        self._events: deque[_Queued] = deque()
        self._names: set[str] = set()
        self._arrived = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many events have not begun."""
        return len(self._events)

    def start(self) -> None:
        """Begin to process events."""
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Cancel the current event and drop the others; their callers get NOT_CONTROLLER."""
        task, self._task = self._task, None
        self.clear()
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def put(self, name: str, event: Event[Any]) -> None:
        """Queue an event without a caller, unless one of this name is queued already."""
        if name not in self._names:
            self._names.add(name)
            self._append(_Queued(name, event, None))

    async def call(self, name: str, event: Event[T]) -> T:
        """Queue an event, and return its result or raise its error."""
        if self._task is None:
            raise _not_controller()
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._append(_Queued(name, event, done))
        return await done

    def clear(self) -> None:
        """Drop the events that have not begun; their callers get NOT_CONTROLLER."""
        for queued in self._events:
            if queued.done is not None and not queued.done.done():
                queued.done.set_exception(_not_controller())
        self._events.clear()
        self._names.clear()

    def _append(self, queued: _Queued) -> None:
        self._events.append(queued)
        self._arrived.set()

    async def _run(self) -> None:
        while True:
            while self._events:
                queued = self._events.popleft()
                # Before it runs: a change that it does not see any more must queue another event.
                if queued.done is None:
                    self._names.discard(queued.name)
                await self._process(queued)
            self._arrived.clear()
            await self._arrived.wait()

    async def _process(self, queued: _Queued) -> None:
        try:
            result = await queued.event()
        except asyncio.CancelledError:
            if queued.done is not None and not queued.done.done():
                queued.done.set_exception(_not_controller())
            raise
        except Exception as error:
            if queued.done is None:
                logger.exception("Error processing controller event=%s", queued.name)
            elif not queued.done.done():
                queued.done.set_exception(error)
        else:
            if queued.done is not None and not queued.done.done():
                queued.done.set_result(result)


def _not_controller() -> ApiError:
    return ApiError(ErrorCode.NOT_CONTROLLER, "this broker is no longer the controller")
