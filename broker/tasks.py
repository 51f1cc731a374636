"""Background tasks that belong to one object and end with it."""

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any, TypeVar

from broker.errors import ApiError

logger = logging.getLogger(__name__)

T = TypeVar("T")


class TaskSet:
    """Runs coroutines as tasks and keeps a reference to each until it is done.

    Without that reference the garbage collector may drop a task while it runs. A task that fails is
    logged, under the name of what the set does, unless its caller awaits it (`logs_failures=False`)
    or it fails with an ApiError and those are expected (`expects_api_errors=True`).
    """

    def __init__(
        self, name: str, *, logs_failures: bool = True, expects_api_errors: bool = False
    ) -> None:
        self._name = name
        self._logs_failures = logs_failures
        self._expects_api_errors = expects_api_errors
        self._tasks: dict[asyncio.Task[Any], None] = {}
        """In the order of their start. Invariant: exactly the tasks that are not done."""

    def spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine; the task may be awaited or not."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._on_done)
        return task

    async def wait(self) -> None:
        """Wait until the tasks that run now are done, whether they fail or not."""
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def cancel(self) -> None:
        """Cancel all tasks and wait until they are done."""
        for task in list(self._tasks):
            task.cancel()
        await self.wait()

    def _on_done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if not self._logs_failures or task.cancelled():
            return
        error = task.exception()
        if error is None or (self._expects_api_errors and isinstance(error, ApiError)):
            return
        logger.error("background task failed task=%s", self._name, exc_info=error)
